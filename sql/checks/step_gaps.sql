-- Episodes whose steps do not run from 0 to their step count.
--
-- grain: episode
-- columns:
--   stage_key        text
--   episode_id       text
--   step_count       steps, as the episode says
--   different_count  different step indices stored
--   last_step_index  integer, from 0; null without steps
with stored as (
    select
        stage_key,
        episode_id,
        count(distinct step_index) as different_count,
        min(step_index) as first_step_index,
        max(step_index) as last_step_index
    from stg_steps
    group by stage_key, episode_id
)

select
    episodes.stage_key,
    episodes.episode_id,
    episodes.step_count,
    coalesce(stored.different_count, 0) as different_count,
    stored.last_step_index
from stg_episodes as episodes
left join stored on episodes.stage_key = stored.stage_key and episodes.episode_id = stored.episode_id
where
    episodes.step_count != coalesce(stored.different_count, 0)
    or stored.first_step_index != 0
    or stored.last_step_index != episodes.step_count - 1
