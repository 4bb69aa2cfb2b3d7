"""Stage: exploration episodes, one after the other, each reading the experience of all before it.

Tables ``episodes``, ``steps``, and ``experiences`` for what was built between two episodes.
"""

from collections.abc import Sequence
from typing import Any

from flows.build_experience import build
from flows.runtime import Runtime, StageFailed, Workbench, carried, explored_so_far, trained
from s3gym.games.base import EXPLORATION
from s3gym.plan import Stage
from s3gym.protocol.rollout import past_episode
from s3gym.records import Episode, Experience, Step


async def explore(stage: Stage, runtime: Runtime) -> list[dict[str, Any]]:
    """Plays the block of exploration episodes; the manifests of what was written.

    Raises:
        StageFailed: a call failed; the episodes so far are stored as invalid and played again next time.
    """
    async with trained(runtime, stage) as model:
        return [await _explore(stage, Workbench(runtime, stage, model))]


async def _explore(stage: Stage, bench: Workbench) -> dict[str, Any]:
    runtime, subject = bench.runtime, stage.subject
    is_built = not subject.pathway.IS_TRAINED and subject.explorer is None
    past = explored_so_far(runtime, stage)
    experience = await carried(runtime, stage, bench.asker, past)
    seeds = subject.splits.exploration(subject.game, subject.exploration, subject.replicate, stage.last)
    episodes: list[Episode] = []
    steps: list[Step] = []
    experiences: list[Experience] = []
    failure: str | None = None
    for index in range(stage.first, stage.last):
        if episodes and is_built:
            built, row = await build(stage, bench.asker, past, experience[0])
            experiences.append(row)
            if built is None:
                failure = f"{stage.label}: the memory call after {index} episodes failed ({row.error_message})"
                break
            experience = (built.content, built.tokens_dropped)
        episode, own = await bench.play(
            EXPLORATION, index, seeds[index], experience, subject.exploration_scope, EXPLORATION, index
        )
        episodes.append(episode)
        steps += own
        if episode.status != "valid":
            failure = f"{stage.label}: episode {index} met a failed call ({own[-1].error_message})"
            break
        past.append(past_episode(episode, own))
    tables: dict[str, Sequence[Any]] = {"episodes": episodes, "steps": steps, "experiences": experiences}
    manifest = bench.write(stage.first, stage.last, tables, failure is None)
    if failure is not None:
        raise StageFailed(failure)
    return manifest
