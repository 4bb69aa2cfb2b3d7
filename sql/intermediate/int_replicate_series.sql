-- Which cells are replicates of each other: alike in every setting but the number of the replicate.
--
-- grain: cell
-- key: cell_id
-- columns:
--   cell_id     text
--   series_id   text; hash of all settings but the replicate
--   is_counted  true for one cell of each replicate: the latest, where some differ in a setting that no column holds
with series as (
    select
        cells.cell_id,
        cells.replicate,
        selected.requested_at,
        md5(concat_ws(
            '|',
            cells.model_id,
            coalesce(cells.model_revision, ''),
            cells.game,
            cells.game_version,
            cells.pathway,
            cells.intervention,
            cells.base_seed,
            cells.exploration_config_id,
            cells.evaluation_config_id,
            cells.prompt_version,
            coalesce(cast(cells.temperature as varchar), ''),
            cells.max_output_tokens,
            cells.exploration_episode_count,
            cells.evaluation_interval,
            cells.evaluation_episode_count,
            cells.evaluation_set,
            cells.history_token_limit,
            cells.history_cut,
            coalesce(cells.explorer_id, ''),
            coalesce(cells.training, '')
        )) as series_id
    from int_selected_cells as selected
    inner join stg_cells as cells on selected.run_id = cells.run_id and selected.cell_id = cells.cell_id
)

select
    cell_id,
    series_id,
    row_number() over (partition by series_id, replicate order by requested_at desc, cell_id asc) = 1 as is_counted
from series
