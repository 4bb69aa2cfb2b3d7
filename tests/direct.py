"""The stages of a request one after the other, without an orchestrator."""

import asyncio
from pathlib import Path
from typing import Any

from flows.benchmark import BODIES
from flows.runtime import Runtime
from s3gym import storage
from s3gym.config import load_config
from s3gym.journal import Journal
from s3gym.plan import RunPlan, make_plan, missing


def measure_directly(data: Path, *assignments: str, **values: Any) -> RunPlan:
    """Does what the request lacks in ``data`` and records the request."""
    plan = make_plan(load_config(None, values, assignments))
    storage.open_folder(data)
    storage.write_request(data, plan.run, [cell.record for cell in plan.cells], plan.links())

    async def walk() -> None:
        with Journal(data / "journal.sqlite") as journal:
            runtime = Runtime(data, journal, 4, lambda kind, number: None)
            for stage in plan.stages():
                if missing(data, stage):
                    await BODIES[stage.kind](stage, runtime)

    asyncio.run(walk())
    return plan
