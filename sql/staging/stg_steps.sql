-- Model turns.
--
-- grain: step
-- key: stage_key, episode_id, step_index
-- columns:
--   stage_key               text
--   game                    text
--   phase                   text; exploration or evaluation
--   checkpoint              exploration episodes behind the agent when the stage began, from 0
--   episode_id              text
--   step_index              integer, from 0
--   observation             text; the state as the agent saw it
--   reply                   text; raw; null when the call failed
--   reasoning               text; thinking returned apart from the reply; null when there was none
--   action                  text; canonical; null when none could be used
--   action_status           text; ok, repaired, unparsable, invalid, illegal or ambiguous; null when the call failed
--   self_score              game's unit; the agent's estimate of verifier_reward; null where it gave no finite number
--   feedback                text; what the environment answered
--   verifier_reward         game's unit; null when the call failed
--   is_terminated           true when the rules ended the episode after this step
--   is_truncated            true when the horizon did
--   history_tokens_dropped  tokens of earlier episodes that did not fit the prompt, from 0
--   prompt_tokens           tokens; this and the next five are null where the provider reported nothing
--   cached_tokens           tokens; part of prompt_tokens
--   completion_tokens       tokens
--   reasoning_tokens        tokens
--   cost_usd                US dollars
--   latency_seconds         seconds of the call as first made; null for scripted players
--   finish_reason           text
--   error_kind              text; null when the call succeeded
--   error_message           text; null when the call succeeded
--   dropped_parameters      text; settings the provider does not take, such as seed, temperature; null when it took all
--   failed_attempts         calls for the same request that failed before, over all restarts; null for scripted players
--   failed_cost_usd         US dollars; what those cost, null where nothing was said
select
    stage_key,
    game,
    phase,
    checkpoint,
    episode_id,
    step_index,
    observation,
    reply,
    reasoning,
    action,
    action_status,
    self_score,
    feedback,
    verifier_reward,
    is_terminated,
    is_truncated,
    history_tokens_dropped,
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
from raw.steps
