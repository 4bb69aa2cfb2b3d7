-- What is stored of an episode's steps, for comparison with what the episode says of itself.
--
-- grain: episode, as far as it has steps
-- key: stage_key, episode_id
-- columns:
--   stage_key         text
--   episode_id        text
--   row_count         rows of steps, from 1
--   different_count   different step indices among them
--   first_step_index  integer; 0 where nothing is missing
--   last_step_index   integer; different_count - 1 where nothing is missing
--   reward_sum        game's unit; null when no step has a reward
--   reward_mean       game's unit; over steps with a reward
select
    stage_key,
    episode_id,
    count(*) as row_count,
    count(distinct step_index) as different_count,
    min(step_index) as first_step_index,
    max(step_index) as last_step_index,
    sum(verifier_reward) as reward_sum,
    avg(verifier_reward) as reward_mean
from stg_steps
group by stage_key, episode_id
