-- How much better a cell and its replicates score at the end of their exploration than at its beginning.
--
-- grain: series of replicates with a first and a last block of exploration
-- key: series_id
-- columns:
--   series_id         text; see int_replicate_series
--   cell_count        replicates with both blocks
--   first_score       game's unit; mean final score of the block before any experience, mean over the replicates
--   last_score        game's unit; of the block before the last checkpoint
--   exploration_gain  game's unit; last_score - first_score
--   exploration_low   game's unit; 95 % t interval; null where a block has no spread to judge by
--   exploration_high  game's unit
-- formula: standard error = sqrt(sum over both blocks of s^2 sum over replicates of 1 / n) / cell_count, s^2 being the
--     variance of a block's scores around the mean of their replicate; degrees of freedom: of the block with fewer
-- source: Welch (1947), Biometrika 34, 28-35, with the smaller number of degrees of freedom, which is never too many
-- left out: cells explored by another agent, whose scores are not the model's; invalid episodes. The two blocks play
--     different instances, so nothing is paired.
with blocks as (
    select
        series.series_id,
        episodes.cell_id,
        episodes.checkpoint = 0 as is_first,
        count(*) as episode_count,
        avg(episodes.final_score) as mean_score,
        var_pop(episodes.final_score) * count(*) as squares
    from int_cell_episodes as episodes
    inner join int_selected_cells as cells on episodes.cell_id = cells.cell_id
    inner join int_replicate_series as series on episodes.cell_id = series.cell_id and series.is_counted
    where episodes.phase = 'exploration' and episodes.is_valid and cells.explorer_id is null
    group by series.series_id, episodes.cell_id, episodes.checkpoint
    qualify
        episodes.checkpoint = 0
        or episodes.checkpoint = max(episodes.checkpoint) over (partition by episodes.cell_id)
),

complete as (
    select *
    from blocks
    qualify count(*) over (partition by cell_id) = 2
),

sides as (
    select
        series_id,
        is_first,
        count(*) as cell_count,
        avg(mean_score) as mean_score,
        cast(sum(episode_count - 1) as double) as degrees_of_freedom,
        sum(squares) / nullif(sum(episode_count - 1), 0) * sum(1 / episode_count) as variance
    from complete
    group by series_id, is_first
),

gains as (
    select
        first_sides.series_id,
        first_sides.cell_count,
        first_sides.mean_score as first_score,
        last_sides.mean_score as last_score,
        least(first_sides.degrees_of_freedom, last_sides.degrees_of_freedom) as degrees_of_freedom,
        nullif(sqrt(first_sides.variance + last_sides.variance), 0) / first_sides.cell_count as standard_error
    from sides as first_sides
    inner join sides as last_sides on first_sides.series_id = last_sides.series_id and not last_sides.is_first
    where first_sides.is_first
)

select
    gains.series_id,
    gains.cell_count,
    gains.first_score,
    gains.last_score,
    gains.last_score - gains.first_score as exploration_gain,
    gains.last_score - gains.first_score - t.t_quantile * gains.standard_error as exploration_low,
    gains.last_score - gains.first_score + t.t_quantile * gains.standard_error as exploration_high
from gains
asof left join int_t_quantiles as t on gains.degrees_of_freedom >= t.degrees_of_freedom
