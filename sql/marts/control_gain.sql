-- What a cell gained over its control: the pathway none with the same model, game, replicate, intervention, seeds and
-- settings, on the same instances.
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
-- formula: standard_error = sqrt(G / (G - S) * sum over the G clusters of (sum of residuals)^2) / pair_count, where
--     a residual is the distance from the mean of its stratum, of which there are S. Instances drawn at random are
--     one stratum and vary; instances that are all there is do not: what varies is how a checkpoint turns out on each.
--     Without spread there is no interval: no difference at all is not beyond noise, and the same difference again on
--     G clusters is, once the two-sided sign test says so: 2^(1 - G) < 0.05.
-- source: Liang and Zeger (1986), Biometrika 73, 13-22, with the usual small-sample factor; Cochran (1977), Sampling
--     Techniques, chapter 5, for strata
-- left out: pairs with an invalid side. What a cell explored is taken as it was: replicates vary that.
with candidates as (
    select
        cell_id,
        control_cell_id,
        count(*) as pair_count,
        avg(difference) as mean_difference
    from int_paired_evaluations
    group by cell_id, control_cell_id
),

controls as (
    select
        cell_id,
        control_cell_id,
        pair_count,
        mean_difference
    from candidates
    qualify row_number() over (partition by cell_id order by pair_count desc, control_cell_id asc) = 1
),

residuals as (
    select
        controls.cell_id,
        pairs.stratum,
        pairs.cluster_id,
        pairs.difference - avg(pairs.difference) over (partition by controls.cell_id, pairs.stratum) as residual
    from controls
    inner join int_paired_evaluations as pairs
        on controls.cell_id = pairs.cell_id and controls.control_cell_id = pairs.control_cell_id
),

clusters as (
    select
        cell_id,
        stratum,
        cluster_id,
        sum(residual) as residual
    from residuals
    group by cell_id, stratum, cluster_id
),

spreads as (
    select
        cell_id,
        count(*) as cluster_count,
        count(distinct stratum) as stratum_count,
        count(*) - count(distinct stratum) as degrees_of_freedom,
        sqrt(count(*) / nullif(count(*) - count(distinct stratum), 0) * sum(residual * residual)) as residual_size
    from clusters
    group by cell_id
),

errors as (
    select
        controls.cell_id,
        controls.control_cell_id,
        controls.pair_count,
        spreads.cluster_count,
        spreads.stratum_count,
        spreads.degrees_of_freedom,
        controls.mean_difference,
        -- a sum of equal residuals may end a rounding error away from 0
        case
            when spreads.residual_size > 1e-9 then spreads.residual_size / controls.pair_count
        end as standard_error
    from controls
    inner join spreads on controls.cell_id = spreads.cell_id
),

intervals as (
    select
        errors.cell_id,
        errors.control_cell_id,
        errors.pair_count,
        errors.cluster_count,
        errors.stratum_count,
        errors.mean_difference,
        errors.standard_error,
        errors.mean_difference - t.t_quantile * errors.standard_error as difference_low,
        errors.mean_difference + t.t_quantile * errors.standard_error as difference_high
    from errors
    asof left join int_t_quantiles as t on errors.degrees_of_freedom >= t.degrees_of_freedom
)

select
    cells.cell_id,
    cells.model_id,
    cells.game,
    cells.pathway,
    cells.intervention,
    cells.replicate,
    intervals.control_cell_id,
    coalesce(intervals.pair_count, 0) as pair_count,
    coalesce(intervals.cluster_count, 0) as cluster_count,
    coalesce(intervals.stratum_count, 0) as stratum_count,
    intervals.mean_difference,
    intervals.standard_error,
    intervals.difference_low,
    intervals.difference_high,
    intervals.mean_difference / anchors.anchor_range as normalised_difference,
    case
        when intervals.standard_error is not null
            then intervals.difference_low > 0 or intervals.difference_high < 0
        when intervals.cluster_count >= 2 and abs(intervals.mean_difference) <= 1e-9 then false
        when pow(2, 1 - intervals.cluster_count) < 0.05 then true
    end as is_beyond_noise
from int_selected_cells as cells
left join intervals on cells.cell_id = intervals.cell_id
left join int_anchors as anchors on cells.evaluation_config_id = anchors.config_id
where cells.pathway != 'none'
