-- The episodes the viewer holds: of every cell the first ones of its first and last checkpoint, and its first and last
-- exploration episodes, as many as fit: 300 episodes and 6,000,000 characters.
--
-- grain: episode
-- key: stage_key, episode_id
-- columns: those of stg_episodes that the viewer shows, and
--   steps  list, in order; texts are cut after 20,000 characters, and the cut is marked
--   uses   list of the cells that use the episode, with what the agent had read and how it judged itself afterwards
with placed as (
    select
        *,
        row_number() over (partition by cell_id, phase, checkpoint order by episode_index) as in_checkpoint,
        row_number() over (partition by cell_id, phase order by episode_index) as from_start,
        row_number() over (partition by cell_id, phase order by episode_index desc) as from_end,
        min(checkpoint) over (partition by cell_id, phase) as first_checkpoint,
        max(checkpoint) over (partition by cell_id, phase) as last_checkpoint
    from int_cell_episodes
),

-- one rank is one episode of each kind a cell, so that the limits leave all cells equally well covered
ranked as (
    select
        stage_key,
        episode_id,
        case
            when phase = 'exploration' then least(from_start, from_end)
            when checkpoint in (first_checkpoint, last_checkpoint) then in_checkpoint
        end as place,
        case
            when phase = 'exploration' then if(from_start <= from_end, 3, 4)
            else if(checkpoint = last_checkpoint, 1, 2)
        end as kind
    from placed
),

-- before any text is read: there may be millions of steps
shortlist as (
    select
        stage_key,
        episode_id,
        min(struct_pack(place := place, kind := kind)) as priority
    from ranked
    where place is not null
    group by stage_key, episode_id
    order by priority, stage_key, episode_id
    limit 300
),

steps as (
    select
        steps.stage_key,
        steps.episode_id,
        steps.step_index,
        if(length(steps.observation) > 20000, left(steps.observation, 20000) || ' [cut]', steps.observation)
            as observation,
        if(length(steps.reply) > 20000, left(steps.reply, 20000) || ' [cut]', steps.reply) as reply,
        if(length(steps.reasoning) > 20000, left(steps.reasoning, 20000) || ' [cut]', steps.reasoning) as reasoning,
        steps.action,
        steps.action_status,
        steps.self_score,
        steps.feedback,
        steps.verifier_reward,
        sum(steps.verifier_reward) over (
            partition by steps.stage_key, steps.episode_id order by steps.step_index
        ) as running_total,
        steps.error_kind,
        steps.error_message
    from stg_steps as steps
    semi join shortlist on steps.stage_key = shortlist.stage_key and steps.episode_id = shortlist.episode_id
),

played as (
    select
        stage_key,
        episode_id,
        list(struct_pack(
            observation := observation,
            reply := reply,
            reasoning := reasoning,
            action := action,
            action_status := action_status,
            self_score := self_score,
            feedback := feedback,
            verifier_reward := verifier_reward,
            running_total := running_total,
            error_kind := error_kind,
            error_message := error_message
        ) order by step_index) as steps,
        -- 300 is about what a step takes besides its texts
        sum(length(concat(observation, reply, reasoning, feedback, error_message)) + 300) as characters
    from steps
    group by stage_key, episode_id
),

chosen as (
    select
        played.stage_key,
        played.episode_id,
        played.steps
    from shortlist
    inner join played on shortlist.stage_key = played.stage_key and shortlist.episode_id = played.episode_id
    qualify
        sum(played.characters) over (order by shortlist.priority, shortlist.stage_key, shortlist.episode_id)
        <= 6000000
),

uses as (
    select
        episodes.*,
        cells.model_id,
        cells.game,
        concat_ws(
            ', ',
            cells.pathway,
            nullif(cells.intervention, 'main'),
            'replicate ' || nullif(cells.replicate, 0)
        ) as pathway,
        if(episodes.phase = 'exploration', episodes.episode_index, episodes.checkpoint) as episodes_before
    from chosen
    inner join int_cell_episodes as episodes
        on chosen.stage_key = episodes.stage_key and chosen.episode_id = episodes.episode_id
    inner join int_selected_cells as cells on episodes.cell_id = cells.cell_id
),

links as (
    select
        cells.cell_id,
        links.stage_key,
        links.stage
    from int_selected_cells as cells
    inner join stg_cell_stages as links on cells.run_id = links.run_id and cells.cell_id = links.cell_id
),

memories as (
    select
        links.cell_id,
        experiences.checkpoint,
        experiences.text
    from links
    inner join stg_experiences as experiences on links.stage_key = experiences.stage_key
    where links.stage = 'build_experience' and experiences.text is not null
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
    where links.stage = 'self_judge'
),

used as (
    select
        uses.stage_key,
        uses.episode_id,
        list(struct_pack(
            model := uses.model_id,
            game := uses.game,
            pathway := uses.pathway,
            phase := uses.phase,
            checkpoint := uses.checkpoint,
            episode := uses.episode_index,
            memory := memories.text,
            judgment := judged.judgment
        ) order by uses.cell_id, uses.checkpoint) as uses
    from uses
    -- the latest memory that was there when the episode began
    asof left join memories
        on uses.cell_id = memories.cell_id and uses.episodes_before >= memories.checkpoint
    left join judged on uses.cell_id = judged.cell_id and uses.episode_id = judged.episode_id
    group by uses.stage_key, uses.episode_id
)

select
    episodes.episode_id,
    episodes.seed,
    episodes.instance_id,
    episodes.status,
    episodes.final_score,
    episodes.end_reason,
    episodes.final_observation,
    chosen.steps,
    used.uses
from chosen
inner join used on chosen.stage_key = used.stage_key and chosen.episode_id = used.episode_id
inner join stg_episodes as episodes
    on chosen.stage_key = episodes.stage_key and chosen.episode_id = episodes.episode_id
order by episodes.stage_key, episodes.episode_id
