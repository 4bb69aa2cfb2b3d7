-- Episodes whose steps do not run from 0 to their step count.
--
-- grain: episode
-- columns:
--   stage_key        text
--   episode_id       text
--   step_count       steps, as the episode says
--   different_count  different step indices stored
--   last_step_index  integer, from 0; null without steps
select
    episodes.stage_key,
    episodes.episode_id,
    episodes.step_count,
    coalesce(steps.different_count, 0) as different_count,
    steps.last_step_index
from stg_episodes as episodes
left join int_episode_steps as steps
    on episodes.stage_key = steps.stage_key and episodes.episode_id = steps.episode_id
where
    episodes.step_count != coalesce(steps.different_count, 0)
    or steps.first_step_index != 0
    or steps.last_step_index != episodes.step_count - 1
