-- Requests to measure, one row each.
--
-- grain: run
-- key: run_id
-- columns:
--   run_id           text; hash of the whole request
--   requested_at     time stamp, UTC
--   scale            text; smoke, small or paper; single settings may differ, see config
--   config           text; the resolved configuration as JSON
--   package_version  text
select
    run_id,
    requested_at,
    scale,
    config,
    package_version
from raw.runs
