-- What changed since the refresh before: each cell's held-out score then and now, whether they differ by more than
-- noise, and which inputs are not what they were.
--
-- grain: cell
-- key: cell_id
-- columns:
--   cell_id              text
--   model_id             text
--   game                 text
--   pathway              text
--   intervention         text
--   replicate            integer, from 0
--   previous_cell_id     text; null where the refresh before had no such cell
--   previous_refresh_id  text
--   previous_at          time stamp, UTC; when the refresh before began
--   status               text; new (not there before), unchanged (the same inputs, so the same rows), remeasured, or
--       extended (other budgets, but no valid episodes anew at a checkpoint that both have)
--   episode_count        held-out episodes compared, from 0
--   score                game's unit; their mean final score; null where nothing is compared
--   previous_score       game's unit; of those in their place
--   pair_count           pairs on the same seed, from 0
--   difference           game's unit; of the pairs, or of the two means where no seed was played in both
--   difference_low       game's unit; 95 % t interval, not corrected for the number of cells; null without spread
--   difference_high      game's unit
--   p_value              0 to 1; two-sided, that chance alone differs by so much; null where nothing can be said
--   p_holm               0 to 1; corrected for the number of cells compared
--   compared_count       cells with a p_value, those with an intervention apart from those without
--   outcome              text; higher or lower (beyond noise), none_shown or too_few_episodes; null where nothing is
--       compared
--   verdict              text; of improvement_verdict now
--   previous_verdict     text; as the report of the refresh before had it
--   cause                text; what of stg_cells is not as it was, old and new
--   other_versions       text; versions of package, Python and libraries that are not as they were: they are part of no
--       key, so that alone they make nothing anew
-- formula: paired as in int_differences. Unpaired: difference of means, standard_error = sqrt of the sum of both
--     squared cluster-robust standard errors, the smaller number of instances minus 1 as degrees of freedom. p_value
--     by the distribution function of Student's t, summed exactly; without spread 1 where nothing differs, else that of
--     the sign test, 2^(1 - G). p_holm by Holm's steps over the cells compared; beyond noise is p_holm <= 0.05.
-- source: Abramowitz and Stegun (1964), 26.7.3 and 26.7.4; Holm (1979), Scandinavian Journal of Statistics 6, 65-70
-- left out: cells that are no longer asked for.
with residuals as (
    select
        cell_id,
        is_now,
        seed,
        final_score,
        final_score - avg(final_score) over (partition by cell_id, is_now) as residual
    from int_refreshed_episodes
),

clusters as (
    select
        cell_id,
        is_now,
        seed,
        count(*) as episode_count,
        sum(final_score) as score,
        sum(residual) as residual
    from residuals
    group by cell_id, is_now, seed
),

means as (
    select
        cell_id,
        is_now,
        cast(sum(episode_count) as bigint) as episode_count,
        count(*) as seed_count,
        sum(score) / sum(episode_count) as score,
        count(*) / nullif(count(*) - 1, 0) * sum(residual * residual) / pow(sum(episode_count), 2) as variance
    from clusters
    group by cell_id, is_now
),

unpaired as (
    select
        now.cell_id,
        now.episode_count,
        now.score,
        earlier.score as previous_score,
        least(now.seed_count, earlier.seed_count) as cluster_count,
        -- a sum of equal residuals may end a rounding error away from 0
        case when now.variance + earlier.variance > 1e-18 then sqrt(now.variance + earlier.variance) end
            as standard_error
    from means as now
    inner join means as earlier on now.cell_id = earlier.cell_id
    where now.is_now and not earlier.is_now
),

paired as (
    select
        pairs.cell_id,
        avg(pairs.score) as score,
        avg(pairs.previous_score) as previous_score,
        differences.pair_count,
        differences.cluster_count,
        differences.cluster_count - differences.stratum_count as degrees_of_freedom,
        differences.mean_difference as difference,
        differences.standard_error
    from int_paired_refreshes as pairs
    inner join int_differences as differences on pairs.difference_id = differences.difference_id
    group by all
),

compared as (
    select
        cell_id,
        pair_count as episode_count,
        score,
        previous_score,
        pair_count,
        cluster_count,
        degrees_of_freedom,
        difference,
        standard_error
    from paired
    union all
    select
        cell_id,
        episode_count,
        score,
        previous_score,
        0 as pair_count,
        cluster_count,
        cluster_count - 1 as degrees_of_freedom,
        score - previous_score as difference,
        standard_error
    from unpaired
    where cell_id not in (select paired.cell_id from paired)
),

