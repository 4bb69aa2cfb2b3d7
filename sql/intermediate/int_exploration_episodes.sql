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
        coalesce(steps.action, '') as action,
        steps.verifier_reward,
        abs(steps.self_score - steps.verifier_reward) > 0.25 * (cells.reward_max - cells.reward_min) as is_surprising
    from int_cell_episodes as episodes
    inner join int_selected_cells as cells on episodes.cell_id = cells.cell_id
    inner join stg_steps as steps
        on episodes.stage_key = steps.stage_key and episodes.episode_id = steps.episode_id
    where episodes.phase = 'exploration' and steps.action_status is not null
),

pairs as (
    select
        cell_id,
        episode_id,
        episode_index,
        state_id,
        action,
        count(*) as step_count,
        count(verifier_reward) as rewarded_count,
        count(*) filter (where verifier_reward > 0) as positive_count,
        count(*) filter (where is_surprising) as surprising_count,
        count(*) filter (where verifier_reward > 0 or is_surprising) as informative_count,
        row_number() over (partition by cell_id, state_id, action order by episode_index) = 1 as is_new_pair,
        row_number() over (partition by cell_id, state_id order by episode_index, action) = 1 as is_new_state
    from steps
    group by cell_id, episode_id, episode_index, state_id, action
),

actions as (
    select
        cell_id,
        episode_id,
        episode_index,
        action,
        cast(sum(step_count) as bigint) as step_count,
        count(*) filter (where is_new_state) as new_state_count,
        count(*) filter (where is_new_pair) as new_pair_count,
        sum(rewarded_count) as rewarded_count,
        sum(positive_count) as positive_count,
        sum(surprising_count) as surprising_count,
        sum(informative_count) as informative_count
    from pairs
    group by cell_id, episode_id, episode_index, action
)

select
    cell_id,
    episode_id,
    episode_index,
    cast(sum(step_count) as bigint) as step_count,
    cast(sum(new_state_count) as bigint) as new_state_count,
    cast(sum(new_pair_count) as bigint) as new_pair_count,
    cast(sum(rewarded_count) as bigint) as rewarded_count,
    cast(sum(positive_count) as bigint) as positive_count,
    cast(sum(surprising_count) as bigint) as surprising_count,
    cast(sum(informative_count) as bigint) as informative_count,
    map_from_entries(list((action, step_count) order by action)) as actions
from actions
group by cell_id, episode_id, episode_index
