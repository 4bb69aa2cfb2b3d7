-- What the viewer holds of each episode: in brief, of every step the action, its status, both scores and the line that
-- gave the answer; as a whole, all texts besides. Whole are first of all, as far as they fit, of every cell the first
-- episodes of its last and of its first checkpoint, its first and last exploration episodes, and the most surprising
-- ones, which have the largest gap between self-score and reward; then the others.
--
-- grain: episode
-- key: stage_key, episode_id
-- columns:
--   cell_ids    list of text; the cells that use the episode, first the one that played it
--   episode_id  text
--   phase       text; exploration or evaluation
--   checkpoint  exploration episodes behind the agent when the stage began, from 0
--   episode     integer, from 0; its index
--   gaps        list in order of steps; |self_score - verifier_reward| in thousandths of the declared range of rewards;
--       null where there is no self-score, no reward or no range
--   brief       text; JSON, lists in order of steps; an answer is cut after 200 characters
--   whole       text; JSON, lists in order of steps; a text is cut after 20,000 characters, and the cut is marked; null
--       where the texts do not fit: those of 1,000 episodes and 16,000,000 characters do
-- order: the one in which episodes are whole
-- left out: episodes beyond 250,000 steps
with uses as (
    select
        episodes.stage_key,
        episodes.episode_id,
        episodes.cell_id,
        episodes.phase,
        episodes.checkpoint,
        episodes.episode_index,
        -- what interventions share was played by the cell without one
        row_number() over (
            partition by episodes.stage_key, episodes.episode_id
            order by cells.intervention != 'main' asc, episodes.cell_id asc
        ) as use_number,
        1000 / nullif(cells.reward_max - cells.reward_min, 0) as thousandths
    from int_cell_episodes as episodes
    inner join int_selected_cells as cells on episodes.cell_id = cells.cell_id
),

surprises as (
    select
        uses.stage_key,
        uses.episode_id,
        list(
            cast(round(abs(steps.self_score - steps.verifier_reward) * uses.thousandths) as bigint)
            order by steps.step_index
        ) as gaps
    from uses
    inner join int_cell_steps as steps
        on uses.cell_id = steps.cell_id and uses.stage_key = steps.stage_key and uses.episode_id = steps.episode_id
    where uses.use_number = 1
    group by uses.stage_key, uses.episode_id
),

placed as (
    select
        uses.*,
        surprises.gaps,
        row_number() over (cell_checkpoint order by uses.episode_index) as in_checkpoint,
        row_number() over (cell_phase order by uses.episode_index) as from_start,
        row_number() over (cell_phase order by uses.episode_index desc) as from_end,
        row_number() over (
            partition by uses.cell_id
            order by
                list_max(surprises.gaps) desc nulls last,
                uses.phase asc,
                uses.checkpoint asc,
                uses.episode_index asc
        ) as by_surprise,
        min(uses.checkpoint) over (cell_phase) as first_checkpoint,
        max(uses.checkpoint) over (cell_phase) as last_checkpoint
    from uses
    inner join surprises on uses.stage_key = surprises.stage_key and uses.episode_id = surprises.episode_id
    window
        cell_phase as (partition by uses.cell_id, uses.phase),
        cell_checkpoint as (partition by uses.cell_id, uses.phase, uses.checkpoint)
),

-- one rank is one episode of each kind a cell, so that the limits leave all cells equally well covered
ranked as (
    select
        stage_key,
        episode_id,
        cell_id,
        use_number,
        list_min([
            case
                when phase = 'exploration' and from_start <= from_end
                    then struct_pack(is_rest := false, place := from_start, kind := 3)
                when phase = 'exploration' then struct_pack(is_rest := false, place := from_end, kind := 4)
                when checkpoint = last_checkpoint then struct_pack(is_rest := false, place := in_checkpoint, kind := 1)
                when checkpoint = first_checkpoint then struct_pack(is_rest := false, place := in_checkpoint, kind := 2)
                else struct_pack(is_rest := true, place := in_checkpoint, kind := 0)
            end,
            case when list_max(gaps) > 0 then struct_pack(is_rest := false, place := by_surprise, kind := 5) end
        ]) as priority
    from placed
),

episodes as (
    select
        stage_key,
        episode_id,
        list(cell_id order by use_number) as cell_ids,
        min(priority) as priority
    from ranked
    group by stage_key, episode_id
),

