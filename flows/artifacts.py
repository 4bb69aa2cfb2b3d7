"""What Prefect's pages show of a refresh: a summary of it and the way to its report. Every number is SQL's."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prefect.artifacts import create_link_artifact, create_markdown_artifact

from s3gym.records import Refresh
from s3gym.warehouse import Warehouse

_LOG = """
    select
        status,
        stages_made || ' stages made' as stages,
        calls_made || ' model calls' as calls,
        coalesce(printf('%.4f', paid_usd), 'unknown') || ' dollars' as dollars,
        printf('%.0f', seconds) || ' seconds' as seconds,
        coalesce(reasons, 'nothing was to do') as reasons
    from refreshes
    where refresh_id = '{refresh_id}'
"""
_SUMMARY = """
    select
        i.game,
        i.model_id as model,
        i.pathway,
        i.replicate,
        printf('%.3g', i.initial_score) as "first score",
        printf('%.3g', i.last_score) as "last score",
        printf('%+.3g', v.gain) as gain,
        replace(v.verdict, '_', ' ') as verdict
    from improvement as i
    left join improvement_verdict as v on i.cell_id = v.cell_id
    order by all
"""
_DRIFT = """
    select
        game,
        model_id as model,
        pathway,
        printf('%.3g', previous_score) as before,
        printf('%.3g', score) as now,
        replace(outcome, '_', ' ') as "in words",
        cause as changed
    from drift
    where status = 'remeasured'
    order by all
"""


def publish_artifacts(warehouse: Warehouse, refresh: Refresh, report: Path) -> None:
    """Shows the summary and the report's address beside the flow run, and as the latest of their kind."""
    log = warehouse.sql(_LOG.format(refresh_id=refresh.refresh_id)).to_dicts()[0]
    parts = [
        f"**{log.pop('status').replace('_', ' ')}**: {', '.join(log.values())}.",
        *([f"**Failed**: {refresh.failure}"] if refresh.failure else []),
        f"Report: `{report}`",
        "## Where each cell stands",
        _table(warehouse.sql(_SUMMARY).to_dicts()),
    ]
    if drifted := warehouse.sql(_DRIFT).to_dicts():
        parts += ["## Measured anew since the refresh before", _table(drifted)]
    create_markdown_artifact("\n\n".join(parts), key="s3gym-summary", description="What the refresh came to")
    create_link_artifact(report.as_uri(), link_text=str(report), key="s3gym-report", description="The report")


def _table(rows: Sequence[dict[str, Any]]) -> str:
    """Markdown; a dash for what is missing."""
    if not rows:
        return "Nothing has been measured yet."
    lines = [list(rows[0]), ["---"] * len(rows[0]), *(list(row.values()) for row in rows)]
    return "\n".join(
        f"| {' | '.join('-' if v is None else str(v).replace('|', '/') for v in line)} |" for line in lines
    )
