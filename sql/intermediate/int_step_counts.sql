-- What the steps of a cell come to, phase by phase.
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
--   positive_count       scored steps with a reward above 0
--   claimed_count        scored steps with a self-score above 0
--   both_count           scored steps with both above 0
--   mean_absolute_error  game's unit; of the self-score, over scored steps; null when there are none
--   mean_self_score      game's unit; over scored steps
--   mean_reward          game's unit; over scored steps, so that it compares with mean_self_score
--   history_cut_count    steps whose prompt did not hold all earlier episodes
select
    cell_id,
    phase,
    cast(sum(step_count) as bigint) as step_count,
    cast(sum(step_count - answered_count) as bigint) as failed_call_count,
    cast(sum(answered_count) as bigint) as answered_count,
    cast(sum(ok_count) as bigint) as ok_count,
    cast(sum(repaired_count) as bigint) as repaired_count,
    cast(sum(unparsable_count) as bigint) as unparsable_count,
    cast(sum(invalid_count) as bigint) as invalid_count,
    cast(sum(illegal_count) as bigint) as illegal_count,
    cast(sum(ambiguous_count) as bigint) as ambiguous_count,
    cast(sum(rewarded_count) as bigint) as rewarded_count,
    cast(sum(scored_count) as bigint) as scored_count,
    cast(sum(positive_count) as bigint) as positive_count,
    cast(sum(claimed_count) as bigint) as claimed_count,
    cast(sum(both_count) as bigint) as both_count,
    sum(error_sum) / nullif(sum(scored_count), 0) as mean_absolute_error,
    sum(self_score_sum) / nullif(sum(scored_count), 0) as mean_self_score,
    sum(reward_sum) / nullif(sum(scored_count), 0) as mean_reward,
    cast(sum(history_cut_count) as bigint) as history_cut_count
from int_instance_counts
group by cell_id, phase
