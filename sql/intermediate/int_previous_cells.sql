-- Each cell of the selected run beside the same cell as the refresh before had it: same model, game, pathway,
-- intervention, replicate and base seed.
--
-- The refresh before is the latest one that began before the latest refresh of the cell's run, went through another
-- run and had such a cell: going through the same run again makes nothing new, and a run of other games, models or
-- pathways in between says nothing of this one.
--
-- grain: cell
-- key: cell_id
-- columns:
--   cell_id              text
--   run_id               text
--   refresh_id           text; the latest of its run; null where its run is in no log of refreshes
--   previous_cell_id     text; the same as cell_id where nothing changed; null where there is none before
--   previous_run_id      text
--   previous_refresh_id  text
--   previous_at          time stamp, UTC; when the refresh before began
--   cause                text; what of stg_cells is not as it was, old and new; null where nothing of it differs
-- left out: inputs that are no column of stg_cells, such as the VERSION of a pathway or the source of an agent of one's
--     own; the reasons of stg_refreshes name them, over all cells.
with own as (
    select
        cells.cell_id,
        cells.run_id,
        refreshes.refresh_id,
        refreshes.started_at
    from int_selected_cells as cells
    inner join stg_refreshes as refreshes on cells.run_id = refreshes.run_id
    qualify row_number() over (partition by cells.cell_id order by refreshes.started_at desc) = 1
),

before as (
    select
        own.cell_id,
        own.run_id,
        earlier.cell_id as previous_cell_id,
        refreshes.run_id as previous_run_id,
        refreshes.refresh_id as previous_refresh_id,
        refreshes.started_at as previous_at
    from own
    inner join stg_cells as cells on own.run_id = cells.run_id and own.cell_id = cells.cell_id
    inner join stg_refreshes as refreshes on own.run_id != refreshes.run_id and own.started_at > refreshes.started_at
    inner join stg_cells as earlier
        on
            refreshes.run_id = earlier.run_id
            and cells.model_id = earlier.model_id
            and cells.game = earlier.game
            and cells.pathway = earlier.pathway
            and cells.intervention = earlier.intervention
            and cells.replicate = earlier.replicate
            and cells.base_seed = earlier.base_seed
    qualify row_number() over (
        partition by own.cell_id
        order by refreshes.started_at desc, own.cell_id = earlier.cell_id desc, earlier.cell_id asc
    ) = 1
),

facts as (
    unpivot (
        select
            run_id,
            cell_id,
            cast(game_version as varchar) as game_version,
            coalesce(model_revision, 'none') as model_revision,
            cast(prompt_version as varchar) as prompt_version,
            exploration_config,
            evaluation_config,
            coalesce(cast(temperature as varchar), 'none') as temperature,
            cast(max_output_tokens as varchar) as max_output_tokens,
            cast(exploration_episode_count as varchar) as exploration_episodes,
            cast(evaluation_interval as varchar) as evaluation_interval,
            cast(evaluation_episode_count as varchar) as evaluation_episodes,
            evaluation_set,
            cast(history_token_limit as varchar) as history_token_limit,
            history_cut,
            coalesce(explorer_id, 'none') as explorer,
            coalesce(training, 'none') as training
        from stg_cells
    ) on columns(* exclude (run_id, cell_id)) into name what value fact
),

causes as (
    select
        before.cell_id,
        string_agg(
            replace(now.what, 'game_version', 'game VERSION') || ' ' || earlier.fact || ' -> ' || now.fact,
            '; ' order by now.what
        ) as cause
    from before
    inner join facts as now on before.run_id = now.run_id and before.cell_id = now.cell_id
    inner join facts as earlier
        on
            before.previous_run_id = earlier.run_id
            and before.previous_cell_id = earlier.cell_id
            and now.what = earlier.what
    where now.fact != earlier.fact
    group by before.cell_id
)

select
    cells.cell_id,
    cells.run_id,
    own.refresh_id,
    before.previous_cell_id,
    before.previous_run_id,
    before.previous_refresh_id,
    before.previous_at,
    causes.cause
from int_selected_cells as cells
left join own on cells.cell_id = own.cell_id
left join before on cells.cell_id = before.cell_id
left join causes on cells.cell_id = causes.cell_id
