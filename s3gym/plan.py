"""From a configuration to cells, stages and keys, before anything runs or is imported to run it.

A stage's key covers all that can change its rows: game, VERSION and configuration, prompt version, pathway, model and
decoding, seeds, and the keys of the stages it reads. It does not cover how many episodes are asked for: a stage is
*filled* part by part, so raising a budget plays only what is new. All keys are known before the first call.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from s3gym import __version__, storage
from s3gym.config import MAIN, RunConfig
from s3gym.models.base import Model, Trainable
from s3gym.pathways.base import settings_of
from s3gym.protocol.prompts import PROMPT_VERSION
from s3gym.records import Cell, CellStage, Run
from s3gym.subjects import Subject, subjects_of

_RANGE = re.compile(r"-(\d{5})-(\d{5})")

COMPLETE, INVALID = storage.COMPLETE, "invalid"


@dataclass(frozen=True, eq=False)
class Stage:
    """One link of a cell's chain: episodes ``first`` to ``last`` (exclusive) under one key."""

    kind: str
    key: str
    subject: Subject
    checkpoint: int
    first: int
    last: int
    explored: "tuple[Stage, ...]" = ()
    """The explore stages it reads, in order."""
    experience: "Stage | None" = None
    """The build_experience stage whose product the agent reads; None for nothing."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the key is the hash of, as its manifest keeps it."""

    @property
    def model(self) -> Model:
        """Who is asked."""
        s = self.subject
        return s.explorer if s.explorer is not None and self.kind in ("explore", "self_judge") else s.model

    @property
    def is_transfer(self) -> bool:
        """Whether it evaluates what was learnt in another game."""
        return self.subject.source is not None

    @property
    def stem(self) -> str:
        """What the names of its parts begin with."""
        return f"{self.kind}-{self.key[:24]}"

    def part(self, first: int, last: int) -> str:
        """Name of the part that holds episodes ``first`` to ``last``."""
        return f"{self.stem}-{first:05d}-{last:05d}"

    @property
    def whole(self) -> str:
        """Name of the one part of a stage that is not filled bit by bit."""
        return self.part(self.first, self.last)

    @property
    def label(self) -> str:
        """For people."""
        s = self.subject
        where = f"{s.source} in {s.game.id}" if self.is_transfer else s.game.id
        way = s.pathway_id if s.intervention == MAIN else f"{s.pathway_id}/{s.intervention}"
        return f"{self.kind} {where} {s.model.model_id} {way} r{s.replicate} @{self.checkpoint}"


@dataclass(frozen=True, eq=False)
class CellPlan:
    """A cell and its stages, in the order they can run."""

    record: Cell
    subject: Subject
    stages: tuple[Stage, ...]


@dataclass(frozen=True, eq=False)
class RunPlan:
    """All that a run asks for."""

    run: Run
    cells: tuple[CellPlan, ...]
    left_out: tuple[str, ...] = ()
    """What cannot be done here for want of a package, a sentence each."""

    def links(self) -> list[CellStage]:
        """Which stages each cell uses, and how far."""
        return [
            CellStage(
                run_id=self.run.run_id,
                cell_id=cell.record.cell_id,
                stage_key=stage.key,
                stage="transfer" if stage.is_transfer else stage.kind,
                checkpoint=stage.checkpoint,
                episode_count=stage.last - stage.first,
            )
            for cell in self.cells
            for stage in cell.stages
        ]

    def stages(self) -> Iterator[Stage]:
        """Every stage once, though cells share some."""
        seen: set[str] = set()
        for cell in self.cells:
            for stage in cell.stages:
                if stage.key not in seen:
                    seen.add(stage.key)
                    yield stage


def make_plan(config: RunConfig) -> RunPlan:
    """Resolves names, applies overrides and lays out every stage.

    Raises:
        ConfigError, UnknownName, SplitError: a game, model, pathway or game setting is not there.
    """
    subjects, left_out = subjects_of(config)
    laid_out = [(subject, tuple(_stages(subject))) for subject in subjects]
    # what is asked for twice is one cell
    by_id = {_cell_id(subject, stages): (subject, stages) for subject, stages in laid_out}
    run_id = _hash({"cells": list(by_id), "version": __version__, "scale": config.scale})[:16]
    cells = tuple(
        CellPlan(_cell_record(run_id, cell_id, subject), subject, stages)
        for cell_id, (subject, stages) in by_id.items()
    )
    run = Run(
        run_id=run_id,
        requested_at=datetime.now(UTC),
        scale=config.scale,
        config=config.model_dump_json(),
        package_version=__version__,
    )
    return RunPlan(run, cells, left_out)


