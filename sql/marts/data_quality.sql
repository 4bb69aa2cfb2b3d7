-- Data quality: what is missing or weak behind the numbers of a cell.
--
-- grain: cell
-- key: cell_id
-- columns:
--   cell_id                        text
--   model_id                       text
--   game                           text
--   pathway                        text
--   intervention                   text
--   replicate                      integer, from 0
--   evaluation_requested_count     episodes, all checkpoints
--   evaluation_valid_count         episodes
--   evaluation_invalid_count       episodes lost to a failed call
--   evaluation_missing_count       episodes not played
--   transfer_requested_count       evaluation episodes in other games, all checkpoints
--   transfer_valid_count           episodes
--   transfer_invalid_count         episodes lost to a failed call
--   transfer_missing_count         episodes not played
--   exploration_requested_count    episodes; 0 for the pathway none
--   exploration_valid_count        episodes
--   exploration_invalid_count      episodes lost to a failed call
--   step_count                     steps of both phases in the cell's own game; this and the next three
--   failed_call_count              steps whose call failed
--   unscored_step_count            steps with a verifier reward and no self-score
--   history_cut_step_count         steps whose prompt did not hold all earlier episodes
--   is_instances_shared            true where both phases play the same few instances
-- left out: retries that succeeded; they leave no row.
with evaluations as (
    select
        cell_id,
        cast(sum(requested_count) as bigint) as requested_count,
        cast(sum(valid_count) as bigint) as valid_count,
        cast(sum(invalid_count) as bigint) as invalid_count
    from int_checkpoints
    group by cell_id
),

transfers as (
    select
        cell_id,
        cast(sum(episode_count) as bigint) as requested_count
    from int_cell_links
    where stage = 'transfer'
    group by cell_id
),

transferred as (
    select
        episodes.cell_id,
        count(*) filter (where episodes.is_valid) as valid_count,
        count(*) filter (where not episodes.is_valid) as invalid_count
    from int_target_episodes as episodes
    inner join int_selected_cells as cells on episodes.cell_id = cells.cell_id
    where episodes.target_game != cells.game
    group by episodes.cell_id
),

explorations as (
    select
        cell_id,
        count(*) filter (where is_valid) as valid_count,
        count(*) filter (where not is_valid) as invalid_count
    from int_cell_episodes
    where phase = 'exploration'
    group by cell_id
),

steps as (
    select
        cell_id,
        cast(sum(step_count) as bigint) as step_count,
        cast(sum(failed_call_count) as bigint) as failed_call_count,
        cast(sum(rewarded_count - scored_count) as bigint) as unscored_step_count,
        cast(sum(history_cut_count) as bigint) as history_cut_step_count
    from int_step_counts
    group by cell_id
)

select
    cells.cell_id,
    cells.model_id,
    cells.game,
    cells.pathway,
    cells.intervention,
    cells.replicate,
    coalesce(evaluations.requested_count, 0) as evaluation_requested_count,
    coalesce(evaluations.valid_count, 0) as evaluation_valid_count,
    coalesce(evaluations.invalid_count, 0) as evaluation_invalid_count,
    coalesce(evaluations.requested_count - evaluations.valid_count - evaluations.invalid_count, 0)
        as evaluation_missing_count,
    coalesce(transfers.requested_count, 0) as transfer_requested_count,
    coalesce(transferred.valid_count, 0) as transfer_valid_count,
    coalesce(transferred.invalid_count, 0) as transfer_invalid_count,
    coalesce(transfers.requested_count, 0) - coalesce(transferred.valid_count, 0)
    - coalesce(transferred.invalid_count, 0) as transfer_missing_count,
    cells.exploration_episode_count as exploration_requested_count,
    coalesce(explorations.valid_count, 0) as exploration_valid_count,
    coalesce(explorations.invalid_count, 0) as exploration_invalid_count,
    coalesce(steps.step_count, 0) as step_count,
    coalesce(steps.failed_call_count, 0) as failed_call_count,
    coalesce(steps.unscored_step_count, 0) as unscored_step_count,
    coalesce(steps.history_cut_step_count, 0) as history_cut_step_count,
    cells.is_instances_shared
from int_selected_cells as cells
left join evaluations on cells.cell_id = evaluations.cell_id
left join transfers on cells.cell_id = transfers.cell_id
left join transferred on cells.cell_id = transferred.cell_id
left join explorations on cells.cell_id = explorations.cell_id
left join steps on cells.cell_id = steps.cell_id
