-- Which self-scores a cell gave to which verifier rewards, and how often.
--
-- grain: cell, phase, self-score, reward
-- key: cell_id, phase, self_score, verifier_reward
-- columns:
--   cell_id          text
--   phase            text; exploration or evaluation
--   self_score       game's unit
--   verifier_reward  game's unit
--   step_count       steps, from 1
-- left out: steps without a self-score or a reward.
select
    cell_id,
    phase,
    self_score,
    verifier_reward,
    count(*) as step_count
from int_cell_steps
where self_score is not null and verifier_reward is not null
group by cell_id, phase, self_score, verifier_reward
