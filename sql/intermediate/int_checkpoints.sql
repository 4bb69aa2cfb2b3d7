-- How a cell did at each of its checkpoints.
--
-- grain: cell, checkpoint
-- key: cell_id, checkpoint
-- columns:
--   cell_id             text
--   checkpoint          exploration episodes behind the agent, from 0
--   requested_count     evaluation episodes asked for
--   valid_count         episodes played to the end
--   invalid_count       episodes lost to a failed call; what is neither valid nor invalid has not been played
--   is_valid            true when every episode asked for is there and valid
--   mean_score          game's unit; y_k; null unless is_valid
--   standard_deviation  game's unit, above 0; null unless is_valid with two episodes that differ
--   score_low           game's unit; 95 % t interval; null where standard_deviation is null
--   score_high          game's unit
-- formula: mean_score -+ t(n - 1) * standard_deviation / sqrt(n)
-- left out: the mean of an incomplete checkpoint. Failures are not random, so the episodes that survived do not
--     stand for it. Equal scores show no spread to estimate, so they get no interval rather than one of width 0.
with requested as (
    select
        cells.cell_id,
        links.checkpoint,
        max(links.episode_count) as requested_count
    from int_selected_cells as cells
    inner join stg_cell_stages as links on cells.run_id = links.run_id and cells.cell_id = links.cell_id
    where links.stage = 'evaluate'
    group by cells.cell_id, links.checkpoint
),

played as (
    select
        cell_id,
        checkpoint,
        count(*) filter (where is_valid) as valid_count,
        count(*) filter (where not is_valid) as invalid_count,
        avg(final_score) as mean_score,
        nullif(stddev_samp(final_score), 0) as standard_deviation
    from int_cell_episodes
    where phase = 'evaluation'
    group by cell_id, checkpoint
),

counted as (
    select
        requested.cell_id,
        requested.checkpoint,
        requested.requested_count,
        coalesce(played.valid_count, 0) as valid_count,
        coalesce(played.invalid_count, 0) as invalid_count,
        coalesce(played.valid_count = requested.requested_count, false) as is_valid,
        played.mean_score,
        played.standard_deviation
    from requested
    left join played on requested.cell_id = played.cell_id and requested.checkpoint = played.checkpoint
),

measured as (
    select
        cell_id,
        checkpoint,
        requested_count,
        valid_count,
        invalid_count,
        is_valid,
        valid_count - 1 as degrees_of_freedom,
        case when is_valid then mean_score end as mean_score,
        case when is_valid then standard_deviation end as standard_deviation
    from counted
)

select
    measured.cell_id,
    measured.checkpoint,
    measured.requested_count,
    measured.valid_count,
    measured.invalid_count,
    measured.is_valid,
    measured.mean_score,
    measured.standard_deviation,
    measured.mean_score - t.t_quantile * measured.standard_deviation / sqrt(measured.valid_count) as score_low,
    measured.mean_score + t.t_quantile * measured.standard_deviation / sqrt(measured.valid_count) as score_high
from measured
asof left join int_t_quantiles as t on measured.degrees_of_freedom >= t.degrees_of_freedom
