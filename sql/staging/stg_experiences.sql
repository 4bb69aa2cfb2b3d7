-- What a pathway made of the episodes so far.
--
-- grain: stage, checkpoint
-- key: stage_key, checkpoint
-- columns:
--   stage_key           text
--   game                text
--   pathway             text; any where no pathway's experience is in it, such as a reference guide
--   checkpoint          exploration episodes it rests on, from 0
--   kind                text; history, memory or weights, with what an intervention changed, such as history, oracle
--       scores; or what it put in its place, such as reference guide
--   text                text; the memory; null for history, which is the steps themselves, and for weights
--   path                text; folder of the weights within the data folder; null for texts and before any update
--   is_updated          true where weights changed with these episodes, false where they stayed; null for texts
--   content_hash        text; SHA-256 of what the agent gets to read, or of the weights
--   token_count         tokens of what the agent gets to read; tokens trained on, for weights
--   source_episode_ids  list of text
--   steps_kept          steps
--   steps_dropped       steps that did not fit the history limit, or were not trained on
--   tokens_dropped      tokens of these
--   prompt_tokens       tokens; this and the next five are null where the provider reported nothing
--   cached_tokens       tokens; part of prompt_tokens
--   completion_tokens   tokens
--   reasoning_tokens    tokens
--   cost_usd            US dollars
--   latency_seconds     seconds of the call as first made; null for scripted players
--   finish_reason       text
--   error_kind          text; null when the call succeeded
--   error_message       text; null when the call succeeded
--   dropped_parameters  text; settings the provider does not take, such as seed, temperature; null when it took all
--   failed_attempts     calls for the same request that failed before, over all restarts; null for scripted players
--   failed_cost_usd     US dollars; what those cost, null where nothing was said
select
    stage_key,
    game,
    pathway,
    checkpoint,
    kind,
    text,
    path,
    is_updated,
    content_hash,
    token_count,
    source_episode_ids,
    steps_kept,
    steps_dropped,
    tokens_dropped,
    prompt_tokens,
    cached_tokens,
    completion_tokens,
    reasoning_tokens,
    cost_usd,
    latency_seconds,
    finish_reason,
    error_kind,
    error_message,
    dropped_parameters,
    failed_attempts,
    failed_cost_usd
from raw.experiences
