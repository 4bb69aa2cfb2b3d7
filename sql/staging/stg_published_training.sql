-- The published training study, a row a game: Qwen3-8B trained on what it judged well itself. Null is not published.
--
-- grain: game
-- key: game
-- columns:
--   game                      text
--   model                     text; trained
--   evaluation_episode_count  held-out episodes a checkpoint
--   checkpoint_count          checkpoints, the first before any training
--   initial_score             game's unit; y_0
--   trained_avg_score         game's unit; mean over the checkpoints after the first
--   trained_max_score         game's unit; the highest of them
--   last_score                game's unit; of the last checkpoint
--   auc_plus                  game's unit x epochs, from 0; area above y_0, epochs 0 to 19 along the axis
--   compared_count            checkpoints after the first
--   above_count               checkpoints among them with a score above y_0
--   note                      text; what is said of the curve
--   source                    text; and its licence
-- source: S3Gym, arXiv 2608.31100, CC BY 4.0; shipped as s3gym/reference/training_qwen3_8b.csv
select
    game,
    model,
    evaluation_episode_count,
    checkpoint_count,
    initial_score,
    trained_avg_score,
    trained_max_score,
    last_score,
    auc_plus,
    compared_count,
    above_count,
    note,
    source
from raw.published_training
