"""Stage: what the episodes so far become for the next reader. Table ``experiences``."""

from dataclasses import asdict
from hashlib import sha256
from typing import Any

from flows.runtime import Runtime, StageFailed, Workbench, explored_so_far, workshop
from flows.update import update
from s3gym import storage
from s3gym.guides import of_length
from s3gym.models.base import ModelError
from s3gym.pathways.base import Built
from s3gym.plan import Stage
from s3gym.protocol.asking import Asker
from s3gym.records import CallFacts, Experience
from s3gym.transcript import PastEpisode


async def build_experience(stage: Stage, runtime: Runtime) -> list[dict[str, Any]]:
    """Builds the experience of a checkpoint; the manifest of what was written.

    Raises:
        StageFailed: the memory call failed.
    """
    if stage.subject.pathway.IS_TRAINED:
        return await update(stage, runtime)
    bench = Workbench(runtime, stage)
    if stage.subject.replaced.guide:
        return [bench.write(stage.first, stage.last, {"experiences": [_guided(stage, runtime)]}, is_complete=True)]
    past = explored_so_far(runtime, stage)
    built, row = await build(stage, bench.asker, past, _last_memory(stage, runtime))
    manifest = bench.write(stage.first, stage.last, {"experiences": [row]}, built is not None)
    if built is None:
        raise StageFailed(f"{stage.label}: the memory call failed ({row.error_message})")
    return [manifest]


async def build(
    stage: Stage, asker: Asker, past: list[PastEpisode], previous: str | None
) -> tuple[Built | None, Experience]:
    """The experience of ``past`` and its row; None and a row with the error when the call failed."""
    subject = stage.subject
    try:
        built: Built | None = await subject.pathway.build(past, workshop(stage, asker, len(past), previous))
        facts = built.facts if built else CallFacts()
    except ModelError as error:
        built, facts = None, error.facts
    row = Experience(
        stage_key=stage.key,
        game=subject.game.id,
        pathway=subject.pathway_id,
        checkpoint=len(past),
        kind=subject.replaced.marked(built.kind if built else subject.pathway_id),
        text=built.stored_text if built else None,
        content_hash=built.content_hash if built else None,
        token_count=built.token_count if built else None,
        source_episode_ids=[episode.episode_id for episode in past],
        steps_kept=built.steps_kept if built else None,
        steps_dropped=built.steps_dropped if built else None,
        tokens_dropped=built.tokens_dropped if built else None,
        **asdict(facts),
    )
    return built, row


def _guided(stage: Stage, runtime: Runtime) -> Experience:
    """A guide in place of what the pathway would have carried."""
    subject, replaced = stage.subject, stage.subject.replaced
    assert replaced.guide is not None and replaced.mark is not None  # as the caller has seen
    text = replaced.guide(subject.game.id).text
    if stage.experience is not None:
        row = storage.read_part(runtime.data, "experiences", subject.game.id, stage.experience.whole)[0]
        text = of_length(text, row["token_count"], subject.model.count_tokens)
    return Experience(
        stage_key=stage.key,
        game=subject.game.id,
        pathway=subject.pathway_id if replaced.is_measured else "any",
        checkpoint=stage.checkpoint,
        kind=replaced.mark,
        text=text,
        content_hash=sha256(text.encode()).hexdigest(),
        token_count=subject.model.count_tokens(text),
        source_episode_ids=[],
        steps_kept=0,
        steps_dropped=0,
        tokens_dropped=0,
    )


def _last_memory(stage: Stage, runtime: Runtime) -> str | None:
    """The memory after all but the last episode, which exploration built on its way."""
    game = stage.subject.game.id
    rows = storage.read_part(runtime.data, "experiences", game, stage.explored[-1].whole)
    if not rows and stage.experience is not None:
        rows = storage.read_part(runtime.data, "experiences", game, stage.experience.whole)
    return rows[-1]["text"] if rows else None
