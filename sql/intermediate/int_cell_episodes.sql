-- Episodes a cell uses. An episode of a shared stage, such as the evaluation before any experience, appears once in
-- each cell that uses it.
--
-- grain: cell, episode
-- key: cell_id, stage_key, checkpoint, episode_id
-- columns:
--   cell_id        text
--   stage_key      text
--   phase          text; exploration or evaluation
--   checkpoint     exploration episodes behind the agent when the stage began, from 0
--   episode_id     text
--   episode_index  integer, from 0
--   seed           integer
--   instance_id    text
--   is_valid       true unless a call failed
--   final_score    game's unit; null when not valid
--   is_success     true or false; null when not valid
--   step_count     steps, from 0
--   end_reason     text
-- left out: evaluation episodes beyond the cell's own budget, which belong to bigger ones. The index of an
--     exploration episode runs through the whole cell, so it is no such bound.
select
    links.cell_id,
    links.stage_key,
    episodes.phase,
    links.checkpoint,
    episodes.episode_id,
    episodes.episode_index,
    episodes.seed,
    episodes.instance_id,
    episodes.status = 'valid' as is_valid,
    episodes.final_score,
    episodes.is_success,
    episodes.step_count,
    episodes.end_reason
from int_cell_links as links
inner join stg_episodes as episodes on links.stage_key = episodes.stage_key
where links.stage = 'explore' or (links.stage = 'evaluate' and episodes.episode_index < links.episode_count)
