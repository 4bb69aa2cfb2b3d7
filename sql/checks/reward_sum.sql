-- Valid episodes whose final score is not what their rewards come to, as the game declares: their sum or their mean.
--
-- grain: episode
-- columns:
--   stage_key    text
--   episode_id   text
--   final_score  game's unit; as stored
--   reward_sum   game's unit; sum or mean of the stored rewards
with episodes as (
    select distinct
        episodes.stage_key,
        episodes.episode_id,
        episodes.final_score,
        cells.score_aggregation
    from int_cell_episodes as episodes
    inner join int_selected_cells as cells on episodes.cell_id = cells.cell_id
    where episodes.is_valid
),

compared as (
    select
        episodes.stage_key,
        episodes.episode_id,
        episodes.final_score,
        -- an episode may be over at its start: no rewards come to 0
        coalesce(if(episodes.score_aggregation = 'mean', steps.reward_mean, steps.reward_sum), 0) as reward_sum
    from episodes
    left join int_episode_steps as steps
        on episodes.stage_key = steps.stage_key and episodes.episode_id = steps.episode_id
)

select
    stage_key,
    episode_id,
    final_score,
    reward_sum
from compared
where abs(final_score - reward_sum) > 1e-9 * greatest(1, abs(final_score))
