-- Judge reliability: how well the agent's self-score of a step tells the verifier's reward.
--
-- grain: cell, phase
-- key: cell_id, phase
-- columns:
--   cell_id                text
--   model_id               text
--   game                   text
--   pathway                text
--   intervention           text
--   replicate              integer, from 0
--   phase                  text; exploration or evaluation
--   step_count             steps with a verifier reward
--   scored_count           of these, steps with a self-score; every rate below is over them
--   unscored_count         of these, steps without
--   instance_count         instances with a scored step: exploration episodes, or held-out instances at all checkpoints
--   agreement              0 to 1; self-score and reward both above 0, or both not; null without scored steps
--   agreement_low          0 to 1; 95 %, by instances, see int_judge_intervals; null for a single one
--   agreement_high         0 to 1
--   over_confidence        0 to 1; self-score above 0 where the reward is not
--   over_confidence_low    0 to 1
--   over_confidence_high   0 to 1
--   under_confidence       0 to 1; reward above 0 where the self-score is not
--   under_confidence_low   0 to 1
--   under_confidence_high  0 to 1
--   nmae                   from 0; above 1 where self-scores leave the declared range of rewards
--   nmae_low               from 0; 95 %, likewise
--   nmae_high              from 0
--   nmae_observed          0 to 1; on the observed scale, as published; null where a range is 0
--   mean_self_score        game's unit
--   mean_reward            game's unit; over the same steps
-- formula: agreement + over_confidence + under_confidence = 1.
--     nmae = mean |self_score - verifier_reward| / (reward_max - reward_min), the declared range of the evaluation
--     configuration: stable when cells are added. nmae_observed: see int_scaled_errors.
-- source: S3Gym, arXiv 2608.31100
-- left out: steps without a self-score, which are counted and judged neither right nor wrong; failed calls.
with intervals as (
    select
        cell_id,
        phase,
        max(instance_count) as instance_count,
        max(estimate) filter (where measure = 'agreement') as agreement,
        max(low) filter (where measure = 'agreement') as agreement_low,
        max(high) filter (where measure = 'agreement') as agreement_high,
        max(estimate) filter (where measure = 'over_confidence') as over_confidence,
        max(low) filter (where measure = 'over_confidence') as over_confidence_low,
        max(high) filter (where measure = 'over_confidence') as over_confidence_high,
        max(estimate) filter (where measure = 'under_confidence') as under_confidence,
        max(low) filter (where measure = 'under_confidence') as under_confidence_low,
        max(high) filter (where measure = 'under_confidence') as under_confidence_high,
        max(low) filter (where measure = 'absolute_error') as absolute_error_low,
        max(high) filter (where measure = 'absolute_error') as absolute_error_high
    from int_judge_intervals
    where measure in ('agreement', 'over_confidence', 'under_confidence', 'absolute_error')
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
    counts.rewarded_count as step_count,
    counts.scored_count,
    counts.rewarded_count - counts.scored_count as unscored_count,
    coalesce(intervals.instance_count, 0) as instance_count,
    intervals.agreement,
    intervals.agreement_low,
    intervals.agreement_high,
    intervals.over_confidence,
    intervals.over_confidence_low,
    intervals.over_confidence_high,
    intervals.under_confidence,
    intervals.under_confidence_low,
    intervals.under_confidence_high,
    counts.mean_absolute_error / nullif(cells.reward_max - cells.reward_min, 0) as nmae,
    intervals.absolute_error_low / nullif(cells.reward_max - cells.reward_min, 0) as nmae_low,
    intervals.absolute_error_high / nullif(cells.reward_max - cells.reward_min, 0) as nmae_high,
    errors.nmae_observed,
    counts.mean_self_score,
    counts.mean_reward
from int_selected_cells as cells
inner join int_step_counts as counts on cells.cell_id = counts.cell_id
left join intervals on counts.cell_id = intervals.cell_id and counts.phase = intervals.phase
left join int_scaled_errors as errors on counts.cell_id = errors.cell_id and counts.phase = errors.phase
