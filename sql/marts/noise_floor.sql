-- What a curve statistic is worth: its value beside those that chance alone makes where experience changes nothing.
--
-- grain: cell, null, metric
-- key: cell_id, null_kind, metric
-- columns:
--   cell_id            text
--   model_id           text
--   game               text
--   pathway            text
--   intervention       text
--   replicate          integer, from 0
--   null_kind          text; checkpoints: all were played by one policy; control: the cell plays as its control
--   metric             text; auc_plus, max and naba as in improvement; gain: of checkpoints, the mean of the later ones
--       minus y_0; of control, minus the mean of the later ones of the control, as in control_gain
--   control_cell_id    text; null where null_kind is checkpoints
--   observed           metric's unit; null where it is not defined, in the cell or in some draw, and so are all below
--   null_mean          metric's unit; what chance makes of it on average
--   null_high          metric's unit; what chance exceeds in 5 % of cells
--   excess             metric's unit; observed - null_mean. Where there is an effect the draws hold part of it, so it
--       is no more than the least that experience has added
--   p_value            above 0 to 1; chance of a value as high as observed, or higher
--   p_randomised       0 to 1; with ties broken by a lot: uniform if nothing is learnt, so many of them can be
--       compared with a straight line; not to be quoted for one cell
--   permutation_count  draws
-- formula: checkpoints: the scores of each instance are dealt anew among the checkpoints (where instances are not
--     repeated, all scores). control: among the checkpoints of the cell and of its control, y_0 being both's (where
--     instances are not repeated, a coin says whose is whose). p_value = (1 + draws at or above observed) /
--     (1 + draws): exact for the null that it names, conservative where there are ties.
-- source: Phipson and Smyth (2010), SAGMB 9, article 39
-- left out: checkpoints not valid in the cell, and for control those not valid in both. A p that says that
--     checkpoints differ says no more than that: see improvement_verdict for what is called an improvement.
select
    cells.cell_id,
    cells.model_id,
    cells.game,
    cells.pathway,
    cells.intervention,
    cells.replicate,
    floors.null_kind,
    floors.metric,
    floors.control_cell_id,
    floors.observed,
    floors.null_mean,
    floors.null_high,
    floors.observed - floors.null_mean as excess,
    floors.p_above as p_value,
    floors.p_randomised,
    floors.permutation_count
from int_selected_cells as cells
inner join stg_noise_floors as floors on cells.cell_id = floors.cell_id
