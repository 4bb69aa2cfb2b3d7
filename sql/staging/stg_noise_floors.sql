-- What chance alone makes of curve statistics, as resampled. Empty until it has been computed for the rows that
-- there are.
--
-- grain: cell, null, metric
-- key: cell_id, null_kind, metric
-- columns:
--   cell_id            text
--   null_kind          text; checkpoints or control
--   metric             text; auc_plus, max, naba or gain
--   control_cell_id    text; null where null_kind is checkpoints
--   observed           metric's unit; null where it is not defined, in the cell or in some draw, and so are all below
--   null_mean          metric's unit
--   null_high          metric's unit; exceeded by 5 % of the draws
--   p_above            above 0 to 1
--   p_below            above 0 to 1
--   p_randomised       0 to 1
--   smallest_p         above 0 to 1; only of gain
--   permutation_count  draws
select
    cell_id,
    null_kind,
    metric,
    control_cell_id,
    observed,
    null_mean,
    null_high,
    p_above,
    p_below,
    p_randomised,
    smallest_p,
    permutation_count
from raw.noise_floors
