-- Held-out episodes of a cell beside those of the refresh before on the same seeds.
--
-- grain: cell, checkpoint, seed
-- key: cell_id, checkpoint, seed
-- columns:
--   cell_id         text
--   checkpoint      exploration episodes behind the agent, from 0
--   seed            integer; of the instance both played
--   stratum         text; the instance where the game has so few that each checkpoint plays them all, else empty
--   cluster_id      text; pairs of one cluster are not independent, see int_paired_evaluations
--   difference_id   text; joins int_differences: all pairs of a cell
--   score           game's unit
--   previous_score  game's unit
--   difference      game's unit; score minus previous_score
-- left out: what int_refreshed_episodes leaves out, and seeds that only one of the two played.
select
    now.cell_id,
    now.checkpoint,
    now.seed,
    case when cells.is_instances_shared then now.instance_id else '' end as stratum,
    case when cells.is_instances_shared then now.checkpoint || '/' else '' end || now.seed as cluster_id,
    concat_ws('|', 'refresh', now.cell_id) as difference_id,
    now.final_score as score,
    earlier.final_score as previous_score,
    now.final_score - earlier.final_score as difference
from int_refreshed_episodes as now
inner join int_refreshed_episodes as earlier
    on now.cell_id = earlier.cell_id and now.checkpoint = earlier.checkpoint and now.seed = earlier.seed
inner join int_selected_cells as cells on now.cell_id = cells.cell_id
where now.is_now and not earlier.is_now