angles as (
    select
        cell_id,
        degrees_of_freedom,
        degrees_of_freedom % 2 = 1 as is_odd,
        atan(abs(difference) / standard_error / sqrt(degrees_of_freedom)) as angle
    from compared
    where standard_error is not null and degrees_of_freedom >= 1
),

places as (
    select unnest(range(0, 5000)) as j
),

-- the finite series of Student's t
terms as (
    select
        angles.cell_id,
        sum(
            case
                when angles.is_odd then exp(lgamma(place.j + 1) - lgamma(place.j + 1.5)) * sqrt(pi()) / 2
                else exp(lgamma(place.j + 0.5) - lgamma(place.j + 1)) / sqrt(pi())
            end * pow(cos(angles.angle), 2 * place.j)
        ) as series
    from angles
    inner join places as place on place.j < angles.degrees_of_freedom // 2  -- (n - 1) / 2 of them where n is odd
    group by angles.cell_id
),

tested as (
    select
        compared.cell_id,
        case
            when angles.is_odd
                then
                    1 - 2 / pi()
                    * (angles.angle + sin(angles.angle) * cos(angles.angle) * coalesce(terms.series, 0))
            when angles.cell_id is not null then 1 - sin(angles.angle) * terms.series
            when compared.cluster_count >= 2 and abs(compared.difference) <= 1e-9 then 1
            when compared.cluster_count >= 2 then pow(2, 1 - compared.cluster_count)
        end as p_value
    from compared
    left join angles on compared.cell_id = angles.cell_id
    left join terms on compared.cell_id = terms.cell_id
),

ranked as (
    select
        tested.cell_id,
        cells.intervention = 'main' as is_main,
        greatest(tested.p_value, 0) as p_value,
        count(*) over (partition by cells.intervention = 'main') as compared_count,
        row_number() over (partition by cells.intervention = 'main' order by tested.p_value asc, tested.cell_id asc)
            as p_rank
    from tested
    inner join int_selected_cells as cells on tested.cell_id = cells.cell_id
    where tested.p_value is not null
),

corrected as (
    select
        cell_id,
        p_value,
        compared_count,
        least(1, max((compared_count - p_rank + 1) * p_value) over (partition by is_main order by p_rank)) as p_holm
    from ranked
),

version_sets as (
    select
        refresh_id,
        unnest(json_keys(versions)) as named,
        versions
    from stg_refreshes
),

version_changes as (
    select
        past.cell_id,
        string_agg(
            now.named || ' ' || (earlier.versions ->> now.named) || ' -> ' || (now.versions ->> now.named),
            '; ' order by now.named
        ) as other_versions
    from int_previous_cells as past
    inner join version_sets as now on past.refresh_id = now.refresh_id
    inner join stg_refreshes as earlier on past.previous_refresh_id = earlier.refresh_id
    where (now.versions ->> now.named) != (earlier.versions ->> now.named)
    group by past.cell_id
)

select
    cells.cell_id,
    cells.model_id,
    cells.game,
    cells.pathway,
    cells.intervention,
    cells.replicate,
    past.previous_cell_id,
    past.previous_refresh_id,
    past.previous_at,
    case
        when past.previous_cell_id is null then 'new'
        when past.previous_cell_id = past.cell_id then 'unchanged'
        when compared.cell_id is null then 'extended'
        else 'remeasured'
    end as status,
    coalesce(compared.episode_count, 0) as episode_count,
    compared.score,
    compared.previous_score,
    coalesce(compared.pair_count, 0) as pair_count,
    compared.difference,
    compared.difference - t.t_quantile * compared.standard_error as difference_low,
    compared.difference + t.t_quantile * compared.standard_error as difference_high,
    corrected.p_value,
    corrected.p_holm,
    coalesce(corrected.compared_count, 0) as compared_count,
    case
        when compared.cell_id is null then null
        when corrected.p_holm is null then 'too_few_episodes'
        when corrected.p_holm > 0.05 then 'none_shown'
        when compared.difference > 0 then 'higher'
        else 'lower'
    end as outcome,
    verdicts.verdict,
    earlier.verdicts ->> past.previous_cell_id as previous_verdict,
    past.cause,
    version_changes.other_versions
from int_selected_cells as cells
inner join int_previous_cells as past on cells.cell_id = past.cell_id
left join compared on cells.cell_id = compared.cell_id
asof left join int_t_quantiles as t on compared.degrees_of_freedom >= t.degrees_of_freedom
left join corrected on cells.cell_id = corrected.cell_id
left join improvement_verdict as verdicts on cells.cell_id = verdicts.cell_id
left join stg_refreshes as earlier on past.previous_refresh_id = earlier.refresh_id
left join version_changes on cells.cell_id = version_changes.cell_id
