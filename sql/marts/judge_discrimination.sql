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
--   instance_count  instances with a scored step: exploration episodes, or held-out instances at all checkpoints
--   kappa           -1 to 1; agreement beyond chance: 0 where self-scores or rewards are all on one side; null where
--       both are, on the same side, and without scored steps
--   kappa_low       -1 to 1; 95 %, by instances, see int_judge_intervals; null for a single one, without spread, and
--       where kappa is not defined without some instance
--   kappa_high      -1 to 1
--   mcc             -1 to 1; Matthews correlation; null where self-scores or rewards are all on one side
--   mcc_low         -1 to 1; likewise
--   mcc_high        -1 to 1
--   auroc           0 to 1; chance that a rewarded step has the higher self-score than one that is not, 0.5 is a coin;
--       null where rewards are all on one side
--   auroc_low       0 to 1; likewise
--   auroc_high      0 to 1
--   nmae_robust     0 to 1; see int_scaled_errors
-- formula: with shares of the scored steps, agreement p = 1 - over - under and p_chance = positive claimed
--     + (1 - positive)(1 - claimed), kappa = (p - p_chance) / (1 - p_chance).
--     mcc = (both - positive claimed) / sqrt(positive (1 - positive) claimed (1 - claimed)).
--     auroc = pairs of a rewarded and another step that the self-scores order rightly, equal ones counted half, by all
--     such pairs: the Mann-Whitney statistic, ties by mid-ranks.
-- source: Cohen (1960), Educational and Psychological Measurement 20, 37-46; Matthews (1975), Biochimica et Biophysica
--     Acta 405, 442-451; Hanley and McNeil (1982), Radiology 143, 29-36
-- left out: steps without a self-score, and failed calls.
with intervals as (
    select
        cell_id,
        phase,
        max(instance_count) as instance_count,
        max(estimate) filter (where measure = 'kappa') as kappa,
        max(low) filter (where measure = 'kappa') as kappa_low,
        max(high) filter (where measure = 'kappa') as kappa_high,
        max(estimate) filter (where measure = 'mcc') as mcc,
        max(low) filter (where measure = 'mcc') as mcc_low,
        max(high) filter (where measure = 'mcc') as mcc_high,
        max(estimate) filter (where measure = 'auroc') as auroc,
        max(low) filter (where measure = 'auroc') as auroc_low,
        max(high) filter (where measure = 'auroc') as auroc_high
    from int_judge_intervals
    group by cell_id, phase
)

select
    cells.cell_id,
    cells.model_id,
    cells.game,
    cells.pathway,
    cells.intervention,
    cells.replicate,
    counts.phase,
    counts.scored_count,
    counts.positive_count,
    counts.claimed_count,
    counts.both_count,
    coalesce(intervals.instance_count, 0) as instance_count,
    intervals.kappa,
    intervals.kappa_low,
    intervals.kappa_high,
    intervals.mcc,
    intervals.mcc_low,
    intervals.mcc_high,
    intervals.auroc,
    intervals.auroc_low,
    intervals.auroc_high,
    errors.nmae_robust
from int_selected_cells as cells
inner join int_step_counts as counts on cells.cell_id = counts.cell_id
left join intervals on counts.cell_id = intervals.cell_id and counts.phase = intervals.phase
left join int_scaled_errors as errors on counts.cell_id = errors.cell_id and counts.phase = errors.phase
