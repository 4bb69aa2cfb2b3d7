-- Judge discrimination: whether the agent's self-scores tell rewarded steps from others better than chance. Agreement
-- does not say so: where nearly every step is rewarded, a judge that always says yes agrees nearly always.
--
-- grain: cell, phase
-- key: cell_id, phase
-- columns:
--   cell_id         text
--   model_id        text
--   game            text
--   pathway         text
--   intervention    text
--   replicate       integer, from 0
--   phase           text; exploration or evaluation
--   scored_count    steps with a self-score and a verifier reward; everything below is over them
--   positive_count  of these, steps with a reward above 0
--   claimed_count   steps with a self-score above 0
--   both_count      steps with both above 0
--   kappa           -1 to 1; agreement beyond chance: 0 where self-scores or rewards are all on one side; null where
--       both are, on the same side, and without scored steps
--   mcc             -1 to 1; Matthews correlation; null where self-scores or rewards are all on one side
--   auroc           0 to 1; chance that a rewarded step has the higher self-score than one that is not, 0.5 is a coin;
--       null where rewards are all on one side
--   nmae_robust     0 to 1; see int_robust_errors
-- formula: with shares of the scored steps, agreement p = 1 - over - under and p_chance = positive claimed
--     + (1 - positive)(1 - claimed), kappa = (p - p_chance) / (1 - p_chance).
--     mcc = (both - positive claimed) / sqrt(positive (1 - positive) claimed (1 - claimed)).
--     auroc = pairs of a rewarded and another step that the self-scores order rightly, equal ones counted half, by all
--     such pairs: the Mann-Whitney statistic, ties by mid-ranks.
-- source: Cohen (1960), Educational and Psychological Measurement 20, 37-46; Matthews (1975), Biochimica et Biophysica
--     Acta 405, 442-451; Hanley and McNeil (1982), Radiology 143, 29-36
-- left out: intervals; steps of one episode are not independent. Steps without a self-score, and failed calls.
with ordered as (
    select
        cell_id,
        phase,
        self_score,
        step_count,
        positive_count,
        step_count - positive_count as negative_count,
        sum(step_count - positive_count) over (partition by cell_id, phase order by self_score) as negatives_so_far
    from int_self_scores
),

counts as (
    select
        cell_id,
        phase,
        cast(sum(step_count) as double) as n,
        cast(sum(positive_count) as double) as positive,
        cast(coalesce(sum(step_count) filter (where self_score > 0), 0) as double) as claimed,
        cast(coalesce(sum(positive_count) filter (where self_score > 0), 0) as double) as both_above,
        sum(positive_count * (negatives_so_far - negative_count / 2)) as ordered_pairs
    from ordered
    group by cell_id, phase
),

shares as (
    select
        *,
        (n - claimed - positive + 2 * both_above) / n as agreement,
        (positive * claimed + (n - positive) * (n - claimed)) / (n * n) as agreement_by_chance
    from counts
)

select
    cells.cell_id,
    cells.model_id,
    cells.game,
    cells.pathway,
    cells.intervention,
    cells.replicate,
    steps.phase,
    steps.scored_count,
    cast(coalesce(shares.positive, 0) as bigint) as positive_count,
    cast(coalesce(shares.claimed, 0) as bigint) as claimed_count,
    cast(coalesce(shares.both_above, 0) as bigint) as both_count,
    (shares.agreement - shares.agreement_by_chance) / nullif(1 - shares.agreement_by_chance, 0) as kappa,
    (shares.n * shares.both_above - shares.positive * shares.claimed)
    / nullif(
        sqrt(shares.positive * (shares.n - shares.positive)) * sqrt(shares.claimed * (shares.n - shares.claimed)), 0
    ) as mcc,
    shares.ordered_pairs / nullif(shares.positive * (shares.n - shares.positive), 0) as auroc,
    errors.nmae_robust
from int_selected_cells as cells
inner join int_step_counts as steps on cells.cell_id = steps.cell_id
left join shares on steps.cell_id = shares.cell_id and steps.phase = shares.phase
left join int_robust_errors as errors on steps.cell_id = errors.cell_id and steps.phase = errors.phase
