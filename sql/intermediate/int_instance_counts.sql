-- What a cell's steps on an instance come to. A held-out instance played at several checkpoints is one.
--
-- grain: cell, phase, instance
-- key: cell_id, phase, seed
-- columns:
--   cell_id            text
--   phase              text; exploration or evaluation
--   seed               integer; of the instance
--   step_count         steps, failed calls included; this and the others are as in int_episode_counts
--   answered_count     steps
--   ok_count           steps
--   repaired_count     steps
--   unparsable_count   steps
--   invalid_count      steps
--   illegal_count      steps
--   ambiguous_count    steps
--   rewarded_count     steps
--   scored_count       steps
--   positive_count     steps
--   claimed_count      steps
--   both_count         steps
--   error_sum          game's unit; like the next two null when there are no scored steps
--   self_score_sum     game's unit
--   reward_sum         game's unit
--   history_cut_count  steps
select
    episodes.cell_id,
    episodes.phase,
    episodes.seed,
    cast(sum(counts.step_count) as bigint) as step_count,
    cast(sum(counts.answered_count) as bigint) as answered_count,
    cast(sum(counts.ok_count) as bigint) as ok_count,
    cast(sum(counts.repaired_count) as bigint) as repaired_count,
    cast(sum(counts.unparsable_count) as bigint) as unparsable_count,
    cast(sum(counts.invalid_count) as bigint) as invalid_count,
    cast(sum(counts.illegal_count) as bigint) as illegal_count,
    cast(sum(counts.ambiguous_count) as bigint) as ambiguous_count,
    cast(sum(counts.rewarded_count) as bigint) as rewarded_count,
    cast(sum(counts.scored_count) as bigint) as scored_count,
    cast(sum(counts.positive_count) as bigint) as positive_count,
    cast(sum(counts.claimed_count) as bigint) as claimed_count,
    cast(sum(counts.both_count) as bigint) as both_count,
    sum(counts.error_sum) as error_sum,
    sum(counts.self_score_sum) as self_score_sum,
    sum(counts.reward_sum) as reward_sum,
    cast(sum(counts.history_cut_count) as bigint) as history_cut_count
from int_cell_episodes as episodes
inner join int_episode_counts as counts
    on episodes.stage_key = counts.stage_key and episodes.episode_id = counts.episode_id
group by episodes.cell_id, episodes.phase, episodes.seed
