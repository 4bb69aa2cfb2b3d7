-- What the model calls a cell uses took, episode by episode. Those of a shared stage, such as the evaluation before any
-- experience, appear once in each cell that uses it.
--
-- grain: cell, stage, activity, subject
-- key: cell_id, stage_key, activity, subject
-- columns:
--   cell_id                    text
--   stage_key                  text
--   activity                   text; exploration, evaluation or transfer (steps; transfer is evaluation in games other
--       than the cell's), judgment (looks back at an episode), memory (texts made of the episodes so far, between two
--       explored episodes as well) or correction (better answers to the steps of an episode, to train on)
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
-- left out: evaluation episodes beyond the cell's own budget, which belong to bigger ones.
select
    links.cell_id,
    calls.stage_key,
    if(links.stage = 'transfer', 'transfer', calls.activity) as activity,
    calls.subject,
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
from int_cell_links as links
inner join int_stage_calls as calls on links.stage_key = calls.stage_key
left join stg_episodes as episodes
    on calls.activity = 'evaluation' and calls.stage_key = episodes.stage_key and calls.subject = episodes.episode_id
where coalesce(episodes.episode_index < links.episode_count, true)
