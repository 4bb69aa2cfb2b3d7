-- Model cost: what all cells of a model took together, calls of shared stages counted once; its rows can be added up.
--
-- grain: model, activity
-- key: model_id, activity
-- columns:
--   model_id                   text
--   activity                   text; exploration, evaluation or transfer (steps; transfer is evaluation in games other
--       than the cell's), judgment (looks back at an episode), memory (texts made of the episodes so far, between two
--       explored episodes as well) or correction (better answers to the steps of an episode, to train on)
--   episode_count              episodes played, judged, corrected, or after which a memory was made; those with a call
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
--   mean_latency_seconds       seconds; of a call that reported it
--   usd_per_episode            US dollars; null unless the cost of every answered call is known
--   cached_share               0 to 1; share of prompt tokens that came from a cache; null where nobody reports it
--   prompt_known_count         calls that reported prompt_tokens; the others likewise
--   cached_known_count         calls
--   completion_known_count     calls
--   reasoning_known_count      calls
--   cost_known_count           calls
--   failed_cost_known_count    calls with a failed attempt whose cost is known
--   latency_known_count        calls
-- formula: usd_per_episode = cost_usd / episode_count; cached_share = cached_tokens / prompt_tokens of calls with both
-- left out: that two stages of different runs may have got one answer from the journal: each counts it, though it was
--     paid once. Manifests say what was paid when. Training takes time and no calls: its seconds are in
--     training_updates.
with used_calls as (
    select
        cells.model_id,
        calls.activity,
        calls.call_count,
        calls.unanswered_count,
        calls.unpriced_count,
        calls.failed_attempt_count,
        calls.prompt_tokens,
        calls.cached_tokens,
        calls.completion_tokens,
        calls.reasoning_tokens,
        calls.cost_usd,
        calls.failed_cost_usd,
        calls.latency_seconds,
        calls.prompt_known_count,
        calls.cached_known_count,
        calls.completion_known_count,
        calls.reasoning_known_count,
        calls.cost_known_count,
        calls.failed_cost_known_count,
        calls.latency_known_count,
        calls.cacheable_tokens
    from int_selected_cells as cells
    inner join int_cell_calls as calls on cells.cell_id = calls.cell_id
    -- one cell's transfer may be another's own evaluation, and counts as that
    qualify row_number() over (
        partition by calls.stage_key, if(calls.activity = 'transfer', 'evaluation', calls.activity), calls.subject
        order by calls.activity, cells.cell_id
    ) = 1
)

select
    calls.model_id,
    calls.activity,
    count(*) as episode_count,
    cast(sum(calls.call_count) as bigint) as call_count,
    cast(sum(calls.unanswered_count) as bigint) as unanswered_count,
    cast(sum(calls.unpriced_count) as bigint) as unpriced_count,
    cast(sum(calls.failed_attempt_count) as bigint) as failed_attempt_count,
    cast(sum(calls.prompt_tokens) as bigint) as prompt_tokens,
    cast(sum(calls.cached_tokens) as bigint) as cached_tokens,
    cast(sum(calls.completion_tokens) as bigint) as completion_tokens,
    cast(sum(calls.reasoning_tokens) as bigint) as reasoning_tokens,
    sum(calls.cost_usd) as cost_usd,
    sum(calls.failed_cost_usd) as failed_cost_usd,
    sum(calls.latency_seconds) / sum(calls.latency_known_count) as mean_latency_seconds,
    case when sum(calls.unpriced_count) = 0 then sum(calls.cost_usd) / count(*) end as usd_per_episode,
    sum(calls.cached_tokens) / nullif(sum(calls.cacheable_tokens), 0) as cached_share,
    cast(sum(calls.prompt_known_count) as bigint) as prompt_known_count,
    cast(sum(calls.cached_known_count) as bigint) as cached_known_count,
    cast(sum(calls.completion_known_count) as bigint) as completion_known_count,
    cast(sum(calls.reasoning_known_count) as bigint) as reasoning_known_count,
    cast(sum(calls.cost_known_count) as bigint) as cost_known_count,
    cast(sum(calls.failed_cost_known_count) as bigint) as failed_cost_known_count,
    cast(sum(calls.latency_known_count) as bigint) as latency_known_count
from used_calls as calls
group by calls.model_id, calls.activity
