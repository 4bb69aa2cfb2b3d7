-- Plays from reset to end.
--
-- grain: episode
-- key: stage_key, episode_id
-- columns:
--   stage_key          text
--   game               text
--   phase              text; exploration or evaluation
--   checkpoint         exploration episodes behind the agent when the stage began, from 0
--   episode_id         text
--   episode_index      integer, from 0; within the cell for exploration, within the checkpoint for evaluation
--   seed               integer; of the instance
--   instance_id        text; equal ids are the same task
--   config             text; the configuration played, JSON
--   game_version       integer, from 1
--   final_score        game's unit; null when the episode is invalid
--   is_success         true when final_score reaches the game's success score; null when the episode is invalid
--   step_count         steps, from 0
--   end_reason         text; the rule that ended it, horizon, or an error kind
--   final_observation  text; the state after the last step
--   status             text; valid, or invalid when a call failed
select
    stage_key,
    game,
    phase,
    checkpoint,
    episode_id,
    episode_index,
    seed,
    instance_id,
    config,
    game_version,
    final_score,
    is_success,
    step_count,
    end_reason,
    final_observation,
    status
from raw.episodes
