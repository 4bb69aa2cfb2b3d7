-- Mean paired differences with their intervals: of cells and their controls, of games before and after experience, and
-- of cells with and without a link replaced.
--
-- grain: difference
-- key: difference_id
-- columns:
--   difference_id    text; see int_paired_evaluations, int_paired_transfers and int_intervention_pairs
--   pair_count       pairs of episodes on the same instance, from 1
--   cluster_count    independent ones among them: different instances, or all where instances are strata
--   stratum_count    1; where each checkpoint plays all instances the game has (trust), their number
--   mean_difference  game's unit
--   standard_error   game's unit, above 0; robust to the cluster; null where nothing is left to vary
--   difference_low   game's unit; 95 % t interval, cluster_count - stratum_count degrees of freedom
--   difference_high  game's unit
--   is_beyond_noise  true when the interval excludes 0; null when nothing can be said
-- formula: standard_error = sqrt(G / (G - S) * sum over the G clusters of (sum of residuals)^2) / pair_count, where
--     a residual is the distance from the mean of its stratum, of which there are S. Instances drawn at random are
--     one stratum and vary; instances that are all there is do not: what varies is how a checkpoint turns out on each.
--     Without spread there is no interval: no difference at all is not beyond noise, and the same difference again on
--     G clusters is, once the two-sided sign test says so: 2^(1 - G) < 0.05.
-- source: Liang and Zeger (1986), Biometrika 73, 13-22, with the usual small-sample factor; Cochran (1977), Sampling
--     Techniques, chapter 5, for strata
with pairs as (
    select
        difference_id,
        stratum,
        cluster_id,
        difference
    from int_paired_evaluations
    union all
    select
        difference_id,
        stratum,
        cluster_id,
        difference
    from int_paired_transfers
    union all
    select
        difference_id,
        stratum,
        cluster_id,
        difference
    from int_paired_refreshes
    union all
    select
        difference_id,
        stratum,
        cluster_id,
        difference
    from int_intervention_pairs
),

residuals as (
    select
        difference_id,
        stratum,
        cluster_id,
        difference,
        difference - avg(difference) over (partition by difference_id, stratum) as residual
    from pairs
),

clusters as (
    select
        difference_id,
        stratum,
        cluster_id,
        count(*) as pair_count,
        sum(difference) as difference,
        sum(residual) as residual
    from residuals
    group by difference_id, stratum, cluster_id
),

spreads as (
    select
        difference_id,
        cast(sum(pair_count) as bigint) as pair_count,
        count(*) as cluster_count,
        count(distinct stratum) as stratum_count,
        count(*) - count(distinct stratum) as degrees_of_freedom,
        sum(difference) / sum(pair_count) as mean_difference,
        sqrt(count(*) / nullif(count(*) - count(distinct stratum), 0) * sum(residual * residual)) as residual_size
    from clusters
    group by difference_id
),

errors as (
    select
        difference_id,
        pair_count,
        cluster_count,
        stratum_count,
        degrees_of_freedom,
        mean_difference,
        -- a sum of equal residuals may end a rounding error away from 0
        case when residual_size > 1e-9 then residual_size / pair_count end as standard_error
    from spreads
),

bounded as (
    select
        errors.difference_id,
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
    difference_id,
    pair_count,
    cluster_count,
    stratum_count,
    mean_difference,
    standard_error,
    difference_low,
    difference_high,
    case
        when standard_error is not null then difference_low > 0 or difference_high < 0
        when cluster_count >= 2 and abs(mean_difference) <= 1e-9 then false
        when pow(2, 1 - cluster_count) < 0.05 then true
    end as is_beyond_noise
from bounded
