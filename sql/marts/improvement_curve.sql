-- Improvement curve: how a cell scores as its experience grows.
--
-- grain: cell, checkpoint
-- key: cell_id, checkpoint
-- columns:
--   cell_id           text
--   model_id          text
--   game              text
--   pathway           text
--   intervention      text
--   replicate         integer, from 0
--   checkpoint        exploration episodes behind the agent, from 0
--   score             game's unit; y_k, mean final score of the evaluation episodes; null when not valid
--   score_low         game's unit; 95 % t interval; null below two episodes and where all scores are equal
--   score_high        game's unit
--   requested_count   evaluation episodes asked for
--   episode_count     episodes played to the end
--   invalid_count     episodes lost to a failed call; the rest of requested_count has not been played
--   is_valid          true when every episode asked for is there and valid
--   score_delta       game's unit; y_k - y_0
--   normalised_score  0 is the random player, 1 the expert, unclipped; null without anchors
-- formula: normalised_score = (score - random) / (expert - random), anchors of the evaluation configuration
-- left out: checkpoints that were not asked for; those that failed stay, with a null score.
select
    cells.cell_id,
    cells.model_id,
    cells.game,
    cells.pathway,
    cells.intervention,
    cells.replicate,
    checkpoints.checkpoint,
    checkpoints.mean_score as score,
    checkpoints.score_low,
    checkpoints.score_high,
    checkpoints.requested_count,
    checkpoints.valid_count as episode_count,
    checkpoints.invalid_count,
    checkpoints.is_valid,
    checkpoints.mean_score - origins.mean_score as score_delta,
    (checkpoints.mean_score - anchors.random_mean) / anchors.anchor_range as normalised_score
from int_selected_cells as cells
inner join int_checkpoints as checkpoints on cells.cell_id = checkpoints.cell_id
left join int_checkpoints as origins on cells.cell_id = origins.cell_id and origins.checkpoint = 0
left join int_anchors as anchors on cells.evaluation_config_id = anchors.config_id
