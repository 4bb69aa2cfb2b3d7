"""``serve``: refreshes on a schedule, for as long as the process lives."""

from pathlib import Path
from typing import Any

from rich.markup import escape

from flows.server import ServerError
from flows.serving import Schedule, serve
from s3gym.config import load_config
from s3gym.plan import make_plan
from s3gym.terminal.console import errors


def keep_schedule(
    data: Path,
    cron: str,
    timezone: str,
    config_file: Path | None,
    settings: dict[str, Any],
    assignments: tuple[str, ...],
    while_running: str,
    is_remeasured: bool,
) -> int:
    """Serves until it is interrupted; the exit code."""
    make_plan(load_config(config_file, settings, assignments))  # a wrong request is told now, not at three in the night
    schedule = Schedule(
        data=data.resolve(),
        cron=cron,
        timezone=timezone,
        parameters={
            "config": str(config_file.resolve()) if config_file else None,
            "data": str(data.resolve()),
            "settings": settings,
            "assignments": list(assignments),
            "while_running": while_running,
            "remeasure": is_remeasured,
        },
    )
    try:
        serve(schedule, lambda told: errors.print(escape(told), soft_wrap=True, highlight=False))
    except ServerError as error:
        errors.print(f"[red]Failed:[/red] {escape(str(error))}", soft_wrap=True, highlight=False)
        return 1
    return 0
