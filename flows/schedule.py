"""The scheduled refresh: the flow that Prefect runs when its time comes. ``s3gym serve`` and ``prefect.yaml`` name it.

One at a time: whoever is at work holds the data folder, and a refresh that finds it held waits or is skipped, as
asked. What came due meanwhile, or while nobody served, is one refresh and not many: the one that begins takes the
others off the schedule.
"""

from datetime import UTC, datetime
from pathlib import Path
from time import sleep
from typing import Any, Literal

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.runtime import flow_run
from prefect.states import Completed

from flows.artifacts import publish_artifacts
from flows.benchmark import measure
from flows.logbook import SCHEDULE, Outcome, keep_verdicts
from flows.ticks import dismiss_due
from s3gym.config import RunConfig, load_config
from s3gym.report.render import render
from s3gym.resampling import refresh as refresh_intervals
from s3gym.storage import FolderInUse
from s3gym.warehouse import Warehouse

POLL_SECONDS = 5.0
"""How often a refresh that waits looks whether the folder is free."""


class RefreshFailed(Exception):
    """A refresh ended with something failed or stopped; the message has a sentence each, with cell and remedy."""


def _run_name() -> str:
    """What the flow run is called: which folder, and for when."""
    due = flow_run.scheduled_start_time or datetime.now(UTC)
    return f"refresh {Path(flow_run.parameters.get('data', 'data')).name} {due:%Y-%m-%d %H:%M}"


@flow(name="refresh", flow_run_name=_run_name, persist_result=False)
def refresh(
    config: str | None = None,
    data: str = "data",
    settings: dict[str, Any] | None = None,
    assignments: list[str] | None = None,
    while_running: Literal["wait", "skip"] = "wait",
    remeasure: bool = False,
) -> State[Any] | None:
    """Measures what the request asks for and the data folder does not hold yet, and writes the report.

    Args:
        config: a TOML file, read anew each time.
        data: the data folder.
        settings: what replaces values of the file, by name.
        assignments: further ``key=value`` texts.
        while_running: whether a refresh that finds the folder at work waits for it or is skipped.
        remeasure: whether hosted models are measured anew, as of today.

    Raises:
        RefreshFailed: something failed or was stopped.
        Explained: the request is wrong.
    """
    try:
        return _refreshed(config, data, settings or {}, assignments or [], while_running, remeasure)
    except Exception as error:  # also for whoever watches the process
        _say(f"failed: {error}")
        raise


def _refreshed(
    config: str | None,
    data: str,
    settings: dict[str, Any],
    assignments: list[str],
    while_running: str,
    is_remeasured: bool,
) -> State[Any] | None:
    dismiss_due("another refresh began, which does its work")
    overrides = {**settings, **({"as_of": f"{datetime.now(UTC):%Y-%m-%d}"} if is_remeasured else {})}
    request = load_config(Path(config) if config else None, overrides, assignments)
    folder = Path(data).resolve()
    try:
        outcome = _when_free(request, folder, is_patient=while_running == "wait")
    except FolderInUse as error:
        _say(f"skipped: {error}")
        return Completed(name="Skipped", message=str(error))
    finally:
        if while_running == "skip":
            dismiss_due("it came due while a refresh was running, and is skipped as configured")
    _publish(outcome, folder)
    problems = [*outcome.failures, *([outcome.stopped] if outcome.stopped else [])]
    if problems:
        problems.append("Everything else is kept; the next refresh, or `s3gym run`, tries only what failed once more.")
        raise RefreshFailed("\n".join(problems))
    return None


def _when_free(request: RunConfig, data: Path, is_patient: bool) -> Outcome:
    """Measures as soon as no other process does; raises FolderInUse where it is not to wait for that."""
    is_told = False
    while True:
        try:
            return measure(request, data, lambda kind, number: None, lambda work: _say("began"), _say, SCHEDULE)
        except FolderInUse as error:
            if not is_patient:
                raise
            if not is_told:
                _say(f"waiting: {error}")
                is_told = True
            sleep(POLL_SECONDS)


def _publish(outcome: Outcome, data: Path) -> None:
    """The report, the verdicts for the next refresh, and what Prefect's pages show."""
    assert outcome.refresh is not None  # measure has ended
    warehouse = Warehouse(data, materialize=True)
    refresh_intervals(warehouse)
    keep_verdicts(data, outcome.refresh, warehouse)
    report = render(warehouse, data / "report.html")
    publish_artifacts(warehouse, outcome.refresh, report)
    _say(f"{outcome.refresh.status.replace('_', ' ')}: {outcome.refresh.stages_made} stages made. Report: {report}")


def _say(told: str) -> None:
    """A line for whoever watches the process."""
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} refresh {told}", flush=True)
