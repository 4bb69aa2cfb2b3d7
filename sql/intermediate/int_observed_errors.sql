-- Error of the self-scores on the scale that was observed, as published: both self-scores and rewards are stretched
-- to 0 to 1 by the lowest and highest values of their game before they are compared.
--
-- grain: cell, phase
-- key: cell_id, phase
-- columns:
--   cell_id        text
--   phase          text; exploration or evaluation
--   nmae_observed  0 to 1; null where all self-scores or all rewards of the game are equal
-- formula: mean |(s - s_min) / (s_max - s_min) - (r - r_min) / (r_max - r_min)|, extremes over all scored steps of the
--     game in the same phase, all selected cells together
-- source: S3Gym, arXiv 2608.31100
-- left out: a comparison across selections; adding a cell can move the extremes, and with them every row.
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

extremes as (
    select
        game,
        phase,
        min(self_score) as self_score_min,
        nullif(max(self_score) - min(self_score), 0) as self_score_range,
        min(verifier_reward) as reward_min,
        nullif(max(verifier_reward) - min(verifier_reward), 0) as reward_range
    from scored
    group by game, phase
)

select
    scored.cell_id,
    scored.phase,
    avg(abs(
        (scored.self_score - extremes.self_score_min) / extremes.self_score_range
        - (scored.verifier_reward - extremes.reward_min) / extremes.reward_range
    )) as nmae_observed
from scored
inner join extremes on scored.game = extremes.game and scored.phase = extremes.phase
group by scored.cell_id, scored.phase
