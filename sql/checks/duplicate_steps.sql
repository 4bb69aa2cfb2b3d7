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
    row_count,
    different_count
from int_episode_steps
where row_count > different_count
