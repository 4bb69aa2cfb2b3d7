"""Stage: held-out strict episodes with the experience of a checkpoint, independent of each other.

Tables ``episodes`` and ``steps``. A failed call makes its episode invalid, never a score; the others count on.
"""

from collections.abc import Sequence
from typing import Any

from flows.runtime import Runtime, Workbench, all_of, carried, trained
from s3gym.games.base import EVALUATION
from s3gym.plan import Stage, missing
from s3gym.records import Episode, Step


async def evaluate(stage: Stage, runtime: Runtime) -> list[dict[str, Any]]:
    """Plays what the stage still lacks, one part a gap; the manifests of what was written."""
    async with trained(runtime, stage) as model:
        bench, subject = Workbench(runtime, stage, model), stage.subject
        experience = await carried(runtime, stage, bench.asker)
        gaps = missing(runtime.data, stage)
        # an invalid part of a larger budget is made again whole
        stop = max((last for _, last in gaps), default=0)
        seeds = subject.splits.evaluation(subject.game, subject.evaluation, stage.checkpoint, stop)
        scope = subject.evaluation_scope(stage.checkpoint)

        async def one(index: int) -> tuple[Episode, list[Step]]:
            drawn_by = (scope, EVALUATION, stage.checkpoint, index)
            return await bench.play(EVALUATION, index, seeds[index], experience, *drawn_by)

        manifests = []
        for first, last in gaps:
            played = await all_of(one(index) for index in range(first, last))
            tables: dict[str, Sequence[Any]] = {
                "episodes": [episode for episode, _ in played],
                "steps": [step for _, own in played for step in own],
            }
            is_complete = all(episode.status == "valid" for episode, _ in played)
            manifests.append(bench.write(first, last, tables, is_complete))
        return manifests