-- before any text is read: there may be millions of steps
shown as (
    select
        placed.stage_key,
        placed.episode_id,
        episodes.cell_ids,
        placed.phase,
        placed.checkpoint,
        placed.episode_index,
        placed.gaps,
        row_number() over in_order as turn
    from placed
    inner join episodes on placed.stage_key = episodes.stage_key and placed.episode_id = episodes.episode_id
    where placed.use_number = 1
    window in_order as (order by episodes.priority, placed.stage_key, placed.episode_id)
    qualify sum(len(placed.gaps)) over in_order <= 250000
),

steps as (
    select
        steps.stage_key,
        steps.episode_id,
        list(
            struct_pack(
                action := steps.action,
                action_status := steps.action_status,
                self_score := steps.self_score,
                verifier_reward := steps.verifier_reward,
                error_kind := steps.error_kind,
                -- the last line that gives an answer
                answer := left(
                    list_last(
                        list_filter(
                            string_split(steps.reply, chr(10)),
                            lambda said: regexp_matches(said, '(?i)answer[\s_]*[:：]')
                        )
                    ),
                    200
                )
            )
            order by steps.step_index
        ) as in_brief,
        list(
            struct_pack(
                observation := if(
                    length(steps.observation) > 20000, left(steps.observation, 20000) || ' [cut]', steps.observation
                ),
                reply := if(length(steps.reply) > 20000, left(steps.reply, 20000) || ' [cut]', steps.reply),
                reasoning := if(
                    length(steps.reasoning) > 20000, left(steps.reasoning, 20000) || ' [cut]', steps.reasoning
                ),
                feedback := steps.feedback,
                error_message := steps.error_message
            )
            order by steps.step_index
        ) filter (where shown.turn <= 1000) as in_whole
    from stg_steps as steps
    inner join shown on steps.stage_key = shown.stage_key and steps.episode_id = shown.episode_id
    group by steps.stage_key, steps.episode_id
),

links as (
    select
        cells.cell_id,
        links.stage_key
    from int_selected_cells as cells
    inner join stg_cell_stages as links on cells.run_id = links.run_id and cells.cell_id = links.cell_id
    where links.stage = 'self_judge'
),

judged as (
    select
        links.cell_id,
        judgments.episode_id,
        struct_pack(
            expected_final_score := judgments.expected_final_score,
            success_belief := judgments.success_belief,
            retain := judgments.retain,
            avoid := judgments.avoid
        ) as judgment
    from links
    inner join stg_judgments as judgments on links.stage_key = judgments.stage_key
),

written as (
    select
        shown.*,
        -- a list a column takes half the room of an object a step
        to_json(struct_pack(
            seed := episodes.seed,
            instance_id := episodes.instance_id,
            status := episodes.status,
            final_score := episodes.final_score,
            end_reason := episodes.end_reason,
            judgment := judged.judgment,
            action := list_transform(steps.in_brief, lambda step: struct_extract(step, 'action')),
            action_status := list_transform(steps.in_brief, lambda step: struct_extract(step, 'action_status')),
            self_score := list_transform(steps.in_brief, lambda step: struct_extract(step, 'self_score')),
            verifier_reward := list_transform(steps.in_brief, lambda step: struct_extract(step, 'verifier_reward')),
            error_kind := list_transform(steps.in_brief, lambda step: struct_extract(step, 'error_kind')),
            answer := list_transform(steps.in_brief, lambda step: struct_extract(step, 'answer'))
        )) as brief,
        to_json(struct_pack(
            final_observation := episodes.final_observation,
            steps := steps.in_whole
        )) as whole
    from shown
    inner join steps on shown.stage_key = steps.stage_key and shown.episode_id = steps.episode_id
    inner join stg_episodes as episodes
        on shown.stage_key = episodes.stage_key and shown.episode_id = episodes.episode_id
    left join judged on shown.cell_ids[1] = judged.cell_id and shown.episode_id = judged.episode_id
)

select
    cell_ids,
    episode_id,
    phase,
    checkpoint,
    episode_index as episode,
    gaps,
    brief,
    if(turn <= 1000 and sum(length(whole)) over (order by turn) <= 16000000, whole, null) as whole
from written
order by turn
