-- What each run asked for: one row for each cell of each run; the same cell may belong to several runs.
--
-- grain: run, cell
-- key: run_id, cell_id
-- columns:
--   run_id                     text
--   cell_id                    text; ends in a hash of every setting that can change the cell's results
--   model_id                   text; as the user wrote it
--   model_revision             text; null where the back end has none
--   game                       text
--   game_version               integer, from 1
--   pathway                    text; none, history, memory or training
--   intervention               text; main, or the link of the chain that was replaced
--   replicate                  integer, from 0
--   base_seed                  integer
--   exploration_config         text; JSON
--   evaluation_config          text; JSON
--   exploration_config_id      text; hash of game, version and configuration
--   evaluation_config_id       text; the same, joins stg_anchors.config_id
--   prompt_version             integer, from 1
--   temperature                number; null is the provider's default
--   max_output_tokens          tokens a reply
--   exploration_episode_count  episodes; 0 for the pathway none
--   evaluation_interval        exploration episodes between two checkpoints
--   evaluation_episode_count   held-out episodes a checkpoint
--   evaluation_set             text; fixed or fresh
--   history_token_limit        tokens
--   history_cut                text; newest or oldest, the end that is cut at the limit
--   explorer_id                text; who explored in its place; null where the model explored itself
--   training                   text; JSON, how experience became weights; null where it did not
--   score_aggregation          text; sum or mean of an episode's rewards
--   reward_min                 game's unit; declared lowest reward of one evaluation step
--   reward_max                 game's unit; declared highest
--   smallest_positive_score    game's unit; of one episode
--   is_instances_shared        true where the game has too few instances to keep the phases apart
select
    run_id,
    cell_id,
    model_id,
    model_revision,
    game,
    game_version,
    pathway,
    intervention,
    replicate,
    base_seed,
    exploration_config,
    evaluation_config,
    exploration_config_id,
    evaluation_config_id,
    prompt_version,
    temperature,
    max_output_tokens,
    exploration_episode_count,
    evaluation_interval,
    evaluation_episode_count,
    evaluation_set,
    history_token_limit,
    history_cut,
    explorer_id,
    training,
    score_aggregation,
    reward_min,
    reward_max,
    smallest_positive_score,
    is_instances_shared
from raw.cells
