-- Intervals of curve statistics, as resampled. Empty until they have been computed for the rows that there are.
--
-- grain: cell, scope, contrast, metric
-- key: cell_id, scope, contrast, metric
-- columns:
--   cell_id            text; of several replicates the first
--   scope              text; cell or replicates
--   contrast           text; own, over_control or over_history
--   metric             text; as in improvement, and gain
--   reference_cell_id  text; the cell that is taken away; null for own
--   estimate           metric's unit; null where it is not defined
--   bias               metric's unit; null unless status is ok
--   standard_error     metric's unit, above 0; null unless status is ok
--   low                metric's unit; null unless status is ok
--   high               metric's unit; null unless status is ok
--   status             text; ok, undefined, too_few or no_spread
--   replicate_count    replicates, from 1
--   unit_count         instances or episodes that are drawn, from 1
--   resample_count     draws
select
    cell_id,
    scope,
    contrast,
    metric,
    reference_cell_id,
    estimate,
    bias,
    standard_error,
    low,
    high,
    status,
    replicate_count,
    unit_count,
    resample_count
from raw.intervals
