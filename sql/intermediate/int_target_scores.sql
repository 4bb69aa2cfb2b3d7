-- How a cell did with its experience in each game it was tried in, its own among them.
--
-- grain: cell, target game, checkpoint
-- key: cell_id, target_game, checkpoint
-- columns:
--   cell_id          text; a cell that was evaluated in other games
--   target_game      text; the game played, which may be the cell's own
--   checkpoint       exploration episodes behind the agent, from 0
--   config_id        text; hash of game, version and configuration, joins int_anchors
--   requested_count  evaluation episodes asked for
--   valid_count      episodes played to the end
--   invalid_count    episodes lost to a failed call; what is neither valid nor invalid has not been played
--   mean_score       target game's unit; null unless every episode asked for is there and valid; in the cell's own
--                    game that of int_checkpoints
-- left out: the mean of an incomplete checkpoint, see int_checkpoints.
with counted as (
    select
        cell_id,
        target_game,
        checkpoint,
        max(config_id) as config_id,
        max(requested_count) as requested_count,
        count(*) filter (where is_valid) as valid_count,
        count(*) filter (where not is_valid) as invalid_count,
        avg(final_score) as mean_score
    from int_target_episodes
    group by cell_id, target_game, checkpoint
)

select
    counted.cell_id,
    counted.target_game,
    counted.checkpoint,
    counted.config_id,
    counted.requested_count,
    counted.valid_count,
    counted.invalid_count,
    case
        when counted.target_game = cells.game then own.mean_score
        when counted.valid_count = counted.requested_count then counted.mean_score
    end as mean_score
from counted
inner join int_selected_cells as cells on counted.cell_id = cells.cell_id
left join int_checkpoints as own on counted.cell_id = own.cell_id and counted.checkpoint = own.checkpoint
