-- Whether a model improves in a game under a pathway: the verdicts of its replicates in one, with the gain and how sure
-- it is.
--
-- grain: model, game, pathway other than none, explorer
-- key: model_id, game, pathway, explorer_id
-- columns:
--   model_id          text
--   game              text
--   pathway           text
--   explorer_id       text; who explored: the model itself, or another in its place
--   series_id         text; the cells it is made of, see int_replicate_series
--   verdict           text; improves_beyond_noise, worse, no_improvement_shown or too_few_episodes; null without any
--   evidence          text; control or checkpoints, see improvement_verdict; null where no cell has a gain
--   replicate_count   cells, from 1
--   judged_count      cells with a verdict
--   improved_count    of these, cells that improve beyond noise
--   worse_count       of these, cells that get worse beyond noise
--   gain              game's unit; of improvement_verdict, mean over the cells
--   gain_low          game's unit; 95 %, of one comparison; of several cells as they vary; null where there is none
--   gain_high         game's unit
--   p_holm            above 0 to 1; of improvement_verdict; null for several cells
--   compared_count    cells of the run that p_holm is corrected for
--   pair_count        pairs of episodes behind the gain; 0 where it is none over a control
--   exploration_gain  game's unit; last block of exploration minus the first; null where there are no two
--   exploration_low   game's unit; 95 %, see int_exploration_gains
--   exploration_high  game's unit
--   exploration       text; rises or falls where that interval excludes 0, else not_told; null without an interval
-- formula: improves: more than half of the judged cells do, and no interval of the gain reaches down to 0; worse alike;
--     too few: more than half of the judged cells have too few episodes
-- left out: interventions. Of a pathway that was measured with several settings the latest counts.
with counted as (
    select
        cells.model_id,
        cells.game,
        cells.pathway,
        coalesce(cells.explorer_id, cells.model_id) as explorer_id,
        series.series_id,
        cells.cell_id,
        max(cells.requested_at) over (partition by series.series_id) as requested_at
    from int_selected_cells as cells
    inner join int_replicate_series as series on cells.cell_id = series.cell_id and series.is_counted
    where cells.intervention = 'main' and cells.pathway != 'none'
),

latest as (
    select *
    from counted
    qualify dense_rank() over (
        partition by model_id, game, pathway, explorer_id order by requested_at desc, series_id asc
    ) = 1
),

judged as (
    select
        latest.model_id,
        latest.game,
        latest.pathway,
        latest.explorer_id,
        latest.series_id,
        min(verdicts.evidence) as evidence,
        count(*) as replicate_count,
        count(verdicts.verdict) as judged_count,
        count(*) filter (where verdicts.verdict = 'improves_beyond_noise') as improved_count,
        count(*) filter (where verdicts.verdict = 'worse') as worse_count,
        count(*) filter (where verdicts.verdict = 'too_few_episodes') as too_few_count,
        case when count(*) = 1 then max(verdicts.gain) else coalesce(max(several.estimate), avg(verdicts.gain)) end
            as gain,
        case when count(*) = 1 then max(verdicts.gain_low) else max(several.low) end as gain_low,
        case when count(*) = 1 then max(verdicts.gain_high) else max(several.high) end as gain_high,
        case when count(*) = 1 then max(verdicts.p_holm) end as p_holm,
        max(verdicts.compared_count) as compared_count,
        cast(sum(gains.pair_count) as bigint) as pair_count
    from latest
    inner join improvement_verdict as verdicts on latest.cell_id = verdicts.cell_id
    inner join control_gain as gains on latest.cell_id = gains.cell_id
    left join stg_intervals as several
        on
            latest.cell_id = several.cell_id
            and several.scope = 'replicates'
            and several.metric = 'gain'
            and several.contrast = case verdicts.evidence when 'control' then 'over_control' else 'own' end
    group by latest.model_id, latest.game, latest.pathway, latest.explorer_id, latest.series_id
)

select
    judged.model_id,
    judged.game,
    judged.pathway,
    judged.explorer_id,
    judged.series_id,
    case
        when judged.judged_count = 0 then null
        when 2 * judged.improved_count > judged.judged_count and coalesce(judged.gain_low > 0, true)
            then 'improves_beyond_noise'
        when 2 * judged.worse_count > judged.judged_count and coalesce(judged.gain_high < 0, true) then 'worse'
        when 2 * judged.too_few_count > judged.judged_count then 'too_few_episodes'
        else 'no_improvement_shown'
    end as verdict,
    judged.evidence,
    judged.replicate_count,
    judged.judged_count,
    judged.improved_count,
    judged.worse_count,
    judged.gain,
    judged.gain_low,
    judged.gain_high,
    judged.p_holm,
    judged.compared_count,
    judged.pair_count,
    explored.exploration_gain,
    explored.exploration_low,
    explored.exploration_high,
    case
        when explored.exploration_low > 0 then 'rises'
        when explored.exploration_high < 0 then 'falls'
        when explored.exploration_low is not null then 'not_told'
    end as exploration
from judged
left join int_exploration_gains as explored on judged.series_id = explored.series_id
