-- How sure the numbers of a curve are: 95 % intervals of cells, of replicates and of differences between pathways.
--
-- grain: cell, scope, contrast, metric
-- key: cell_id, scope, contrast, metric
-- columns:
--   cell_id            text; of several replicates the first
--   model_id           text
--   game               text
--   pathway            text
--   intervention       text
--   replicate          integer, from 0; of cell_id
--   scope              text; cell: what it explored is taken as it was; replicates: their mean, and they vary as well
--   contrast           text; own, over_control (minus the pathway none) or over_history (memory minus history)
--   metric             text; avg, max, last, delta, auc_plus, auc_minus, net_area and naba as in improvement; gain, the
--       mean of the later checkpoints minus y_0
--   reference_cell_id  text; the cell that is taken away; null for own
--   estimate           metric's unit; null where it is not defined
--   bias               metric's unit; what the chance of the episodes adds on average; null unless status is ok
--   standard_error     metric's unit, above 0; null unless status is ok
--   low                metric's unit; null unless status is ok
--   high               metric's unit; null unless status is ok
--   status             text; ok; undefined, the number or some resample has no value; too_few, there is nothing to draw
--       from; no_spread, all resamples are alike, which is no proof that there is no error
--   replicate_count    replicates, from 1
--   unit_count         instances, or episodes where those are not repeated, from 1
--   resample_count     draws
-- formula: bootstrap with n - 1 of the n instances of a stratum, the same for all checkpoints and both sides of a
--     difference, y_0 with its own scores; and r - 1 of r replicates. estimate - bias -+ t(df) standard_error, widened
--     to hold the estimate, and not below 0 where the number cannot be. df = instances - strata (of the checkpoint with
--     fewest for max, last, delta and gain), and no more than r - 1 with r replicates.
-- source: Hesterberg (2015), The American Statistician 69, 371-386; Rao and Wu (1988), JASA 83, 231-241; Owen (2007),
--     Annals of Applied Statistics 1, 386-411
-- left out: invalid checkpoints. An interval of auc_plus or max is wide at few episodes and still optimistic where the
--     curve is flat: see noise_floor.
select
    cells.cell_id,
    cells.model_id,
    cells.game,
    cells.pathway,
    cells.intervention,
    cells.replicate,
    found.scope,
    found.contrast,
    found.metric,
    found.reference_cell_id,
    found.estimate,
    found.bias,
    found.standard_error,
    found.low,
    found.high,
    found.status,
    found.replicate_count,
    found.unit_count,
    found.resample_count
from int_selected_cells as cells
inner join stg_intervals as found on cells.cell_id = found.cell_id
