"""What every stage of a run shares: the data folder, the journal, the endpoints' limits, the listeners.

Stages are handed this; they never ask where anything is. No Prefect here.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from s3gym import __version__, storage
from s3gym.config import ModelEntry, RunConfig
from s3gym.games.base import EXPLORATION
from s3gym.interventions.base import Scores
from s3gym.journal import Journal
from s3gym.models.base import Completion, Model, Request, Trainable, Weights
from s3gym.pathways.base import Built, Workshop
from s3gym.plan import COMPLETE, INVALID, Stage
from s3gym.protocol.allowance import Allowance
from s3gym.protocol.asking import Asker
from s3gym.protocol.limiter import Limiter
from s3gym.protocol.rollout import Part, past_episode, play, scene_of
from s3gym.protocol.splits import hashed
from s3gym.records import CallFacts, Episode, Step
from s3gym.transcript import Message, PastEpisode

Result = TypeVar("Result")
_SUMMED = (
    "failed_attempts",
    "failed_cost_usd",
    "prompt_tokens",
    "cached_tokens",
    "completion_tokens",
    "reasoning_tokens",
    "cost_usd",
)
"""What a manifest adds up of its rows' calls."""


class StageFailed(Exception):
    """A stage could not be finished; what it has is stored as invalid, and the stages that need it do not run."""


class Runtime:
    """One run at work on one data folder."""

    def __init__(
        self,
        data: Path,
        journal: Journal,
        limiters: Mapping[str, Limiter],
        allowance: Allowance,
        on_event: Callable[[str, int], None],
    ) -> None:
        self.data = data
        self.journal = journal
        self.limiters = limiters
        """By endpoint."""
        self.allowance = allowance
        self.on_event = on_event
        """Called with ``episode``, ``step``, ``change`` (of weights) or ``cell`` and how many were done."""


def limiters_for(models: Iterable[Model], config: RunConfig, on_notice: Callable[[str], None]) -> dict[str, Limiter]:
    """One limiter for each endpoint that is paid or waited for."""
    entries = {entry.id: entry for entry in config.models}
    by_endpoint: dict[str, list[ModelEntry]] = {}
    for model in models:
        if not model.is_free:
            entry = entries.get(model.model_id) or ModelEntry(id=model.model_id)  # an explorer may have none
            by_endpoint.setdefault(model.endpoint, []).append(entry)
    return {
        endpoint: Limiter(
            config.parallel,
            min((limit for entry in there if (limit := entry.requests_per_minute)), default=None),
            min((limit for entry in there if (limit := entry.tokens_per_minute)), default=None),
            name=endpoint,
            give_up_seconds=config.give_up_seconds,
            on_notice=on_notice,
        )
        for endpoint, there in by_endpoint.items()
    }


class Workbench:
    """One stage at work: asks its model, and writes rows with the manifest of what it took to make them."""

    def __init__(self, runtime: Runtime, stage: Stage, model: Model | None = None) -> None:
        """``model`` is who is asked, where it has other weights than the stage's own."""
        self.runtime, self.stage, self.model = runtime, stage, model or stage.model
        self._begin()

    def _begin(self) -> None:
        """Counts from nothing: each part says what it took itself."""
        runtime, model = self.runtime, self.model
        limiter = runtime.limiters.get(model.endpoint)
        self.asker = Asker(model, runtime.journal, limiter, runtime.allowance, stage_key=self.stage.key)
        self.started_at = datetime.now(UTC)
        self._started = time.perf_counter()

    async def play(
        self, phase: str, index: int, seed: int, experience: tuple[str | None, int], *drawn_by: object
    ) -> tuple[Episode, list[Step]]:
        """Plays one episode of the stage and says so.

        Args:
            phase: ``exploration`` or ``evaluation``; also the configuration.
            index: of the episode, as the phase counts.
            seed: of its instance.
            experience: what the agent reads of earlier episodes, and the history tokens that did not fit.
            drawn_by: with the base seed and the step, what each answer is drawn by.
        """
        stage, subject = self.stage, self.stage.subject
        part = Part(
            stage_key=stage.key,
            phase=phase,
            checkpoint=stage.checkpoint,
            episode_index=index,
            seed=seed,
            experience=experience[0],
            history_tokens_dropped=experience[1],
            decoding=subject.decoding,
            decoding_seed=lambda step: hashed(subject.run.seed, *drawn_by, step),
        )
        config = subject.exploration if phase == EXPLORATION else subject.evaluation
        episode, steps = await play(subject.game, config, self.asker, part)
        self.runtime.on_event("step", len(steps))
        self.runtime.on_event("episode", 1)
        return episode, steps

    def write(self, first: int, last: int, tables: Mapping[str, Sequence[Any]], is_complete: bool) -> dict[str, Any]:
        """Writes rows and manifest of one part and returns the manifest.

        Tokens and costs in it are the rows' own, of calls as they were first made; ``calls_made`` to ``paid_usd`` are
        what was done for them now.
        """
        calls = [row for rows in tables.values() for row in rows if isinstance(row, CallFacts)]
        manifest = {
            "stage": self.stage.kind,
            "key": self.stage.key,
            "facts": self.stage.facts,
            "status": COMPLETE if is_complete else INVALID,
            "inputs": sorted({s.key for s in (*self.stage.explored, self.stage.experience) if s is not None}),
            "model_id": self.model.model_id,
            "checkpoint": self.stage.checkpoint,
            "first_episode": first,
            "last_episode": last,
            "failed_calls": sum(1 for row in calls if row.error_kind is not None),
            "first_error": next((row.error_message for row in calls if row.error_kind is not None), None),
            **{name: _total(getattr(row, name) for row in calls) for name in _SUMMED},
            "calls_made": self.asker.calls_made,
            "calls_failed": self.asker.failures,
            "calls_replayed": self.asker.calls_replayed,
            "paid_usd": _total(self.asker.costs_usd) if self.asker.calls_made else 0.0,
            "started_at": self.started_at.isoformat(),
            "seconds": round(time.perf_counter() - self._started, 3),
            "versions": {"s3gym": __version__, "game": self.stage.subject.game.VERSION},
        }
        part, game = self.stage.part(first, last), self.stage.subject.game.id
        written = storage.write_part(self.runtime.data, part, game, tables, manifest)
        self._begin()
        return written


