-- Checkpoints of trained cells at which the weights are no longer those of the untrained model.
--
-- grain: cell, checkpoint
-- key: cell_id, checkpoint
-- columns:
--   cell_id         text
--   checkpoint      exploration episodes behind the agent, from 1
--   update_count    updates so far that changed the weights, from 1
--   mean_score      game's unit; y_k; null when not valid
--   is_above_start  true when y_k is above y_0 (by more than 1e-9); null when either is not valid
select
    checkpoints.cell_id,
    checkpoints.checkpoint,
    count(*) as update_count,
    any_value(checkpoints.mean_score) as mean_score,
    any_value(checkpoints.mean_score > origins.mean_score + 1e-9) as is_above_start
from int_checkpoints as checkpoints
inner join int_updates as updates
    on
        checkpoints.cell_id = updates.cell_id
        and checkpoints.checkpoint >= updates.checkpoint
        and updates.is_updated
left join int_checkpoints as origins on checkpoints.cell_id = origins.cell_id and origins.checkpoint = 0
where checkpoints.checkpoint > 0
group by checkpoints.cell_id, checkpoints.checkpoint
