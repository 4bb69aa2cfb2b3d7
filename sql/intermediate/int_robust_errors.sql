-- Error of the self-scores on the scale that most steps keep to: a single wild self-score does not set it.
--
-- grain: cell, phase
-- key: cell_id, phase
-- columns:
--   cell_id      text
--   phase        text; exploration or evaluation
--   nmae_robust  0 to 1; null where the two percentiles of the self-scores, or of the rewards, of the game are equal
-- formula: as nmae_observed of int_observed_errors, with the 1st and the 99th percentile (interpolated) in place
--     of the lowest and the highest value, and what lies beyond them set to 0 or 1
-- left out: how far a self-score lies beyond the percentiles; the percentiles move when cells are added.
with scored as (
    select
        steps.cell_id,
        cells.game,
        steps.phase,
        steps.self_score,
        steps.verifier_reward
    from int_cell_steps as steps
    inner join int_selected_cells as cells on steps.cell_id = cells.cell_id
    where steps.self_score is not null and steps.verifier_reward is not null
),

percentiles as (
    select
        game,
        phase,
        quantile_cont(self_score, [0.01, 0.99]) as of_self_score,
        quantile_cont(verifier_reward, [0.01, 0.99]) as of_reward
    from scored
    group by game, phase
),

scales as (
    select
        game,
        phase,
        of_self_score[1] as self_score_low,
        nullif(of_self_score[2] - of_self_score[1], 0) as self_score_range,
        of_reward[1] as reward_low,
        nullif(of_reward[2] - of_reward[1], 0) as reward_range
    from percentiles
),

placed as (
    select
        scored.cell_id,
        scored.phase,
        (scored.self_score - scales.self_score_low) / scales.self_score_range as self_score,
        (scored.verifier_reward - scales.reward_low) / scales.reward_range as reward
    from scored
    inner join scales on scored.game = scales.game and scored.phase = scales.phase
)

select
    cell_id,
    phase,
    -- greatest() passes over a null
    avg(abs(least(greatest(self_score, 0), 1) - least(greatest(reward, 0), 1))) filter (
        where self_score is not null and reward is not null
    ) as nmae_robust
from placed
group by cell_id, phase