def missing(data: Path, stage: Stage) -> list[tuple[int, int]]:
    """Episode ranges of ``stage`` that are still to be made, in order; a damaged or invalid part is redone whole."""
    if stage.kind != "evaluate":
        manifest = storage.read_manifest(data, stage.whole)
        return [] if manifest and manifest["status"] == COMPLETE else [(stage.first, stage.last)]
    gaps: list[tuple[int, int]] = []
    reached = stage.first
    for part in storage.parts_of(data, stage.stem):
        named = _RANGE.fullmatch(part.removeprefix(stage.stem))
        if named is None:  # not a name of ours
            continue
        first, last = int(named[1]), int(named[2])
        if first >= stage.last:
            break
        if first > reached:
            gaps.append((reached, first))
        manifest = storage.read_manifest(data, part)
        if manifest is None or manifest["status"] != COMPLETE:
            gaps.append((first, last))
        reached = max(reached, last)
    if reached < stage.last:
        gaps.append((reached, stage.last))
    return gaps


def _stages(subject: Subject) -> Iterator[Stage]:
    """A link that an intervention leaves alone is the stage of the cell without it."""
    run, held_out, checkpoints = subject.run, subject.held_out_count, subject.checkpoints
    if subject.pathway.IS_CONTROL:
        for checkpoint in checkpoints:
            yield _stage("evaluate", subject, checkpoint, 0, held_out)
        return
    explored: tuple[Stage, ...] = ()
    carried: Stage | None = None
    experience: Stage | None = None
    explorer, builder = subject.explores, subject.builds
    yield _stage("evaluate", subject.starts, 0, 0, held_out)
    yield from _transfers(subject, 0)
    for start in checkpoints[:-1]:
        stop = start + run.evaluation_interval
        if explorer.explorer is None:
            explore = _stage("explore", explorer, start, start, stop, explored, carried)
        else:
            explore = _stage("explore", explorer, start, start, stop)
        yield explore
        if run.retrospective:  # by who explored, with the weights it had then
            weights = explore.experience if subject.pathway.IS_TRAINED else None
            yield _stage("self_judge", explorer, start, start, stop, (explore,), weights)
        explored = (*explored, explore)
        carried = _experience(explorer, start, stop, explored, carried)
        if subject.replaced.guide:  # nothing that was explored is read
            measured = carried if subject.replaced.is_measured else None
            experience = _stage("build_experience", subject, stop, 0, stop, experience=measured)
            yield experience
            yield _stage("evaluate", subject, stop, 0, held_out, experience=experience)
            continue
        experience = carried if builder is explorer else _experience(builder, start, stop, explored, experience)
        yield experience
        yield _stage("evaluate", subject, stop, 0, held_out, explored, experience)
        yield from _transfers(subject, stop, explored, experience)


def _experience(subject: Subject, start: int, stop: int, explored: tuple[Stage, ...], last: Stage | None) -> Stage:
    """The stage that builds; what training reads depends on where it starts from."""
    if subject.pathway.IS_TRAINED and subject.training.start == "last":
        return _stage("build_experience", subject, stop, start, stop, explored[-1:], last)
    if subject.pathway.IS_TRAINED:
        return _stage("build_experience", subject, stop, 0, stop, explored)
    return _stage("build_experience", subject, stop, 0, stop, explored, last)


def _transfers(
    subject: Subject, checkpoint: int, explored: tuple[Stage, ...] = (), experience: Stage | None = None
) -> Iterator[Stage]:
    """The evaluations in other games."""
    if checkpoint in subject.transfers_at:
        for target in subject.targets:
            yield _stage("evaluate", target, checkpoint, 0, target.held_out_count, explored, experience)


