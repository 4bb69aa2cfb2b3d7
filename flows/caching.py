"""The one cache policy: a stage's own key, and the manifest decides.

Prefect's default key holds the run id and would never hit; task source would miss what a stage calls. Ours is made
of the stage parts a task fills. Prefect does not look whether the files behind a result still exist, so a result
whose stage is not complete by its manifest is taken away before Prefect can serve it.
"""

import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from prefect import Task, task

from flows.runtime import Runtime
from s3gym.plan import Stage, missing

Body = Callable[[Stage, Runtime], Awaitable[list[dict[str, Any]]]]


class Work:
    """What one task does: small stages of one kind, in order. Opaque to Prefect, which would walk into a dataclass."""

    def __init__(self, stages: list[Stage], runtime: Runtime) -> None:
        self.stages, self.runtime = stages, runtime

    @property
    def label(self) -> str:
        """Name of the task run."""
        more = f" and {len(self.stages) - 1} more" if len(self.stages) > 1 else ""
        return f"{self.stages[0].label}{more}"


def results_folder(data: Path) -> Path:
    """Where Prefect keeps results: JSON, in the data folder, moved and deleted with it."""
    return data / "prefect"


def stage_cache_key(context: Any, parameters: dict[str, Any]) -> str:
    """The parts a task fills, as one key; drops a stored result that the manifests do not bear out."""
    work: Work = parameters["work"]
    parts = [stage.whole for stage in work.stages]
    key = parts[0] if len(parts) == 1 else f"{parts[0]}-{hashlib.sha256(' '.join(parts).encode()).hexdigest()[:24]}"
    if any(missing(work.runtime.data, stage) for stage in work.stages):
        (results_folder(work.runtime.data) / key).unlink(missing_ok=True)
    return key


def cached_task(body: Body, data: Path) -> Task[[str, Work], Any]:
    """``body`` as a cached Prefect task that returns the manifests of its stages."""

    @task(
        name=body.__name__,
        task_run_name="{label}",
        cache_key_fn=stage_cache_key,
        persist_result=True,
        result_storage=results_folder(data),
        result_serializer="json",
    )
    async def run(label: str, work: Work) -> list[dict[str, Any]]:
        manifests = []
        for stage in work.stages:
            if missing(work.runtime.data, stage):
                manifests += await body(stage, work.runtime)
        return manifests

    return run
