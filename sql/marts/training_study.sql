-- Training study: what training made of a model, as the published study tells it.
--
-- grain: trained cell
-- key: cell_id
-- columns:
--   cell_id                   text
--   model_id                  text
--   game                      text
--   pathway                   text
--   intervention              text
--   replicate                 integer, from 0
--   explorer_id               text; who explored in the model's place; null where it explored itself
--   initial_score             game's unit; y_0, of the untrained model; null when not valid
--   trained_avg_score         game's unit; mean over updated checkpoints that are valid; null when none is
--   trained_max_score         game's unit; the highest of them
--   last_score                game's unit; y_K, score of the last valid checkpoint
--   score_delta               game's unit; y_K - y_0
--   auc_plus                  game's unit x episodes, from 0; area above y_0, see improvement
--   auc_plus_updates          game's unit x updates, from 0; the same area with updates along the axis
--   update_count              updates that changed the weights
--   unchanged_count           updates that did not: too few rows, or a failure
--   checkpoint_count          checkpoints asked for, the first included
--   updated_checkpoint_count  updated checkpoints: at which the weights are no longer those of the untrained model
--   compared_count            updated checkpoints that are valid, as y_0 is
--   above_count               checkpoints among them with a score above y_0
--   above_rate                0 to 1; above_count / compared_count; null when compared_count is 0
--   above_rate_low            0 to 1; 95 % Wilson interval
--   above_rate_high           0 to 1
-- formula: auc_plus_updates = auc_plus / evaluation_interval, as one update stands between two checkpoints
-- source: S3Gym, arXiv 2608.31100; Wilson (1927), Journal of the American Statistical Association 22, 209-212
-- left out: checkpoints before the first update that changed the weights, from trained_avg_score, trained_max_score and
--     above_rate: there the model is the untrained one. Checkpoints of a cell are not independent, and all compare with
--     one y_0: above_rate counts, and its interval is a lower bound on what is not known; control_gain has a test.
with trained as (
    select
        cell_id,
        count(*) as updated_checkpoint_count,
        avg(mean_score) as trained_avg_score,
        max(mean_score) as trained_max_score
    from int_updated_checkpoints
    group by cell_id
),

updates as (
    select
        cell_id,
        count(*) filter (where is_updated) as update_count,
        count(*) filter (where is_updated is distinct from true) as unchanged_count
    from int_updates
    group by cell_id
)

select
    cells.cell_id,
    cells.model_id,
    cells.game,
    cells.pathway,
    cells.intervention,
    cells.replicate,
    cells.explorer_id,
    improvement.initial_score,
    trained.trained_avg_score,
    trained.trained_max_score,
    improvement.last_score,
    improvement.score_delta,
    improvement.auc_plus,
    improvement.auc_plus / cells.evaluation_interval as auc_plus_updates,
    coalesce(updates.update_count, 0) as update_count,
    coalesce(updates.unchanged_count, 0) as unchanged_count,
    improvement.checkpoint_count,
    coalesce(trained.updated_checkpoint_count, 0) as updated_checkpoint_count,
    coalesce(rates.trial_count, 0) as compared_count,
    coalesce(rates.event_count, 0) as above_count,
    rates.rate as above_rate,
    rates.rate_low as above_rate_low,
    rates.rate_high as above_rate_high
from int_selected_cells as cells
inner join improvement on cells.cell_id = improvement.cell_id
left join trained on cells.cell_id = trained.cell_id
left join updates on cells.cell_id = updates.cell_id
left join int_rates as rates on cells.cell_id = rates.cell_id and rates.rate_name = 'above_start'
where cells.training is not null