def _stage(
    kind: str,
    subject: Subject,
    checkpoint: int,
    first: int,
    last: int,
    explored: tuple[Stage, ...] = (),
    experience: Stage | None = None,
) -> Stage:
    """Works out the key: everything that can change the rows, nothing that cannot."""
    stage = Stage(kind, "", subject, checkpoint, first, last, explored, experience)
    facts: dict[str, Any] = {
        "kind": kind,
        "schema": storage.KEY_VERSION,
        "prompts": PROMPT_VERSION,
        "game": subject.game.id,
        "game_version": subject.game.VERSION,
        "model": stage.model.identity(),
        "temperature": subject.decoding.temperature,
        "max_output_tokens": subject.decoding.max_output_tokens,
        "base_seed": subject.run.seed,
        "checkpoint": checkpoint,
    }
    if kind == "evaluate":
        facts |= {
            "config": subject.evaluation.to_json(),
            "seeds": subject.run.evaluation_seeds,
            "evaluation_set": subject.run.evaluation_set,
            "scope": subject.evaluation_scope(checkpoint),
            "experience": experience.key if experience else None,
        }
    else:
        facts |= {
            "config": subject.exploration.to_json(),
            "seeds": subject.run.exploration_seeds,
            "scope": subject.exploration_scope,
            "explored": [stage.key for stage in explored],
            "experience": experience.key if experience else None,
            "episodes": [first, last],
        }
        if subject.splits.shuffled_count is not None:
            facts["shuffled"] = subject.splits.shuffled_count
        if stage.model is subject.model and not subject.replaced.guide:
            facts["pathway"] = _pathway_settings(subject)
    if subject.unchanged is not None:
        facts["intervention"] = _intervention(subject)
    return replace(stage, key=_hash(facts), facts=json.loads(_text(facts)))


def _intervention(subject: Subject) -> dict[str, Any]:
    """Which link is replaced, and by what."""
    facts = {"name": subject.intervention, "version": subject.replaced.version}
    return facts | ({"guide": subject.replaced.guide(subject.game.id).facts} if subject.replaced.guide else {})


def _pathway_settings(subject: Subject) -> dict[str, Any]:
    """What of how experience is carried on can change a stage's rows."""
    run = subject.run
    if isinstance(subject.model, Trainable) and subject.pathway.IS_TRAINED:
        made_by = {"training": subject.model.training_identity(), "signal": subject.game.training_signal}
        settings = subject.training.model_dump(mode="json", exclude={"keep"})
        drawn_by = {"trained": subject.scope}  # also where an explorer's scope draws the rest
        return {"version": subject.pathway.VERSION, "settings": settings, **made_by, **drawn_by}
    return settings_of(subject.pathway, run.history_token_limit, run.history_cut, run.memory_source)


def _cell_id(subject: Subject, stages: tuple[Stage, ...]) -> str:
    settings = _hash([[stage.key, stage.first, stage.last] for stage in stages])[:10]
    middle = "" if subject.intervention == MAIN else f"/{subject.intervention}"
    return (
        f"{subject.game.id}/{subject.model.model_id}/{subject.pathway_id}{middle}/r{subject.replicate}"
        f"/s{subject.run.seed}#{settings}"
    )


def _cell_record(run_id: str, cell_id: str, subject: Subject) -> Cell:
    run, game = subject.run, subject.game
    reward_min, reward_max = game.reward_range(subject.evaluation)
    return Cell(
        run_id=run_id,
        cell_id=cell_id,
        model_id=subject.model.model_id,
        model_revision=subject.model.revision,
        game=game.id,
        game_version=game.VERSION,
        pathway=subject.pathway_id,
        intervention=subject.intervention,
        replicate=subject.replicate,
        base_seed=run.seed,
        exploration_config=subject.exploration.to_json(),
        evaluation_config=subject.evaluation.to_json(),
        exploration_config_id=game.config_id(subject.exploration),
        evaluation_config_id=game.config_id(subject.evaluation),
        prompt_version=PROMPT_VERSION,
        temperature=run.temperature,
        max_output_tokens=run.max_output_tokens,
        exploration_episode_count=0 if subject.pathway.IS_CONTROL else run.exploration_episodes,
        evaluation_interval=run.evaluation_interval,
        evaluation_episode_count=subject.held_out_count,
        evaluation_set=run.evaluation_set,
        history_token_limit=run.history_token_limit,
        history_cut=run.history_cut,
        explorer_id=subject.explorer.model_id if subject.explorer else None,
        training=subject.training.model_dump_json() if subject.pathway.IS_TRAINED else None,
        score_aggregation=game.score_aggregation,
        reward_min=reward_min,
        reward_max=reward_max,
        smallest_positive_score=game.smallest_positive_score(subject.evaluation),
        is_instances_shared=game.is_instances_shared,
    )


def _hash(value: Any) -> str:
    return sha256(_text(value).encode()).hexdigest()


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
