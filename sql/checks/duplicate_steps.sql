-- Episodes with a step that is there more than once.
--
-- grain: episode
-- columns:
--   stage_key        text
--   episode_id       text
--   row_count        rows of steps
--   different_count  different step indices among them
select
    stage_key,
    episode_id,
    count(*) as row_count,
    count(distinct step_index) as different_count
from stg_steps
group by stage_key, episode_id
having count(*) > count(distinct step_index)
