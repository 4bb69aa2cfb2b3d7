"""Times of a schedule that came due: many that were missed are one refresh."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterDeploymentId,
    FlowRunFilterExpectedStartTime,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.runtime import deployment, flow_run
from prefect.types import DateTime

from s3gym.errors import Explained


class ScheduleError(Explained):
    """A schedule cannot be kept; the message says which part of it and what was expected."""


def next_tick(cron: str, timezone: str) -> datetime:
    """When a schedule comes due next.

    Raises:
        ScheduleError: the cron text or the time zone is none, or no such time will come.
    """
    from prefect.server.schemas.schedules import CronSchedule
    from pydantic import ValidationError

    try:
        CronSchedule(cron="@daily", timezone=timezone)
    except ValidationError:
        raise ScheduleError(
            f"--timezone {timezone!r} is no time zone; expected a name such as UTC or Europe/Berlin"
        ) from None
    try:
        schedule = CronSchedule(cron=cron, timezone=timezone)
    except ValidationError:
        schedule = None
    if schedule is None or (len(cron.split()) != 5 and not cron.startswith("@")):  # six fields would be seconds
        raise ScheduleError(
            f"--cron {cron!r} is no schedule; expected minute, hour, day of the month, month and day of the week, "
            'such as "0 3 * * 1" for Mondays at 3:00, or @daily, @weekly'
        )
    try:
        return asyncio.run(schedule.get_dates(1, datetime.now(UTC)))[0]
    except ValueError:
        raise ScheduleError(f"--cron {cron!r} names a time that never comes; give one that does") from None


def due(deployment_id: UUID) -> Sequence[FlowRun]:
    """Flow runs of a deployment whose time has come and that have not begun."""
    chosen = FlowRunFilter(
        deployment_id=FlowRunFilterDeploymentId(any_=[deployment_id]),
        state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.SCHEDULED])),
        expected_start_time=FlowRunFilterExpectedStartTime(before_=DateTime.now(UTC)),
    )
    with get_client(sync_client=True) as client:
        return client.read_flow_runs(flow_run_filter=chosen)


def dismiss_due(why: str) -> int:
    """Takes all that is due of this flow run's deployment off the schedule, itself left out; how many."""
    if deployment.id is None:  # called as a function
        return 0
    others = [run for run in due(UUID(deployment.id)) if str(run.id) != flow_run.id]
    skipped = State(type=StateType.CANCELLED, name="Skipped", message=why)
    with get_client(sync_client=True) as client:
        for run in others:
            client.set_flow_run_state(run.id, skipped, force=True)
    return len(others)
