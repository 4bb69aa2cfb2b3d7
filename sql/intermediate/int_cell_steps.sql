-- Steps of the episodes a cell uses: the numbers, without the texts.
--
-- grain: cell, step
-- key: cell_id, stage_key, checkpoint, episode_id, step_index
-- columns:
--   cell_id                 text
--   stage_key               text
--   phase                   text; exploration or evaluation
--   checkpoint              exploration episodes behind the agent when the stage began, from 0
--   episode_id              text
--   seed                    integer; of the instance
--   step_index              integer, from 0
--   action_status           text; null when the call failed
--   self_score              game's unit; null where the agent gave none
--   verifier_reward         game's unit; null when the call failed
--   error_kind              text; null when the call succeeded
--   history_tokens_dropped  tokens, from 0
select
    episodes.cell_id,
    episodes.stage_key,
    episodes.phase,
    episodes.checkpoint,
    episodes.episode_id,
    episodes.seed,
    steps.step_index,
    steps.action_status,
    steps.self_score,
    steps.verifier_reward,
    steps.error_kind,
    steps.history_tokens_dropped
from int_cell_episodes as episodes
inner join stg_steps as steps
    on episodes.stage_key = steps.stage_key and episodes.episode_id = steps.episode_id
