-- The cells that every mart shows: those of the selected run, as far as models and games are selected.
--
-- The variable run_id selects: null is the latest run by requested_at, 'all' is every run. A cell that several runs
-- asked for counts once, as the latest of them asked for it. The variables models and games are lists of names, and
-- since is a time that no run was requested before; null is no such limit.
--
-- grain: cell
-- key: cell_id
-- columns:
--   cell_id                    text
--   run_id                     text; the run whose request counts for the cell
--   requested_at               time stamp, UTC; of that run
--   model_id                   text
--   game                       text
--   pathway                    text
--   intervention               text
--   replicate                  integer, from 0
--   base_seed                  integer
--   comparison_id              text; hash of all that two cells must share to differ by their pathway or intervention
--       alone. Settings that do not touch the pathway none (exploration's configuration and budget, history) are
--       not in it
--   exploration_config_id      text
--   evaluation_config_id       text
--   exploration_episode_count  episodes; 0 for the pathway none
--   evaluation_interval        exploration episodes between two checkpoints
--   evaluation_episode_count   episodes a checkpoint
--   history_token_limit        tokens
--   history_cut                text
--   explorer_id                text; who explored in the model's place; null where it explored itself
--   training                   text; how experience became weights, JSON; null where it did not
--   score_aggregation          text; sum or mean
--   reward_min                 game's unit
--   reward_max                 game's unit
--   smallest_positive_score    game's unit
--   is_instances_shared        true or false
with latest_run as (
    select run_id
    from stg_runs
    order by requested_at desc, run_id desc
    limit 1
),

selection as (
    select coalesce(cast(getvariable('run_id') as varchar), (select latest_run.run_id from latest_run)) as run_id
),

requests as (
    select
        cells.run_id,
        cells.cell_id,
        runs.requested_at
    from stg_cells as cells
    inner join stg_runs as runs on cells.run_id = runs.run_id
    inner join selection on selection.run_id in (cells.run_id, 'all')
    where
        coalesce(runs.requested_at >= cast(getvariable('since') as timestamptz), true)
        and coalesce(list_contains(cast(getvariable('models') as varchar[]), cells.model_id), true)
        and coalesce(list_contains(cast(getvariable('games') as varchar[]), cells.game), true)
    qualify row_number() over (partition by cells.cell_id order by runs.requested_at desc, runs.run_id desc) = 1
)

select
    cells.cell_id,
    cells.run_id,
    requests.requested_at,
    cells.model_id,
    cells.game,
    cells.pathway,
    cells.intervention,
    cells.replicate,
    cells.base_seed,
    md5(concat_ws(
        '|',
        cells.model_id,
        coalesce(cells.model_revision, ''),
        cells.game,
        cells.game_version,
        cells.replicate,
        cells.base_seed,
        cells.evaluation_config_id,
        cells.prompt_version,
        coalesce(cast(cells.temperature as varchar), ''),
        cells.max_output_tokens,
        cells.evaluation_interval,
        cells.evaluation_episode_count,
        cells.evaluation_set
    )) as comparison_id,
    cells.exploration_config_id,
    cells.evaluation_config_id,
    cells.exploration_episode_count,
    cells.evaluation_interval,
    cells.evaluation_episode_count,
    cells.history_token_limit,
    cells.history_cut,
    cells.explorer_id,
    cells.training,
    cells.score_aggregation,
    cells.reward_min,
    cells.reward_max,
    cells.smallest_positive_score,
    cells.is_instances_shared
from requests
inner join stg_cells as cells on requests.run_id = cells.run_id and requests.cell_id = cells.cell_id
