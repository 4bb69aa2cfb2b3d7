"""The log of refreshes: every going through a run's stages leaves a row, also one that failed or was stopped.

A process that is killed leaves none; what it finished is in the manifests.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from s3gym import storage
from s3gym.errors import Explained
from s3gym.models._failures import redact
from s3gym.plan import RunPlan, Stage, missing
from s3gym.protocol.prompts import PROMPT_VERSION
from s3gym.records import Refresh
from s3gym.staleness import counted, explain
from s3gym.versions import versions
from s3gym.warehouse import Warehouse

MANUAL, SCHEDULE = "manual", "schedule"
"""What may set off a refresh."""

_VERDICTS = "select cell_id, verdict from improvement_verdict where verdict is not null order by cell_id"


@dataclass
class Outcome:
    """How a run went."""

    plan: RunPlan
    task_count: int = 0
    failures: list[str] = field(default_factory=list)
    """One sentence each."""
    stopped: str | None = None
    """The limit of the user that ended it, in a sentence."""
    calls_made: int = 0
    paid_usd: float | None = 0.0
    """None where the cost of a call is not known."""
    refresh: Refresh | None = None
    """Its row in the log, once it has ended."""


@contextmanager
def logged(data: Path, outcome: Outcome, to_do: list[Stage], trigger: str) -> Iterator[None]:
    """Writes the row of a refresh when the block ends, however it ends; the caller holds the folder's lock.

    Args:
        data: the data folder.
        outcome: is read, and given its row, at the end.
        to_do: the stages with something missing.
        trigger: ``MANUAL`` or ``SCHEDULE``.
    """
    started_at = datetime.now(UTC)
    reasons = counted(explain(data, outcome.plan)) if to_do else {}
    error: BaseException | None = None
    try:
        yield
    except BaseException as raised:
        error = raised
        raise
    finally:
        run_id = outcome.plan.run.run_id
        status, failure = _ending(outcome, bool(to_do), error)
        outcome.refresh = Refresh(
            refresh_id=f"{started_at:%Y%m%dT%H%M%S.%fZ}-{run_id}",
            run_id=run_id,
            started_at=started_at,
            ended_at=datetime.now(UTC),
            trigger=trigger,
            status=status,
            versions=json.dumps({**versions(), "prompts": str(PROMPT_VERSION)}, sort_keys=True),
            stages_made=sum(1 for stage in to_do if not missing(data, stage)),
            calls_made=outcome.calls_made,
            paid_usd=outcome.paid_usd,
            reasons=json.dumps(reasons),
            failure=failure,
            verdicts=None,
        )
        storage.write_refresh(data, outcome.refresh)


def keep_verdicts(data: Path, refresh: Refresh, warehouse: Warehouse) -> None:
    """Adds what the report says of each cell to the log, for the next refresh to compare with."""
    verdicts = dict(warehouse.sql(_VERDICTS).rows())
    storage.write_refresh(data, replace(refresh, verdicts=json.dumps(verdicts)))


def _ending(outcome: Outcome, has_work: bool, error: BaseException | None) -> tuple[str, str | None]:
    """Status, and the first sentence that says what went wrong."""
    if error is not None and not isinstance(error, Exception):
        return "stopped", "stopped by a signal"
    if error is not None:
        told = str(error) if isinstance(error, Explained) else f"{type(error).__name__}: {redact(str(error))}"
        return "failed", told
    if outcome.stopped is not None:
        return "stopped", outcome.stopped
    if outcome.failures:
        return "failed", outcome.failures[0]
    return ("complete" if has_work else "nothing_to_do"), None
