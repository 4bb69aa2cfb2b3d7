"""Stage: the agent looks back on each exploration episode. Table ``judgments``; never part of an experience."""

from typing import Any

from flows.runtime import Runtime, Workbench, all_of, explored_so_far, trained
from s3gym.plan import Stage
from s3gym.protocol.judge import judge
from s3gym.protocol.splits import hashed
from s3gym.records import Judgment
from s3gym.transcript import PastEpisode


async def self_judge(stage: Stage, runtime: Runtime) -> list[dict[str, Any]]:
    """Asks for one judgment an episode; the manifest of what was written."""
    async with trained(runtime, stage) as model:
        bench, subject = Workbench(runtime, stage, model), stage.subject

        async def one(index: int, past: PastEpisode) -> Judgment:
            return await judge(
                subject.game,
                subject.exploration,
                bench.asker,
                past,
                stage_key=stage.key,
                checkpoint=stage.checkpoint,
                seed=hashed(subject.run.seed, subject.exploration_scope, "judge", stage.first + index),
                decoding=subject.decoding,
            )

        episodes = explored_so_far(runtime, stage)
        judgments = await all_of(one(index, past) for index, past in enumerate(episodes))
        is_complete = all(row.error_kind is None for row in judgments)
        return [bench.write(stage.first, stage.last, {"judgments": judgments}, is_complete)]
