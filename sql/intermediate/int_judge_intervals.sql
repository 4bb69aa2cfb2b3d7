-- How sure a cell's numbers are of what its agent's self-scores are worth. Steps of one episode are not independent, so
-- whole instances are what varies: each is left out once.
--
-- grain: cell, phase, measure
-- key: cell_id, phase, measure
-- columns:
--   cell_id         text
--   phase           text; exploration or evaluation
--   measure         text; see int_judge_samples, and auroc
--   instance_count  instances with a scored step, from 1: exploration episodes, or held-out instances over all
--       checkpoints
--   estimate        of all instances; game's unit for absolute_error, else -1 to 1; null where it is not defined
--   standard_error  the same unit, above 0; null for a single instance, without spread, and where the measure is not
--       defined without some instance
--   low             95 %; null where nothing can be said
--   high            the same
-- formula: standard_error^2 = (G - 1) / G * sum over the G instances of (value without it - mean of these)^2.
--     estimate -+ t(G - 1) * standard_error, cut off where the measure cannot be. For shares (agreement,
--     over_confidence, under_confidence) Wilson's interval with t(G - 1) for z and as many trials as a share with this
--     standard error would rest on were steps independent: p (1 - p) / standard_error^2, at most the scored steps;
--     where all steps are alike, which shows no spread, as many as instances. Of 300 simulated cells whose episodes
--     differ, these intervals hold the true value in 92 to 99 % with five episodes a cell, in 95 to 96 % with thirty.
-- source: Wilson (1927), Journal of the American Statistical Association 22, 209-212; Franco, Little, Louis and Slud
--     (2019), Journal of Survey Statistics and Methodology 7, 334-364, for the number of trials
-- left out: what another replicate would have explored. A cell is one replicate, and only its instances vary in it.
with samples as (
    select * from int_judge_samples
    union all
    select * from int_order_samples
),

spreads as (
    select
        cell_id,
        phase,
        measure,
        count(*) filter (where subset != 'all') as instance_count,
        max(scored_count) filter (where subset = 'all') as scored_count,
        max(sample_value) filter (where subset = 'all') as estimate,
        case
            when count(*) filter (where subset != 'all') = count(sample_value) filter (where subset != 'all')
                then sqrt(
                    (count(*) filter (where subset != 'all') - 1)
                    * var_pop(sample_value) filter (where subset != 'all')
                )
        end as spread
    from samples
    group by cell_id, phase, measure
),

errors as (
    select
        spreads.cell_id,
        spreads.phase,
        spreads.measure,
        spreads.instance_count,
        spreads.scored_count,
        spreads.estimate,
        -- equal values may differ by rounding
        case when spreads.spread > 1e-9 then spreads.spread end as standard_error,
        t.t_quantile
    from spreads
    asof left join int_t_quantiles as t on spreads.instance_count - 1 >= t.degrees_of_freedom
),

trials as (
    select
        *,
        measure in ('agreement', 'over_confidence', 'under_confidence') as is_share,
        case
            when estimate in (0, 1) then instance_count
            else least(coalesce(estimate * (1 - estimate) / pow(standard_error, 2), scored_count), scored_count)
        end as trial_count,
        t_quantile * t_quantile / trial_count as z2_over_n
    from errors
),

bounded as (
    select
        *,
        case
            when is_share then (estimate + z2_over_n / 2) / (1 + z2_over_n)
            else estimate
        end as centre,
        case
            when is_share then sqrt(z2_over_n * (estimate * (1 - estimate) + z2_over_n / 4)) / (1 + z2_over_n)
            else t_quantile * standard_error
        end as reach
    from trials
)

select
    cell_id,
    phase,
    measure,
    instance_count,
    estimate,
    standard_error,
    -- greatest() and least() pass over a null
    case
        when reach is null then null
        when measure in ('kappa', 'mcc') then greatest(centre - reach, -1)
        else greatest(centre - reach, 0)
    end as low,
    case
        when reach is null then null
        when measure = 'absolute_error' then centre + reach
        else least(centre + reach, 1)
    end as high
from bounded
