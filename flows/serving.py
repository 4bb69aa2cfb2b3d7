"""The long-lived process that starts refreshes when their time comes: Prefect's runner, on a server that may go away.

A refresh runs in a process of its own. When the server is lost the runner ends, and a refresh with it; what it
finished is kept. As soon as the server answers again, one refresh makes up for what was missed.
"""

import asyncio
import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.deployments.runner import RunnerDeployment
from prefect.exceptions import ObjectNotFound
from prefect.runner import Runner
from prefect.schedules import Cron
from prefect.states import Scheduled
from prefect.types.entrypoint import EntrypointType

from flows.schedule import refresh
from flows.server import ServerError, ServerUnreachable, check_server, schedule_server
from flows.ticks import due, next_tick
from s3gym import storage

RETRY_SECONDS = 10.0
"""How long to wait before a server that was lost is asked again."""
POLL_SECONDS = 5.0
"""How often the server is asked what is due."""


@dataclass(frozen=True)
class Schedule:
    """When a folder is refreshed, and with what."""

    data: Path
    cron: str
    timezone: str
    parameters: Mapping[str, Any]
    """Of the flow ``refresh``, JSON-able."""

    @property
    def name(self) -> str:
        """Of the deployment: one a folder."""
        place = hashlib.sha256(str(self.data).encode()).hexdigest()[:8]
        return f"{self.data.name}-{place}"


def serve(schedule: Schedule, on_notice: Callable[[str], None]) -> None:
    """Keeps ``schedule`` until it is interrupted.

    Args:
        schedule: when, where and what.
        on_notice: told, in a sentence for people, where it can be watched, and when the server is lost.

    Raises:
        ScheduleError, StorageError: it cannot be kept; nothing was begun.
        FolderInUse: another process keeps a schedule for the folder.
        ServerError: the server cannot be had, or used.
    """
    next_tick(schedule.cron, schedule.timezone)
    storage.open_folder(schedule.data)
    is_lost = False
    with storage.exclusive(schedule.data, "schedule"):
        while True:
            try:
                with schedule_server(schedule.data) as url:
                    if _is_kept(schedule, is_lost, url, on_notice):
                        return
                    on_notice(f"The Prefect server at {url} is gone; waiting for it. What was finished is kept")
            except ServerUnreachable:
                if not is_lost:
                    raise
                time.sleep(RETRY_SECONDS)
            is_lost = True


def _is_kept(schedule: Schedule, is_lost: bool, url: str, on_notice: Callable[[str], None]) -> bool:
    """Runs what comes due until the runner is stopped; False when the server was lost."""
    comes = next_tick(schedule.cron, schedule.timezone)
    told = (
        f"Serving {schedule.data} as refresh/{schedule.name} on {url.removesuffix('/api')}. "
        f"Next refresh: {comes:%A, %Y-%m-%d %H:%M %Z}. Ctrl-C ends it"
    )
    try:
        asyncio.run(_run(schedule, is_lost, lambda: on_notice(told)))
    except Exception as error:  # whatever a lost server raises in the runner
        try:
            check_server()
        except ServerUnreachable:
            return False
        raise ServerError(
            f"the schedule cannot be kept on {url} ({type(error).__name__}: {error}); nothing measured is lost, "
            "start it again"
        ) from error
    return True


async def _run(schedule: Schedule, is_lost: bool, on_ready: Callable[[], None]) -> None:
    """Registers the schedule and runs what comes due, until the runner is stopped."""
    deployment = await refresh.ato_deployment(
        schedule.name,
        schedule=Cron(schedule.cron, timezone=schedule.timezone),
        parameters=dict(schedule.parameters),
        description=f"Refreshes the data folder {schedule.data}.",
        tags=["s3gym"],
        entrypoint_type=EntrypointType.MODULE_PATH,
    )
    assert isinstance(deployment, RunnerDeployment)
    is_missed = is_lost or await _is_missed(schedule)  # asked first: to register takes what is due off the schedule
    runner = Runner(name=schedule.name, limit=1, pause_on_shutdown=False, query_seconds=POLL_SECONDS)
    deployment_id = await runner.aadd_deployment(deployment)
    if is_missed:
        async with get_client() as client:
            await client.create_flow_run_from_deployment(
                deployment_id, state=Scheduled(scheduled_time=datetime.now(UTC)), tags=["missed"]
            )
    on_ready()
    await runner.start()


async def _is_missed(schedule: Schedule) -> bool:
    """Whether a time came and went while nobody served."""
    async with get_client() as client:
        try:
            known = await client.read_deployment_by_name(f"{refresh.name}/{schedule.name}")
        except ObjectNotFound:
            return False
    return bool(await asyncio.to_thread(due, UUID(str(known.id))))
