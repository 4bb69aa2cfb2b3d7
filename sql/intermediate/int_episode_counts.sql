-- What the steps of an episode come to; each step is read once for all the counts and rates made of it.
--
-- grain: episode, as far as it has steps
-- key: stage_key, episode_id
-- columns:
--   stage_key          text
--   episode_id         text
--   step_count         steps, failed calls included
--   answered_count     steps with a reply
--   ok_count           steps by action_status: this and the next five sum to answered_count
--   repaired_count     steps
--   unparsable_count   steps
--   invalid_count      steps
--   illegal_count      steps
--   ambiguous_count    steps
--   rewarded_count     steps with a verifier reward
--   scored_count       steps with a verifier reward and a self-score; everything below but the last is over them
--   positive_count     scored steps with a reward above 0
--   claimed_count      scored steps with a self-score above 0
--   both_count         scored steps with both above 0
--   error_sum          game's unit; |self_score - verifier_reward|; like the next two null when there are none
--   self_score_sum     game's unit
--   reward_sum         game's unit
--   history_cut_count  steps whose prompt did not hold all earlier episodes
with steps as (
    select
        stage_key,
        episode_id,
        action_status,
        verifier_reward,
        history_tokens_dropped,
        case when verifier_reward is not null then self_score end as self_score,
        case when self_score is not null then verifier_reward end as reward
    from stg_steps
)

select
    stage_key,
    episode_id,
    count(*) as step_count,
    count(action_status) as answered_count,
    count(*) filter (where action_status = 'ok') as ok_count,
    count(*) filter (where action_status = 'repaired') as repaired_count,
    count(*) filter (where action_status = 'unparsable') as unparsable_count,
    count(*) filter (where action_status = 'invalid') as invalid_count,
    count(*) filter (where action_status = 'illegal') as illegal_count,
    count(*) filter (where action_status = 'ambiguous') as ambiguous_count,
    count(verifier_reward) as rewarded_count,
    count(reward) as scored_count,
    count(*) filter (where reward > 0) as positive_count,
    count(*) filter (where self_score > 0) as claimed_count,
    count(*) filter (where self_score > 0 and reward > 0) as both_count,
    sum(abs(self_score - reward)) as error_sum,
    sum(self_score) as self_score_sum,
    sum(reward) as reward_sum,
    count(*) filter (where history_tokens_dropped > 0) as history_cut_count
from steps
group by stage_key, episode_id
