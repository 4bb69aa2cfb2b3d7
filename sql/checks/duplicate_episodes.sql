-- Episodes that are there more than once.
--
-- grain: episode
-- columns:
--   stage_key   text
--   episode_id  text
--   row_count   rows, from 2
select
    stage_key,
    episode_id,
    count(*) as row_count
from stg_episodes
group by stage_key, episode_id
having count(*) > 1
