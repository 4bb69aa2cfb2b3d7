-- Improvement of a cell over its own start.
--
-- grain: cell
-- key: cell_id
-- columns:
--   cell_id                 text
--   model_id                text
--   game                    text
--   pathway                 text
--   intervention            text
--   replicate               integer, from 0
--   initial_score           game's unit; y_0, the score before any experience; null when not valid
--   last_score              game's unit; score of the last valid checkpoint
--   avg_score               game's unit; over valid checkpoints, the first included
--   max_score               game's unit
--   score_delta             game's unit; last_score - y_0
--   auc_plus                game's unit x episodes, from 0; area above y_0
--   auc_minus               game's unit x episodes, from 0; area below y_0
--   net_area                game's unit x episodes; auc_plus - auc_minus
--   naba                    episodes, from 0; null unless naba_status is ok
--   naba_status             text; ok, negative_start (y_0 below 0) or undefined (no area)
--   normalised_initial      0 is the random player, 1 the expert, unclipped; null without anchors
--   normalised_last         the same scale
--   normalised_avg          the same scale
--   normalised_net_area     the same scale; mean height of the curve over its start
--   last_checkpoint         episodes; the last valid checkpoint, where the areas end
--   checkpoint_count        checkpoints asked for
--   valid_checkpoint_count  checkpoints with every episode valid
--   episode_count           evaluation episodes played to the end
--   invalid_episode_count   evaluation episodes lost to a failed call
-- formula: auc_plus = integral of max(0, y(x) - y_0) dx, y linear between adjacent valid checkpoints. The clipping is
--     inside the integral: a segment that crosses y_0 counts with the triangle on its upper side.
--     naba = auc_plus / max(y_0, eps), eps = smallest_positive_score / evaluation_episode_count.
--     normalised_net_area = net_area / ((expert - random) (x_K - x_0)), anchors of the evaluation configuration.
-- source: S3Gym, arXiv 2608.31100; the exact integration is ours to state, the published areas fit no other
-- left out: invalid checkpoints, whose neighbours are joined. Areas and score_delta are null where y_0 is not valid or
--     stands alone.
with valid_checkpoints as (
    select
        cell_id,
        checkpoint,
        mean_score,
        lag(checkpoint) over curve as previous_checkpoint,
        lag(mean_score) over curve as previous_score
    from int_checkpoints
    where is_valid
    window curve as (partition by cell_id order by checkpoint)
),

starts as (
    select
        cell_id,
        mean_score as initial_score
    from int_checkpoints
    where checkpoint = 0 and is_valid
),

segments as (
    select
        points.cell_id,
        points.checkpoint - points.previous_checkpoint as width,
        greatest(points.mean_score, points.previous_score) - starts.initial_score as upper,
        least(points.mean_score, points.previous_score) - starts.initial_score as lower
    from valid_checkpoints as points
    inner join starts on points.cell_id = starts.cell_id
    where points.previous_checkpoint is not null
),

segment_areas as (
    select
        cell_id,
        width * (upper + lower) / 2 as net_area,
        case
            when lower >= 0 then width * (upper + lower) / 2
            when upper <= 0 then 0
            else width * upper * upper / (2 * (upper - lower))
        end as area_above
    from segments
),

areas as (
    select
        cell_id,
        sum(area_above) as auc_plus,
        sum(area_above - net_area) as auc_minus,
        sum(net_area) as net_area
    from segment_areas
    group by cell_id
),

curves as (
    select
        cell_id,
        avg(mean_score) as avg_score,
        max(mean_score) as max_score,
        max_by(mean_score, checkpoint) filter (where is_valid) as last_score,
        max(checkpoint) filter (where is_valid) as last_checkpoint,
        count(*) as checkpoint_count,
        count(*) filter (where is_valid) as valid_checkpoint_count,
        cast(sum(valid_count) as bigint) as episode_count,
        cast(sum(invalid_count) as bigint) as invalid_episode_count
    from int_checkpoints
    group by cell_id
)

select
    cells.cell_id,
    cells.model_id,
    cells.game,
    cells.pathway,
    cells.intervention,
    cells.replicate,
    starts.initial_score,
    curves.last_score,
    curves.avg_score,
    curves.max_score,
    case when areas.net_area is not null then curves.last_score - starts.initial_score end as score_delta,
    areas.auc_plus,
    areas.auc_minus,
    areas.net_area,
    case
        when starts.initial_score >= 0
            then areas.auc_plus / greatest(
                starts.initial_score, cells.smallest_positive_score / cells.evaluation_episode_count
            )
    end as naba,
    case
        when areas.auc_plus is null then 'undefined'
        when starts.initial_score < 0 then 'negative_start'
        else 'ok'
    end as naba_status,
    (starts.initial_score - anchors.random_mean) / anchors.anchor_range as normalised_initial,
    (curves.last_score - anchors.random_mean) / anchors.anchor_range as normalised_last,
    (curves.avg_score - anchors.random_mean) / anchors.anchor_range as normalised_avg,
    areas.net_area / (anchors.anchor_range * curves.last_checkpoint) as normalised_net_area,
    curves.last_checkpoint,
    coalesce(curves.checkpoint_count, 0) as checkpoint_count,
    coalesce(curves.valid_checkpoint_count, 0) as valid_checkpoint_count,
    coalesce(curves.episode_count, 0) as episode_count,
    coalesce(curves.invalid_episode_count, 0) as invalid_episode_count
from int_selected_cells as cells
left join curves on cells.cell_id = curves.cell_id
left join starts on cells.cell_id = starts.cell_id
left join areas on cells.cell_id = areas.cell_id
left join int_anchors as anchors on cells.evaluation_config_id = anchors.config_id
