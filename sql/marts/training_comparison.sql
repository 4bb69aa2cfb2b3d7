-- Training comparison: trained cells beside the published study of the same game, and in what the two differ.
--
-- grain: trained cell of a game with a published row
-- key: cell_id
-- columns:
--   cell_id                      text
--   model_id                     text
--   game                         text
--   pathway                      text
--   intervention                 text
--   replicate                    integer, from 0
--   initial_score                game's unit; y_0
--   published_initial_score      game's unit; all that is published is null where it was not
--   trained_avg_score            game's unit; mean over updated checkpoints
--   published_trained_avg_score  game's unit
--   trained_max_score            game's unit
--   published_trained_max_score  game's unit
--   last_score                   game's unit
--   published_last_score         game's unit
--   auc_plus_updates             game's unit x updates
--   published_auc_plus           game's unit x epochs
--   above_count                  updated checkpoints above y_0
--   compared_count               of so many
--   published_above_count        checkpoints after the first above y_0
--   published_compared_count     of so many
--   note                         text; what is said of the published curve
--   differences                  text; what stands between the two rows, as far as this folder knows
--   source                       text; of the published row, and its licence
-- source: S3Gym, arXiv 2608.31100, CC BY 4.0; see stg_published_training and training_study
-- left out: games without a published row; a difference of the numbers, which would compare unlike things.
select
    study.cell_id,
    study.model_id,
    study.game,
    study.pathway,
    study.intervention,
    study.replicate,
    study.initial_score,
    published.initial_score as published_initial_score,
    study.trained_avg_score,
    published.trained_avg_score as published_trained_avg_score,
    study.trained_max_score,
    published.trained_max_score as published_trained_max_score,
    study.last_score,
    published.last_score as published_last_score,
    study.auc_plus_updates,
    published.auc_plus as published_auc_plus,
    study.above_count,
    study.compared_count,
    published.above_count as published_above_count,
    published.compared_count as published_compared_count,
    published.note,
    concat_ws(
        '; ',
        case when not contains(study.model_id, published.model) then study.model_id || ', not ' || published.model end,
        'explored by ' || study.explorer_id,
        case
            when study.checkpoint_count != published.checkpoint_count
                then study.checkpoint_count || ' checkpoints, not ' || published.checkpoint_count
        end,
        case
            when cells.evaluation_episode_count != published.evaluation_episode_count
                then
                    cells.evaluation_episode_count || ' held-out episodes a checkpoint, not '
                    || published.evaluation_episode_count
        end,
        'an update every ' || cells.evaluation_interval || ' exploration episodes, not an epoch',
        'the published recipe is not known'
    ) as differences,
    published.source
from training_study as study
inner join int_selected_cells as cells on study.cell_id = cells.cell_id
inner join stg_published_training as published on study.game = published.game
