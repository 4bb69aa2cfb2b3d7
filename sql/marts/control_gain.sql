-- What a cell gained over its control: the pathway none with the same model, game, replicate, seeds and settings, on
-- the same instances. Cells with an intervention have the control of those without, but for the one that changes the
-- rules of the evaluation, which has its own.
--
-- grain: cell with a pathway other than none
-- key: cell_id
-- columns:
--   cell_id                text
--   model_id               text
--   game                   text
--   pathway                text
--   intervention           text
--   replicate              integer, from 0
--   control_cell_id        text; of several possible controls the one with most pairs; null where there is none
--   pair_count             pairs of episodes on the same instance at the same checkpoint, checkpoint 0 left out
--   cluster_count          independent ones among them: different instances, or all where instances are strata
--   stratum_count          1; where each checkpoint plays all instances the game has (trust), their number
--   mean_difference        game's unit; of the paired final scores; null without pairs
--   standard_error         game's unit, above 0; robust to the instance; null where nothing is left to vary
--   difference_low         game's unit; 95 % t interval, cluster_count - stratum_count degrees of freedom
--   difference_high        game's unit
--   normalised_difference  as a share of the way from the random to the expert player; null without anchors
--   is_beyond_noise        true when the interval excludes 0; null when nothing can be said
-- formula: see int_differences
-- source: Liang and Zeger (1986), Biometrika 73, 13-22; Cochran (1977), Sampling Techniques, chapter 5, for strata
-- left out: pairs with an invalid side. What a cell explored is taken as it was: replicates vary that.
with candidates as (
    select distinct
        cell_id,
        control_cell_id,
        difference_id
    from int_paired_evaluations
),

gains as (
    select
        candidates.cell_id,
        candidates.control_cell_id,
        differences.*
    from candidates
    inner join int_differences as differences on candidates.difference_id = differences.difference_id
    qualify row_number() over (
        partition by candidates.cell_id order by differences.pair_count desc, candidates.control_cell_id asc
    ) = 1
)

select
    cells.cell_id,
    cells.model_id,
    cells.game,
    cells.pathway,
    cells.intervention,
    cells.replicate,
    gains.control_cell_id,
    coalesce(gains.pair_count, 0) as pair_count,
    coalesce(gains.cluster_count, 0) as cluster_count,
    coalesce(gains.stratum_count, 0) as stratum_count,
    gains.mean_difference,
    gains.standard_error,
    gains.difference_low,
    gains.difference_high,
    gains.mean_difference / anchors.anchor_range as normalised_difference,
    gains.is_beyond_noise
from int_selected_cells as cells
left join gains on cells.cell_id = gains.cell_id
left join int_anchors as anchors on cells.evaluation_config_id = anchors.config_id
where cells.pathway != 'none'
