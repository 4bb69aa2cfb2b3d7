-- Published scores of agents that learn in context: a row a game, pathway and model.
--
-- grain: game, pathway, model
-- key: game, pathway, model
-- columns:
--   game                       text
--   pathway                    text; history or memory
--   model                      text; as published
--   exploration_episode_count  episodes
--   evaluation_interval        exploration episodes between two checkpoints
--   evaluation_episode_count   held-out episodes a checkpoint
--   checkpoint_count           checkpoints, the first before any experience
--   avg_score                  game's unit; mean over the checkpoints
--   max_score                  game's unit; the highest of them
--   auc_plus                   game's unit x episodes, from 0; area above y_0
--   unit                       text; of the scores
--   note                       text; what is open about the published scores of the game; null where nothing is known
--   source                     text; and its licence
-- source: S3Gym, arXiv 2608.31100, table 4, CC BY 4.0; shipped as s3gym/reference/improvement.csv
select
    game,
    pathway,
    model,
    exploration_episode_count,
    evaluation_interval,
    evaluation_episode_count,
    checkpoint_count,
    avg_score,
    max_score,
    auc_plus,
    unit,
    nullif(note, '') as note,
    source
from raw.published_improvement
