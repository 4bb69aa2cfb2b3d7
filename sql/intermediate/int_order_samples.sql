-- What the area under a judge's curve would be without one of the instances it judged on; see int_judge_samples.
--
-- grain: cell, phase, instance left out
-- key: cell_id, phase, subset
-- columns:
--   cell_id       text
--   phase         text; exploration or evaluation
--   measure       text; auroc
--   subset        text; the seed of the instance left out, or all
--   scored_count  scored steps of all instances
--   sample_value  0 to 1 for all of them, or about; null where rewards are all on one side
-- formula: auroc = mean over rewarded steps of negatives_below = mean over the others of positives_above (see
--     int_self_scores). A step adds to it how far its own share is from auroc, by the number of steps on its side.
--     Without an instance it is auroc - G / (G - 1) times what the steps of the instance add, to first order.
-- source: Obuchowski (1997), Biometrics 53, 567-578
with areas as (
    select
        cell_id,
        phase,
        cast(sum(step_count) as bigint) as scored_count,
        sum(positive_count) as positives,
        sum(step_count - positive_count) as negatives,
        sum(positive_count * negatives_below) / nullif(sum(positive_count), 0) as auroc
    from int_self_scores
    group by cell_id, phase
),

added as (
    select
        scores.cell_id,
        scores.phase,
        scores.self_score,
        (scores.negatives_below - areas.auroc) / areas.positives as by_positive,
        (scores.positives_above - areas.auroc) / areas.negatives as by_negative
    from int_self_scores as scores
    inner join areas on scores.cell_id = areas.cell_id and scores.phase = areas.phase
),

instances as (
    select
        steps.cell_id,
        steps.phase,
        cast(steps.seed as varchar) as subset,
        sum(if(steps.verifier_reward > 0, added.by_positive, added.by_negative)) as addition,
        count(*) over (partition by steps.cell_id, steps.phase) as instance_count
    from int_cell_steps as steps
    inner join added
        on steps.cell_id = added.cell_id and steps.phase = added.phase and steps.self_score = added.self_score
    where steps.verifier_reward is not null
    group by steps.cell_id, steps.phase, steps.seed
)

select
    cell_id,
    phase,
    'auroc' as measure,
    'all' as subset,
    scored_count,
    auroc as sample_value
from areas
union all
select
    areas.cell_id,
    areas.phase,
    'auroc' as measure,
    instances.subset,
    areas.scored_count,
    areas.auroc - instances.addition * instances.instance_count / nullif(instances.instance_count - 1, 0)
        as sample_value
from areas
inner join instances on areas.cell_id = instances.cell_id and areas.phase = instances.phase
