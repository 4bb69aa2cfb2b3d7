-- What the steps of a cell come to, phase by phase; each step is read once for all the rates made of it.
--
-- grain: cell, phase
-- key: cell_id, phase
-- columns:
--   cell_id              text
--   phase                text; exploration or evaluation
--   step_count           steps, failed calls included
--   failed_call_count    steps whose call failed
--   answered_count       steps with a reply
--   ok_count             steps by action_status: this and the next five sum to answered_count
--   repaired_count       steps
--   unparsable_count     steps
--   invalid_count        steps
--   illegal_count        steps
--   ambiguous_count      steps
--   rewarded_count       steps with a verifier reward
--   scored_count         steps with a verifier reward and a self-score
--   agreement_count      scored steps whose self-score and reward are both above 0 or both not
--   over_count           scored steps with a self-score above 0 and a reward that is not
--   under_count          scored steps with a reward above 0 and a self-score that is not
--   mean_absolute_error  game's unit; of the self-score, over scored steps; null when there are none
--   mean_self_score      game's unit; over scored steps
--   mean_reward          game's unit; over scored steps, so that it compares with mean_self_score
--   history_cut_count    steps whose prompt did not hold all earlier episodes
select
    cell_id,
    phase,
    count(*) as step_count,
    count(*) filter (where action_status is null) as failed_call_count,
    count(action_status) as answered_count,
    count(*) filter (where action_status = 'ok') as ok_count,
    count(*) filter (where action_status = 'repaired') as repaired_count,
    count(*) filter (where action_status = 'unparsable') as unparsable_count,
    count(*) filter (where action_status = 'invalid') as invalid_count,
    count(*) filter (where action_status = 'illegal') as illegal_count,
    count(*) filter (where action_status = 'ambiguous') as ambiguous_count,
    count(verifier_reward) as rewarded_count,
    count(*) filter (where self_score is not null and verifier_reward is not null) as scored_count,
    count(*) filter (where (self_score > 0) = (verifier_reward > 0)) as agreement_count,
    count(*) filter (where self_score > 0 and verifier_reward <= 0) as over_count,
    count(*) filter (where self_score <= 0 and verifier_reward > 0) as under_count,
    avg(abs(self_score - verifier_reward)) as mean_absolute_error,
    avg(self_score) filter (where verifier_reward is not null) as mean_self_score,
    avg(verifier_reward) filter (where self_score is not null) as mean_reward,
    count(*) filter (where history_tokens_dropped > 0) as history_cut_count
from int_cell_steps
group by cell_id, phase
