-- What a judge's measures would be without one of the instances it judged on: how far they move says how sure they are.
--
-- grain: cell, phase, measure, instance left out
-- key: cell_id, phase, measure, subset
-- columns:
--   cell_id       text
--   phase         text; exploration or evaluation
--   measure       text; agreement, over_confidence, under_confidence, kappa, mcc or absolute_error
--   subset        text; the seed of the instance left out, or all
--   scored_count  steps of the subset with a self-score and a verifier reward
--   sample_value  game's unit for absolute_error, else -1 to 1; null where it is not defined, as without any step
-- formula: see judge_reliability and judge_discrimination; absolute_error = mean |self_score - verifier_reward|
-- source: Efron and Tibshirani (1993), An Introduction to the Bootstrap, chapter 11
-- left out: instances without a scored step. An instance played at several checkpoints is left out at all of them.
with instances as (
    select
        cell_id,
        phase,
        cast(seed as varchar) as subset,
        cast(scored_count as double) as n,
        cast(positive_count as double) as positive,
        cast(claimed_count as double) as claimed,
        cast(both_count as double) as both_above,
        error_sum
    from int_instance_counts
    where scored_count > 0
),

wholes as (
    select
        cell_id,
        phase,
        'all' as subset,
        sum(n) as n,
        sum(positive) as positive,
        sum(claimed) as claimed,
        sum(both_above) as both_above,
        sum(error_sum) as error_sum
    from instances
    group by cell_id, phase
),

samples as (
    select * from wholes
    union all
    select
        instances.cell_id,
        instances.phase,
        instances.subset,
        wholes.n - instances.n as n,
        wholes.positive - instances.positive as positive,
        wholes.claimed - instances.claimed as claimed,
        wholes.both_above - instances.both_above as both_above,
        wholes.error_sum - instances.error_sum as error_sum
    from instances
    inner join wholes on instances.cell_id = wholes.cell_id and instances.phase = wholes.phase
),

shares as (
    select
        *,
        (claimed - both_above) / nullif(n, 0) as over_confidence,
        (positive - both_above) / nullif(n, 0) as under_confidence,
        (n - claimed - positive + 2 * both_above) / nullif(n, 0) as agreement,
        (positive * claimed + (n - positive) * (n - claimed)) / nullif(n * n, 0) as agreement_by_chance
    from samples
),

measures as (
    select
        cell_id,
        phase,
        subset,
        cast(n as bigint) as scored_count,
        unnest(['agreement', 'over_confidence', 'under_confidence', 'kappa', 'mcc', 'absolute_error']) as measure,
        unnest([
            agreement,
            over_confidence,
            under_confidence,
            (agreement - agreement_by_chance) / nullif(1 - agreement_by_chance, 0),
            (n * both_above - positive * claimed)
            / nullif(sqrt(positive * (n - positive)) * sqrt(claimed * (n - claimed)), 0),
            error_sum / nullif(n, 0)
        ]) as sample_value
    from shares
)

select
    cell_id,
    phase,
    measure,
    subset,
    scored_count,
    sample_value
from measures
