-- Detectable effect: the smallest gain over its control that the episodes of a cell could have shown.
--
-- grain: cell with a pathway other than none
-- key: cell_id
-- columns:
--   cell_id                     text
--   model_id                    text
--   game                        text
--   pathway                     text
--   intervention                text
--   replicate                   integer, from 0
--   pair_count                  pairs of episodes on the same instance at the same checkpoint
--   degrees_of_freedom          clusters minus strata, from 0; null without pairs
--   standard_error              game's unit, above 0; of control_gain; null where nothing is left to vary
--   detectable_gain             game's unit, above 0; null where standard_error is
--   normalised_detectable_gain  as a share of the way from the random to the expert player; null without anchors
--   mean_difference             game's unit; what was found, see control_gain
--   is_found_larger             true where what was found is at least that large, either way; null where there is none
-- formula: detectable_gain = (t(0.975) + t(0.8)) standard_error: a true gain of this size is found, by a 95 % interval
--     of one cell, with a chance of 80 %; see int_t_quantiles
-- source: Bloom (1995), Evaluation Review 19, 547-556
-- left out: the correction for the number of cells, which asks for more. The standard error is itself estimated: at
--     few instances the number is rough. It says what a gain that was not shown may still be, and nothing of its sign.
with errors as (
    select
        cell_id,
        case when pair_count > 0 then cast(cluster_count - stratum_count as double) end as degrees_of_freedom
    from control_gain
)

select
    cells.cell_id,
    cells.model_id,
    cells.game,
    cells.pathway,
    cells.intervention,
    cells.replicate,
    gains.pair_count,
    cast(errors.degrees_of_freedom as bigint) as degrees_of_freedom,
    gains.standard_error,
    factors.detection_factor * gains.standard_error as detectable_gain,
    factors.detection_factor * gains.standard_error / anchors.anchor_range as normalised_detectable_gain,
    gains.mean_difference,
    abs(gains.mean_difference) >= factors.detection_factor * gains.standard_error as is_found_larger
from int_selected_cells as cells
inner join control_gain as gains on cells.cell_id = gains.cell_id
inner join errors on cells.cell_id = errors.cell_id
asof left join int_t_quantiles as factors on errors.degrees_of_freedom >= factors.degrees_of_freedom
left join int_anchors as anchors on cells.evaluation_config_id = anchors.config_id
