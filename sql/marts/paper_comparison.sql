-- Paper comparison: our cells beside the published ones of the same game and pathway, and in what the two differ.
--
-- grain: cell of a published game and pathway, published row
-- key: cell_id, published_as
-- columns:
--   cell_id                    text
--   model_id                   text
--   game                       text
--   pathway                    text; history or memory
--   intervention               text
--   replicate                  integer, from 0
--   published_as               text; model: the row of the same model; for models that were not published best: the
--       row of the model with the highest mean, and median: the median of each column over the models
--   published_model            text; null for the median
--   published_model_count      models of the game and pathway that are published
--   avg_score                  game's unit; over valid checkpoints, the first included
--   published_avg_score        game's unit
--   max_score                  game's unit
--   published_max_score        game's unit
--   auc_plus                   game's unit x episodes, from 0
--   published_auc_plus         game's unit x episodes, from 0
--   agreement                  0 to 1; of exploration's steps with a self-score, as the four that follow
--   published_agreement        0 to 1; of the game, all models and pathways together, as the four that follow
--   nmae_observed              0 to 1; on the scale observed in our cells
--   published_nmae_observed    0 to 1; on the scale observed in theirs
--   over_confidence            0 to 1
--   published_over_confidence  0 to 1
--   under_confidence           0 to 1
--   published_under_confidence  0 to 1
--   unit                       text; of the published scores
--   differences                text; what stands between the two rows, as far as this folder knows
--   source                     text; of the published row, and its licence
-- source: S3Gym, arXiv 2608.31100, tables 4 and 5, CC BY 4.0; see stg_published_improvement and stg_published_models
-- left out: a difference of the numbers, which would compare unlike things: the published ones have no error bars. A
--     model is the same only where stg_published_models has its name.
with published_models as (
    select
        game,
        pathway,
        'model' as published_as,
        model as published_model,
        count(*) over (partition by game, pathway) as model_count,
        avg_score,
        max_score,
        auc_plus
    from stg_published_improvement
),

published_rows as (
    select
        game,
        pathway,
        published_as,
        published_model,
        model_count,
        avg_score,
        max_score,
        auc_plus
    from published_models
    union all
    select
        game,
        pathway,
        'best' as published_as,
        max_by(model, avg_score) as published_model,
        count(*) as model_count,
        max(avg_score) as avg_score,
        max_by(max_score, avg_score) as max_score,
        max_by(auc_plus, avg_score) as auc_plus
    from stg_published_improvement
    group by game, pathway
    union all
    select
        game,
        pathway,
        'median' as published_as,
        null as published_model,
        count(*) as model_count,
        median(avg_score) as avg_score,
        median(max_score) as max_score,
        median(auc_plus) as auc_plus
    from stg_published_improvement
    group by game, pathway
),

protocols as (
    select distinct
        game,
        pathway,
        exploration_episode_count,
        evaluation_interval,
        evaluation_episode_count,
        checkpoint_count,
        unit,
        note,
        source
    from stg_published_improvement
),

setting_values as (
    select
        cells.cell_id,
        published.phase,
        published.setting,
        published.setting_value as published_value,
        coalesce(
            json_extract_string(
                case published.phase when 'exploration' then asked.exploration_config else asked.evaluation_config end,
                '$.' || published.setting
            ),
            'unknown'
        ) as own_value
    from int_selected_cells as cells
    inner join stg_cells as asked on cells.run_id = asked.run_id and cells.cell_id = asked.cell_id
    inner join stg_published_settings as published on cells.game = published.game
),

changed_settings as (
    select
        cell_id,
        string_agg(
            phase || ' with ' || setting || ' ' || own_value || ', not ' || published_value, '; '
            order by phase asc, setting asc
        ) as differences
    from setting_values
    where own_value != published_value
    group by cell_id
),

replicates as (
    select
        cell_id,
        count(*) filter (where is_counted) over (partition by series_id) as replicate_count
    from int_replicate_series
)

select
    cells.cell_id,
    cells.model_id,
    cells.game,
    cells.pathway,
    cells.intervention,
    cells.replicate,
    published.published_as,
    published.published_model,
    published.model_count as published_model_count,
    own.avg_score,
    published.avg_score as published_avg_score,
    own.max_score,
    published.max_score as published_max_score,
    own.auc_plus,
    published.auc_plus as published_auc_plus,
    judges.agreement,
    published_judges.agreement as published_agreement,
    judges.nmae_observed,
    published_judges.nmae_observed as published_nmae_observed,
    judges.over_confidence,
    published_judges.over_confidence as published_over_confidence,
    judges.under_confidence,
    published_judges.under_confidence as published_under_confidence,
    protocols.unit,
    concat_ws(
        '; ',
        case published.published_as
            when 'model' then 'when ' || published.published_model || ' was called is not published'
            when 'best' then cells.model_id || ', not ' || published.published_model
            else cells.model_id || ', not the median of ' || published.model_count || ' models'
        end,
        case when cells.intervention != 'main' then 'the link ' || cells.intervention || ' was replaced' end,
        'explored by ' || cells.explorer_id,
        case
            when cells.exploration_episode_count != protocols.exploration_episode_count
                then
                    cells.exploration_episode_count || ' exploration episodes, not '
                    || protocols.exploration_episode_count
        end,
        case
            when own.checkpoint_count != protocols.checkpoint_count
                then own.checkpoint_count || ' checkpoints, not ' || protocols.checkpoint_count
        end,
        case
            when own.valid_checkpoint_count < own.checkpoint_count
                then own.checkpoint_count - own.valid_checkpoint_count || ' of them not valid'
        end,
        case
            when cells.evaluation_interval != protocols.evaluation_interval
                then
                    cells.evaluation_interval || ' exploration episodes between two, not '
                    || protocols.evaluation_interval
        end,
        case
            when cells.evaluation_episode_count != protocols.evaluation_episode_count
                then
                    cells.evaluation_episode_count || ' held-out episodes a checkpoint, not '
                    || protocols.evaluation_episode_count
        end,
        case when replicates.replicate_count > 1 then 'one of ' || replicates.replicate_count || ' replicates' end,
        changed_settings.differences,
        protocols.note,
        'prompts and decoding are not published'
    ) as differences,
    protocols.source
from int_selected_cells as cells
inner join protocols on cells.game = protocols.game and cells.pathway = protocols.pathway
left join stg_published_models as listed on cells.model_id = listed.model_id
inner join published_rows as published
    on
        cells.game = published.game
        and cells.pathway = published.pathway
        and (
            (published.published_as = 'model' and listed.published_model = published.published_model)
            or (published.published_as != 'model' and listed.published_model is null)
        )
inner join improvement as own on cells.cell_id = own.cell_id
inner join replicates on cells.cell_id = replicates.cell_id
left join changed_settings on cells.cell_id = changed_settings.cell_id
left join judge_reliability as judges on cells.cell_id = judges.cell_id and judges.phase = 'exploration'
left join stg_published_judge_reliability as published_judges on cells.game = published_judges.game
