-- The agent's retrospective view of its exploration episodes.
--
-- grain: exploration episode
-- key: stage_key, episode_id
-- columns:
--   stage_key             text; of the judging stage
--   game                  text
--   checkpoint            exploration episodes behind the agent when the judged block began, from 0
--   episode_id            text; of the episode judged
--   reply                 text; raw; null when the call failed
--   expected_final_score  game's unit; null where the agent gave no finite number
--   success_belief        probability, 0 to 1; null where the agent gave none
--   retain                text; null where the agent gave none
--   avoid                 text; null where the agent gave none
--   prompt_tokens         tokens; this and the next five are null where the provider reported nothing
--   cached_tokens         tokens; part of prompt_tokens
--   completion_tokens     tokens
--   reasoning_tokens      tokens
--   cost_usd              US dollars
--   latency_seconds       seconds of the call as first made; null for scripted players
--   finish_reason         text
--   error_kind            text; null when the call succeeded
--   error_message         text; null when the call succeeded
--   dropped_parameters    text; settings the provider does not take, such as seed, temperature; null when it took all
--   failed_attempts       calls for the same request that failed before, over all restarts; null for scripted players
--   failed_cost_usd       US dollars; what those cost, null where nothing was said
select
    stage_key,
    game,
    checkpoint,
    episode_id,
    reply,
    expected_final_score,
    success_belief,
    retain,
    avoid,
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
from raw.judgments