async def all_of(work: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """The results in order; when one fails, its error after the others have ended: their calls are paid for."""
    outcomes = await asyncio.gather(*work, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]


def _total(values: Iterable[float | None]) -> float | None:
    """Sum of what was reported; None when nothing was."""
    reported = [value for value in values if value is not None]
    return sum(reported) if reported else None


def stored_episodes(runtime: Runtime, stage: Stage) -> Iterator[tuple[Episode, list[Step]]]:
    """The exploration episodes behind ``stage`` with their steps, both in order."""
    for source in stage.explored:
        part, game = source.whole, source.subject.game.id
        episodes = [Episode(**row) for row in storage.read_part(runtime.data, "episodes", game, part)]
        steps = [Step(**row) for row in storage.read_part(runtime.data, "steps", game, part)]
        for episode in sorted(episodes, key=lambda episode: episode.episode_index):
            own = [step for step in steps if step.episode_id == episode.episode_id]
            yield episode, sorted(own, key=lambda step: step.step_index)


def explored_so_far(runtime: Runtime, stage: Stage) -> list[PastEpisode]:
    """The exploration episodes behind ``stage``, as transcripts, with the scores that its experience is made from."""
    played = list(stored_episodes(runtime, stage))
    scores = iter(rescored(stage, played, stage.subject.replaced.scores))
    return [past_episode(episode, steps, [next(scores) for _ in steps]) for episode, steps in played]


def rescored(stage: Stage, played: Sequence[tuple[Episode, list[Step]]], change: Scores | None) -> list[float | None]:
    """A score for each step behind ``stage``: the agent's own, or what an intervention has in its place."""
    steps = [step for _, own in played for step in own]
    if change is None:
        return [step.self_score for step in steps]
    subject = stage.subject
    return change(steps, random.Random(hashed(subject.run.seed, subject.scope, "rescore", stage.checkpoint)))


def workshop(stage: Stage, asker: Asker, episode_count: int, previous: str | None = None) -> Workshop:
    """What the pathway builds with; the call after ``episode_count`` episodes is the same wherever it is made."""
    subject = stage.subject
    seed = hashed(subject.run.seed, subject.scope, "remember", episode_count)

    async def ask(messages: tuple[Message, ...]) -> Completion:
        return await asker.ask(
            Request(
                messages=messages,
                purpose="remember",
                seed=seed,
                decoding=subject.decoding,
                scene=scene_of(subject.game, subject.exploration),
            )
        )

    return Workshop(
        rules=subject.game.rules(subject.exploration),
        ask=ask,
        count_tokens=subject.model.count_tokens,
        token_limit=subject.run.history_token_limit,
        cut=subject.run.history_cut,
        memory_source=subject.run.memory_source,
        previous=previous,
    )


async def carried(
    runtime: Runtime, stage: Stage, asker: Asker, past: list[PastEpisode] | None = None
) -> tuple[str | None, int]:
    """The experience ``stage`` starts with, as the agent reads it, and the history tokens that did not fit.

    ``past`` are the episodes behind the stage, read here when they are needed and not given.
    """
    source = stage.experience
    if source is None or stage.subject.pathway.IS_TRAINED:
        return None, 0
    row = storage.read_part(runtime.data, "experiences", source.subject.game.id, source.whole)[0]
    if row["text"] is not None:
        return row["text"], row["tokens_dropped"]
    past = explored_so_far(runtime, stage) if past is None else past
    built: Built = await stage.subject.pathway.build(past, workshop(stage, asker, len(past)))
    if built.content_hash != row["content_hash"]:
        raise StageFailed(f"{stage.label}: the stored episodes no longer give the experience that was built from them")
    return built.content, built.tokens_dropped


def weights_of(runtime: Runtime, source: Stage | None) -> Weights | None:
    """The weights that a trained experience stands for; None for those the model came with."""
    if source is None:
        return None
    row = storage.read_part(runtime.data, "experiences", source.subject.game.id, source.whole)[0]
    if row["path"] is None:
        return None
    return Weights(folder=runtime.data / row["path"], digest=row["content_hash"])


@asynccontextmanager
async def trained(runtime: Runtime, stage: Stage) -> AsyncIterator[Model]:
    """Who is asked in ``stage``: its model, with the weights that its experience became where it was trained."""
    model = stage.model
    weights = weights_of(runtime, stage.experience) if stage.subject.pathway.IS_TRAINED else None
    if weights is None or not isinstance(model, Trainable):
        yield model
        return
    async with model.with_weights(weights) as changed:
        yield changed
