-- What a cell's agent tried in each exploration episode, and how much of it was new to the cell.
--
-- grain: cell, exploration episode
-- key: cell_id, episode_id
-- columns:
--   cell_id            text
--   episode_id         text
--   episode_index      integer, from 0; runs through the whole cell
--   step_count         steps with a reply, from 1
--   new_state_count    states that no earlier episode of the cell was in, each once
--   new_pair_count     (state, action) that no earlier episode of the cell has, each once
--   rewarded_count     steps with a verifier reward
--   positive_count     of these, steps with a reward above 0
--   surprising_count   of these, steps whose self-score is off by more than a quarter of the range of rewards
--   informative_count  of these, steps that are positive or surprising
--   actions            map from action to steps
-- formula: a state is the observation without the number of its step; an answer that is no usable action counts as one
--     more action, the same in all such steps. surprising: |self_score - verifier_reward| > 0.25 (reward_max -
--     reward_min)
-- left out: failed calls, and episodes with nothing else
with steps as (
    select
        episodes.cell_id,
        episodes.episode_id,
        episodes.episode_index,
        hash(regexp_replace(steps.observation, '^(Step|Round) \d+ of \d+', '')) as state_id,
        coalesce(steps.action, '') as chosen,
        steps.verifier_reward,
        abs(steps.self_score - steps.verifier_reward) > 0.25 * (cells.reward_max - cells.reward_min) as is_surprising
    from int_cell_episodes as episodes
    inner join int_selected_cells as cells on episodes.cell_id = cells.cell_id
    inner join stg_steps as steps
        on episodes.stage_key = steps.stage_key and episodes.episode_id = steps.episode_id
    where episodes.phase = 'exploration' and steps.action_status is not null
),

first_pairs as (
    select
        cell_id,
        state_id,
        chosen,
        min(episode_index) as episode_index
    from steps
    group by cell_id, state_id, chosen
),

first_states as (
    select
        cell_id,
        state_id,
        min(episode_index) as episode_index
    from first_pairs
    group by cell_id, state_id
),

new_pairs as (
    select
        cell_id,
        episode_index,
        count(*) as pair_count
    from first_pairs
    group by cell_id, episode_index
),

new_states as (
    select
        cell_id,
        episode_index,
        count(*) as state_count
    from first_states
    group by cell_id, episode_index
),

actions as (
    select
        cell_id,
        episode_id,
        episode_index,
        chosen,
        count(*) as step_count,
        count(verifier_reward) as rewarded_count,
        count(*) filter (where verifier_reward > 0) as positive_count,
        count(*) filter (where is_surprising) as surprising_count,
        count(*) filter (where verifier_reward > 0 or is_surprising) as informative_count
    from steps
    group by cell_id, episode_id, episode_index, chosen
),

totals as (
    select
        cell_id,
        episode_id,
        episode_index,
        cast(sum(step_count) as bigint) as step_count,
        cast(sum(rewarded_count) as bigint) as rewarded_count,
        cast(sum(positive_count) as bigint) as positive_count,
        cast(sum(surprising_count) as bigint) as surprising_count,
        cast(sum(informative_count) as bigint) as informative_count,
        map_from_entries(list((chosen, step_count) order by chosen)) as actions
    from actions
    group by cell_id, episode_id, episode_index
)

select
    totals.cell_id,
    totals.episode_id,
    totals.episode_index,
    totals.step_count,
    coalesce(new_states.state_count, 0) as new_state_count,
    coalesce(new_pairs.pair_count, 0) as new_pair_count,
    totals.rewarded_count,
    totals.positive_count,
    totals.surprising_count,
    totals.informative_count,
    totals.actions
from totals
left join new_states on totals.cell_id = new_states.cell_id and totals.episode_index = new_states.episode_index
left join new_pairs on totals.cell_id = new_pairs.cell_id and totals.episode_index = new_pairs.episode_index
