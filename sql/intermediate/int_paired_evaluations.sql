-- Evaluation episodes of a cell beside those of its control on the same instances.
--
-- grain: cell, control, checkpoint, seed
-- key: cell_id, control_cell_id, checkpoint, seed
-- columns:
--   cell_id          text; of a pathway other than none
--   control_cell_id  text; with the pathway none, all else equal, and no intervention but the cell's own
--   checkpoint       exploration episodes behind the agent, from 1
--   seed             integer; of the instance both played
--   stratum          text; the instance where the game has so few that each checkpoint plays them all, else empty
--   cluster_id       text; pairs of one cluster are not independent: the same instance at several checkpoints is one
--                    cluster, but where instances are strata each pair is its own
--   difference_id    text; joins int_differences: all pairs of a cell and its control
--   difference       game's unit; final score of the cell minus that of the control
-- left out: invalid episodes, with their partners, and checkpoint 0, where both are the same episode.
with evaluations as (
    select
        cells.cell_id,
        cells.comparison_id,
        cells.pathway,
        cells.intervention,
        episodes.checkpoint,
        episodes.seed,
        episodes.final_score,
        case when cells.is_instances_shared then episodes.instance_id else '' end as stratum,
        case when cells.is_instances_shared then episodes.checkpoint || '/' else '' end || episodes.seed as cluster_id
    from int_selected_cells as cells
    inner join int_cell_episodes as episodes on cells.cell_id = episodes.cell_id
    where episodes.phase = 'evaluation' and episodes.is_valid and episodes.checkpoint > 0
)

select
    treated.cell_id,
    control.cell_id as control_cell_id,
    treated.checkpoint,
    treated.seed,
    treated.stratum,
    treated.cluster_id,
    concat_ws('|', 'control', treated.cell_id, control.cell_id) as difference_id,
    treated.final_score - control.final_score as difference
from evaluations as treated
inner join evaluations as control
    on
        treated.comparison_id = control.comparison_id
        and treated.checkpoint = control.checkpoint
        and treated.seed = control.seed
        and control.intervention in ('main', treated.intervention)
where treated.pathway != 'none' and control.pathway = 'none'
