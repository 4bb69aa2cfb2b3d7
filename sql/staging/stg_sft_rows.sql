-- Exploration steps considered for training, kept or not, and the rule that decided. Self-scores select; no verifier
-- reward is among the columns. The call is the one that was asked for a better action, where that is done.
--
-- grain: update, step
-- key: stage_key, episode_id, step_index
-- columns:
--   stage_key              text; of the update
--   game                   text
--   checkpoint             exploration episodes the update rests on
--   episode_id             text; of the exploration episode
--   step_index             integer, from 0
--   self_score             game's unit; null where the agent gave none
--   signal                 game's unit; what the selection went by; null where it is not known
--   decision               text; kept, corrected (kept with a better answer) or filtered
--   reason                 text; the rule that decided, in a word
--   weight                 number, from 0; of its loss; null when filtered
--   reply                  text; the better answer; null where the step's own is trained on, or nothing is
--   trained_prompt_tokens  tokens; null when filtered
--   trained_reply_tokens   tokens the loss is taken on; null when filtered
--   prompt_tokens          tokens; this and the next five are null where the provider reported nothing, or nothing
--       was asked
--   cached_tokens          tokens; part of prompt_tokens
--   completion_tokens      tokens
--   reasoning_tokens       tokens
--   cost_usd               US dollars
--   latency_seconds        seconds of the call as first made; null for scripted players
--   finish_reason          text
--   error_kind             text; null when the call succeeded, or none was made
--   error_message          text; null when the call succeeded, or none was made
--   dropped_parameters     text; settings the provider does not take, such as seed, temperature; null when it took all
--   failed_attempts        calls for the same request that failed before, over all restarts; null for scripted players
--   failed_cost_usd        US dollars; what those cost, null where nothing was said
select
    stage_key,
    game,
    checkpoint,
    episode_id,
    step_index,
    self_score,
    signal,
    decision,
    reason,
    weight,
    reply,
    trained_prompt_tokens,
    trained_reply_tokens,
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
from raw.sft_rows
