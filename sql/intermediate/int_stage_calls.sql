-- What the model calls of each stage took, episode by episode. Scripted players make none.
--
-- grain: stage, activity, subject
-- key: stage_key, activity, subject
-- columns:
--   stage_key                  text
--   activity                   text; exploration or evaluation (steps), judgment (looks back at an episode), memory
--       (texts made of the episodes so far, between two explored episodes as well) or correction (better answers to
--       the steps of an episode, to train on)
--   subject                    text; the episode's id; for memory the number of episodes it is made of
--   call_count                 calls that a row rests on, from 1; all is told of calls as they were first made
--   unanswered_count           calls among them that never got an answer
--   unpriced_count             answered calls whose cost nobody knows
--   failed_attempt_count       calls for the same requests that failed before, over all restarts
--   prompt_tokens              tokens; like all sums here over the calls that reported it, null where none did
--   cached_tokens              tokens; part of prompt_tokens that providers served from their caches
--   completion_tokens          tokens
--   reasoning_tokens           tokens; part of completion_tokens
--   cost_usd                   US dollars; without the failed attempts before
--   failed_cost_usd            US dollars; of these failed attempts
--   latency_seconds            seconds
--   prompt_known_count         calls that reported prompt_tokens; the others likewise
--   cached_known_count         calls
--   completion_known_count     calls
--   reasoning_known_count      calls
--   cost_known_count           calls
--   failed_cost_known_count    calls with a failed attempt whose cost is known
--   latency_known_count        calls
--   cacheable_tokens           tokens; prompt_tokens of the calls that reported cached_tokens
with calls as (
    select
        stage_key,
        phase as activity,
        episode_id as subject,
        prompt_tokens,
        cached_tokens,
        completion_tokens,
        reasoning_tokens,
        cost_usd,
        failed_cost_usd,
        latency_seconds,
        failed_attempts,
        error_kind
    from stg_steps
    where failed_attempts is not null
    union all
    select
        stage_key,
        'judgment' as activity,
        episode_id as subject,
        prompt_tokens,
        cached_tokens,
        completion_tokens,
        reasoning_tokens,
        cost_usd,
        failed_cost_usd,
        latency_seconds,
        failed_attempts,
        error_kind
    from stg_judgments
    where failed_attempts is not null
    union all
    select
        stage_key,
        'memory' as activity,
        cast(checkpoint as varchar) as subject,
        prompt_tokens,
        cached_tokens,
        completion_tokens,
        reasoning_tokens,
        cost_usd,
        failed_cost_usd,
        latency_seconds,
        failed_attempts,
        error_kind
    from stg_experiences
    where failed_attempts is not null
    union all
    select
        stage_key,
        'correction' as activity,
        episode_id as subject,
        prompt_tokens,
        cached_tokens,
        completion_tokens,
        reasoning_tokens,
        cost_usd,
        failed_cost_usd,
        latency_seconds,
        failed_attempts,
        error_kind
    from stg_sft_rows
    where failed_attempts is not null
)

select
    stage_key,
    activity,
    subject,
    count(*) as call_count,
    count(error_kind) as unanswered_count,
    count(*) filter (where error_kind is null and cost_usd is null) as unpriced_count,
    cast(sum(failed_attempts) as bigint) as failed_attempt_count,
    cast(sum(prompt_tokens) as bigint) as prompt_tokens,
    cast(sum(cached_tokens) as bigint) as cached_tokens,
    cast(sum(completion_tokens) as bigint) as completion_tokens,
    cast(sum(reasoning_tokens) as bigint) as reasoning_tokens,
    sum(cost_usd) as cost_usd,
    sum(failed_cost_usd) as failed_cost_usd,
    sum(latency_seconds) as latency_seconds,
    count(prompt_tokens) as prompt_known_count,
    count(cached_tokens) as cached_known_count,
    count(completion_tokens) as completion_known_count,
    count(reasoning_tokens) as reasoning_known_count,
    count(cost_usd) as cost_known_count,
    count(failed_cost_usd) as failed_cost_known_count,
    count(latency_seconds) as latency_known_count,
    cast(sum(prompt_tokens) filter (where cached_tokens is not null) as bigint) as cacheable_tokens
from calls
group by stage_key, activity, subject
