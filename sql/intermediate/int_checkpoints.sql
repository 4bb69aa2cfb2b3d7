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
--   standard_error      game's unit, above 0; of mean_score; null unless is_valid with episodes that vary
--   score_low           game's unit; 95 % t interval; null where standard_error is null
--   score_high          game's unit
-- formula: standard_error = sqrt(sum of squared residuals / (n - S) / n), a residual being the distance from the mean
--     of its stratum, of which there are S; mean_score -+ t(n - S) * standard_error. Instances drawn at random are one
--     stratum. Where the game has so few that each checkpoint plays them all (trust), each is a stratum: which of
--     them were played is no chance, and once each leaves nothing to estimate an error from.
-- source: Cochran (1977), Sampling Techniques, chapter 5
-- left out: the mean of an incomplete checkpoint. Failures are not random, so the episodes that survived do not
--     stand for it. Equal scores show no spread to estimate, so they get no interval rather than one of width 0.
with requested as (
    select
        cell_id,
        checkpoint,
        max(episode_count) as requested_count
    from int_cell_links
    where stage = 'evaluate'
    group by cell_id, checkpoint
),

strata as (
    select
        episodes.cell_id,
        episodes.checkpoint,
        count(*) filter (where episodes.is_valid) as valid_count,
        count(*) filter (where not episodes.is_valid) as invalid_count,
        sum(episodes.final_score) as score_sum,
        var_pop(episodes.final_score) * count(episodes.final_score) as squares
    from int_cell_episodes as episodes
    inner join int_selected_cells as cells on episodes.cell_id = cells.cell_id
    where episodes.phase = 'evaluation'
    group by
        episodes.cell_id,
        episodes.checkpoint,
        case when cells.is_instances_shared then episodes.instance_id end
),

played as (
    select
        cell_id,
        checkpoint,
        sum(valid_count)::bigint as valid_count,
        sum(invalid_count)::bigint as invalid_count,
        sum(score_sum) / nullif(sum(valid_count), 0) as mean_score,
        sum(valid_count)::bigint - count(*) as degrees_of_freedom,
        nullif(sum(squares), 0) / nullif(sum(valid_count) - count(*), 0) as variance
    from strata
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
        played.degrees_of_freedom,
        played.variance
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
        degrees_of_freedom,
        case when is_valid then mean_score end as mean_score,
        case when is_valid then sqrt(variance / valid_count) end as standard_error
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
    measured.standard_error,
    measured.mean_score - t.t_quantile * measured.standard_error as score_low,
    measured.mean_score + t.t_quantile * measured.standard_error as score_high
from measured
asof left join int_t_quantiles as t on measured.degrees_of_freedom >= t.degrees_of_freedom
