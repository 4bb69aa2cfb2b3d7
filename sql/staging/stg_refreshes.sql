-- Every time somebody, or the schedule, went through the stages of a run: when, why, and what it took.
--
-- grain: refresh
-- key: refresh_id
-- columns:
--   refresh_id   text; when it began, and the run
--   run_id       text; of the run it went through
--   started_at   time stamp, UTC
--   ended_at     time stamp, UTC
--   trigger      text; manual or schedule
--   status       text; complete, failed, stopped (by a limit or a signal) or nothing_to_do
--   versions     text; JSON: of the package, Python, libraries and prompts
--   stages_made  stages, from 0
--   calls_made   model calls, failed ones included, from 0
--   paid_usd     US dollars; null where the cost of a call is not known
--   reasons      text; JSON: how many stages were to be made, by what had changed since they were last made
--   failure      text; the first sentence that says what went wrong; null when nothing did
--   verdicts     text; JSON: the verdict of each cell as the report of this refresh had it; null without a report
select
    refresh_id,
    run_id,
    started_at,
    ended_at,
    trigger,
    status,
    versions,
    stages_made,
    calls_made,
    paid_usd,
    reasons,
    failure,
    verdicts
from raw.refreshes
