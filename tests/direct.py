"""The stages of a request one after the other, without an orchestrator."""

import asyncio
from pathlib import Path
from typing import Any

from flows.benchmark import BODIES
from flows.runtime import Runtime, limiters_for
from s3gym import storage
from s3gym.config import RunConfig, load_config
from s3gym.journal import Journal
from s3gym.plan import RunPlan, make_plan, missing
from s3gym.protocol.allowance import Allowance


def measure_directly(data: Path, *assignments: str, **values: Any) -> RunPlan:
    """Does what the request lacks in ``data`` and records the request."""
    return measure_request(data, load_config(None, values, assignments))


def measure_request(data: Path, config: RunConfig) -> RunPlan:
    """The same of a request that is made already."""
    plan = make_plan(config)
    storage.open_folder(data)
    storage.write_request(data, plan.run, [cell.record for cell in plan.cells], plan.links())

    async def walk() -> None:
        with Journal(data / "journal.sqlite") as journal:
            models = [cell.subject.model for cell in plan.cells]
            limiters = limiters_for(models, config, lambda told: None)
            runtime = Runtime(data, journal, limiters, Allowance(), lambda kind, number: None)
            for stage in plan.stages():
                if missing(data, stage):
                    await BODIES[stage.kind](stage, runtime)

    asyncio.run(walk())
    return plan
