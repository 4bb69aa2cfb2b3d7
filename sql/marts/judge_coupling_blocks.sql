-- What a block of exploration holds for judge_coupling: how well the agent judged itself, and what it gained next.
--
-- grain: cell, block of exploration between two neighbouring valid checkpoints
-- key: cell_id, from_checkpoint
-- columns:
--   cell_id          text
--   model_id         text
--   game             text
--   pathway          text
--   intervention     text
--   replicate        integer, from 0
--   from_checkpoint  episodes; where the block begins
--   to_checkpoint    episodes; where it ends
--   scored_count     steps explored in between with a self-score and a verifier reward
--   agreement        0 to 1; A_t; null without scored steps
--   error            from 0; E_t; null without scored steps, and where the declared range is 0
--   score_gain       game's unit; the score at the end of the block minus the one at its start
--   gain             -1 to 1; g_t; null where all scores of the game are equal
-- formula: agreement and error as agreement and nmae of judge_reliability, over the steps of the block alone.
--     gain = score_gain / (max y - min y), over all valid checkpoints of the game, all selected cells together, but
--     those with an intervention apart.
-- source: S3Gym, arXiv 2608.31100
-- left out: checkpoints that are not valid, whose neighbours are joined: the block between those is all that was
--     explored from one to the other. A comparison of gains across selections; adding a cell can widen the range of
--     scores.
with points as (
    select
        checkpoints.cell_id,
        cells.game,
        checkpoints.checkpoint,
        checkpoints.mean_score,
        lead(checkpoints.checkpoint) over curve as next_checkpoint,
        lead(checkpoints.mean_score) over curve as next_score,
        max(checkpoints.mean_score) over pool as score_max,
        min(checkpoints.mean_score) over pool as score_min
    from int_checkpoints as checkpoints
    inner join int_selected_cells as cells on checkpoints.cell_id = cells.cell_id
    where checkpoints.is_valid
    window
        curve as (partition by checkpoints.cell_id order by checkpoints.checkpoint),
        pool as (partition by cells.game, cells.intervention = 'main')
),

explored as (
    select
        episodes.cell_id,
        episodes.checkpoint,
        sum(counts.scored_count) as scored_count,
        sum(counts.scored_count - counts.claimed_count - counts.positive_count + 2 * counts.both_count)
            as agreement_count,
        sum(counts.error_sum) as error_sum
    from int_cell_episodes as episodes
    inner join int_episode_counts as counts
        on episodes.stage_key = counts.stage_key and episodes.episode_id = counts.episode_id
    where episodes.phase = 'exploration'
    group by episodes.cell_id, episodes.checkpoint
),

blocks as (
    select
        points.cell_id,
        points.checkpoint,
        cast(coalesce(sum(explored.scored_count), 0) as bigint) as scored_count,
        sum(explored.agreement_count) / nullif(sum(explored.scored_count), 0) as agreement,
        sum(explored.error_sum) / nullif(sum(explored.scored_count), 0) as error
    from points
    left join explored
        on
            points.cell_id = explored.cell_id
            and points.checkpoint <= explored.checkpoint
            and points.next_checkpoint > explored.checkpoint
    group by points.cell_id, points.checkpoint
)

select
    cells.cell_id,
    cells.model_id,
    cells.game,
    cells.pathway,
    cells.intervention,
    cells.replicate,
    points.checkpoint as from_checkpoint,
    points.next_checkpoint as to_checkpoint,
    blocks.scored_count,
    blocks.agreement,
    blocks.error / nullif(cells.reward_max - cells.reward_min, 0) as error,
    points.next_score - points.mean_score as score_gain,
    (points.next_score - points.mean_score) / nullif(points.score_max - points.score_min, 0) as gain
from int_selected_cells as cells
inner join points on cells.cell_id = points.cell_id
inner join blocks on points.cell_id = blocks.cell_id and points.checkpoint = blocks.checkpoint
where points.next_checkpoint is not null and cells.pathway != 'none'
