-- Ranks by game: how models and pathways stand to each other within one game, by last less first score and by NABA.
--
-- grain: contestant (model, pathway, intervention, explorer), game
-- key: model_id, pathway, intervention, explorer_id, game
-- columns:
--   model_id            text
--   pathway             text; other than none
--   intervention        text
--   explorer_id         text; who explored: the model itself, or another in its place
--   game                text
--   replicate_count     replicates, from 1
--   score_delta         game's unit; last_score - y_0, mean over the replicates that have it; null where none has
--   naba                episodes, from 0; mean over the replicates that have it; null where none has
--   change_rank         number, from 1, the highest score_delta; ties get the mean of their ranks; null without it
--   change_rival_count  contestants that are ranked by score_delta, this one included; 0 without it
--   change_standing     0 to 1; share of the others that are below, ties count half; null where there are no others
--   naba_rank           number, from 1; the same by naba
--   naba_rival_count    contestants; the same by naba
--   naba_standing       0 to 1; the same by naba
--   judged_count        replicates with a verdict
--   improved_count      replicates among them that improve beyond noise
--   worse_count         replicates among them that get worse beyond noise
--   too_few_count       replicates among them with too few episodes to say
-- formula: mid-rank = 1 + contestants above + (ties - 1) / 2; standing = (contestants - rank) / (contestants - 1).
--     Numbers closer than 1e-9 are ties.
-- left out: a rank among those who had another budget or other rules: contestants are ranked within game, evaluation
--     configuration, budget and intervention. Of a contestant that was measured with several settings the latest
--     counts. A rank has no interval: two that differ in it may differ by chance, see improvement_verdict.
with series as (
    select
        cells.model_id,
        cells.pathway,
        cells.intervention,
        coalesce(cells.explorer_id, cells.model_id) as explorer_id,
        cells.game,
        replicates.series_id,
        max(cells.requested_at) as requested_at,
        md5(concat_ws(
            '|',
            cells.game,
            cells.intervention,
            cells.evaluation_config_id,
            cells.exploration_episode_count,
            cells.evaluation_interval,
            cells.evaluation_episode_count
        )) as contest_id,
        count(*) as replicate_count,
        round(avg(own.score_delta), 9) as score_delta,
        round(avg(own.naba), 9) as naba,
        count(verdicts.verdict) as judged_count,
        count(*) filter (where verdicts.verdict = 'improves_beyond_noise') as improved_count,
        count(*) filter (where verdicts.verdict = 'worse') as worse_count,
        count(*) filter (where verdicts.verdict = 'too_few_episodes') as too_few_count
    from int_selected_cells as cells
    inner join int_replicate_series as replicates on cells.cell_id = replicates.cell_id and replicates.is_counted
    inner join improvement as own on cells.cell_id = own.cell_id
    left join improvement_verdict as verdicts on cells.cell_id = verdicts.cell_id
    where cells.pathway != 'none'
    group by
        cells.model_id,
        cells.pathway,
        cells.intervention,
        cells.explorer_id,
        cells.game,
        replicates.series_id,
        cells.evaluation_config_id,
        cells.exploration_episode_count,
        cells.evaluation_interval,
        cells.evaluation_episode_count
),

contestants as (
    select *
    from series
    qualify row_number() over (
        partition by model_id, pathway, intervention, explorer_id, game order by requested_at desc, series_id asc
    ) = 1
),

ranked as (
    select
        *,
        case
            when score_delta is not null
                then
                    rank() over (partition by contest_id order by score_delta desc nulls last)
                    + (count(*) over (partition by contest_id, score_delta) - 1) / 2
        end as change_rank,
        case when score_delta is not null then count(score_delta) over (partition by contest_id) else 0 end
            as change_rival_count,
        case
            when naba is not null
                then
                    rank() over (partition by contest_id order by naba desc nulls last)
                    + (count(*) over (partition by contest_id, naba) - 1) / 2
        end as naba_rank,
        case when naba is not null then count(naba) over (partition by contest_id) else 0 end as naba_rival_count
    from contestants
)

select
    model_id,
    pathway,
    intervention,
    explorer_id,
    game,
    replicate_count,
    score_delta,
    naba,
    change_rank,
    change_rival_count,
    (change_rival_count - change_rank) / nullif(change_rival_count - 1, 0) as change_standing,
    naba_rank,
    naba_rival_count,
    (naba_rival_count - naba_rank) / nullif(naba_rival_count - 1, 0) as naba_standing,
    judged_count,
    improved_count,
    worse_count,
    too_few_count
from ranked
