-- Refreshes, with what they took: the log of everything that went through a run's stages.
--
-- grain: refresh
-- key: refresh_id
-- columns:
--   refresh_id        text
--   run_id            text
--   scale             text; of the run
--   trigger           text; manual or schedule
--   status            text; complete, failed, stopped or nothing_to_do
--   started_at        time stamp, UTC
--   seconds           from beginning to end
--   stages_made       stages, from 0
--   calls_made        model calls, failed ones included, from 0
--   paid_usd          US dollars; null where the cost of a call is not known
--   reasons           text; what had changed, and in brackets of how many stages; null where nothing was to be made
--   failure           text; the first sentence that says what went wrong; null when nothing did
--   is_selected       true where it went through the run that the marts show
with reasons as (
    select
        refresh_id,
        unnest(json_keys(reasons)) as reason,
        unnest(json_extract(reasons, '$.*')) as stage_count
    from stg_refreshes
),

told as (
    select
        refresh_id,
        string_agg(reason || ' (' || stage_count || ')', '; ' order by cast(stage_count as bigint) desc, reason asc)
            as reasons
    from reasons
    group by refresh_id
),

selected as (
    select distinct run_id
    from int_selected_cells
)

select
    refreshes.refresh_id,
    refreshes.run_id,
    runs.scale,
    refreshes.trigger,
    refreshes.status,
    refreshes.started_at,
    epoch(refreshes.ended_at - refreshes.started_at) as seconds,
    refreshes.stages_made,
    refreshes.calls_made,
    refreshes.paid_usd,
    told.reasons,
    refreshes.failure,
    selected.run_id is not null as is_selected
from stg_refreshes as refreshes
inner join stg_runs as runs on refreshes.run_id = runs.run_id
left join told on refreshes.refresh_id = told.refresh_id
left join selected on refreshes.run_id = selected.run_id
