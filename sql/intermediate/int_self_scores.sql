-- Which self-scores a cell gave, and how often the verifier rewarded the steps that got them.
--
-- grain: cell, phase, self-score
-- key: cell_id, phase, self_score
-- columns:
--   cell_id         text
--   phase           text; exploration or evaluation
--   self_score      game's unit
--   step_count      steps with this self-score and a verifier reward, from 1
--   positive_count  of these, steps with a reward above 0
select
    cell_id,
    phase,
    self_score,
    count(*) as step_count,
    count(*) filter (where verifier_reward > 0) as positive_count
from int_cell_steps
where self_score is not null and verifier_reward is not null
group by cell_id, phase, self_score
