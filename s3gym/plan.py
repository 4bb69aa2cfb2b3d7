"""From a configuration to cells, stages and keys, before anything runs or is imported to run it.

A stage's key covers all that can change its rows: game, VERSION and configuration, prompt version, pathway, model and
decoding, seeds, and the keys of the stages it reads. It does not cover how many episodes are asked for: a stage is
*filled* part by part, so raising a budget plays only what is new. All keys are known before the first call.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from s3gym import __version__, storage
from s3gym.config import ConfigError, ModelEntry, RunConfig
from s3gym.games.base import Config, Game
from s3gym.models import load_model, scripted
from s3gym.models.base import Decoding, Model
from s3gym.models.prices import Prices, given_prices
from s3gym.pathways.base import Pathway, settings_of
from s3gym.protocol.prompts import PROMPT_VERSION
from s3gym.protocol.splits import SplitError, Splits
from s3gym.records import Cell, CellStage, Run
from s3gym.registry import GAMES, PATHWAYS, UnknownName, load, names

MAIN = "main"
"""The intervention that changes nothing."""
NOT_IN_PAPER = {"chess"}

_RANGE = re.compile(r"-(\d{5})-(\d{5})")

COMPLETE, INVALID = "complete", "invalid"


@dataclass(frozen=True, eq=False)
class Subject:
    """Who plays what how: everything the stages of one cell share."""

    model: Model
    game: Game[Any, Any, Any]
    exploration: Config
    evaluation: Config
    pathway_id: str
    pathway: Pathway
    intervention: str
    replicate: int
    splits: Splits
    decoding: Decoding
    run: RunConfig

    @property
    def scope(self) -> str:
        """What a cell's decoding seeds are made of."""
        return "|".join(
            (
                self.model.model_id,
                self.game.id,
                self.pathway_id,
                self.intervention,
                f"replicate {self.replicate}",
            )
        )

    @property
    def checkpoints(self) -> range:
        """Exploration episodes behind the agent at each evaluation."""
        return range(0, self.run.exploration_episodes + 1, self.run.evaluation_interval)

    @property
    def held_out_count(self) -> int:
        """Held-out episodes a checkpoint: as asked, rounded up to whole strata."""
        strata = self.game.strata(self.evaluation)
        return -(-self.run.evaluation_episodes // strata) * strata

    def evaluation_scope(self, checkpoint: int) -> str:
        """The same for an evaluation; the one before any experience is shared by all pathways."""
        if checkpoint:
            return self.scope
        return "|".join((self.model.model_id, self.game.id, "start", f"replicate {self.replicate}"))


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
        return f"{self.kind} {s.game.id} {s.model.model_id} {s.pathway_id} r{s.replicate} @{self.checkpoint}"


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

    def links(self) -> list[CellStage]:
        """Which stages each cell uses, and how far."""
        return [
            CellStage(
                run_id=self.run.run_id,
                cell_id=cell.record.cell_id,
                stage_key=stage.key,
                stage=stage.kind,
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
    games = config.games or tuple(name for name in names(GAMES) if config.suite == "full" or name not in NOT_IN_PAPER)
    loaded = {name: load(GAMES, name, "game").GAME for name in games}
    for name in config.game:
        if name not in names(GAMES):
            raise UnknownName("game in the settings", name, names(GAMES))
    splits = splits_of(config)
    decoding = Decoding(
        temperature=config.temperature,
        max_output_tokens=config.max_output_tokens,
        timeout_seconds=config.timeout_seconds,
    )
    subjects = [
        Subject(
            model=model,
            game=game,
            exploration=_changed(game, "exploration", config),
            evaluation=_changed(game, "evaluation", config),
            pathway_id=pathway_id,
            pathway=load(PATHWAYS, pathway_id, "pathway"),
            intervention=MAIN,
            replicate=replicate,
            splits=splits,
            decoding=decoding,
            run=config,
        )
        for entry, model in [(entry, _load_model(entry, loaded)) for entry in config.models]
        for game in loaded.values()
        for pathway_id in entry.pathways or config.pathways
        for replicate in range(config.replicates)
    ]
    _check_seeds(subjects)
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
        config=json.dumps(config.result_settings(), sort_keys=True),
        package_version=__version__,
    )
    return RunPlan(run, cells)


def splits_of(config: RunConfig) -> Splits:
    """The seeds of a run."""
    return Splits(
        base_seed=config.seed,
        exploration_range=config.exploration_seeds,
        evaluation_range=config.evaluation_seeds,
        evaluation_set=config.evaluation_set,
    )


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


def _check_seeds(subjects: list[Subject]) -> None:
    """Draws every seed once, so that a range too small for its episodes is refused before anything is written."""
    for subject in {(s.game.id, s.replicate): s for s in subjects}.values():
        explored, checkpoints = subject.run.exploration_episodes, subject.checkpoints
        try:
            subject.splits.exploration(subject.game, subject.exploration, subject.replicate, explored)
            for checkpoint in checkpoints if subject.run.evaluation_set == "fresh" else checkpoints[:1]:
                subject.splits.evaluation(subject.game, subject.evaluation, checkpoint, subject.held_out_count)
        except SplitError:
            raise
        except ValueError as error:  # no start can be drawn under these settings
            raise ConfigError(f"game.{subject.game.id}: {error}") from None


def _stages(subject: Subject) -> Iterator[Stage]:
    run, held_out, checkpoints = subject.run, subject.held_out_count, subject.checkpoints
    if subject.pathway.IS_CONTROL:
        for checkpoint in checkpoints:
            yield _stage("evaluate", subject, checkpoint, 0, held_out)
        return
    explored: tuple[Stage, ...] = ()
    experience: Stage | None = None
    yield _stage("evaluate", subject, 0, 0, held_out)
    for start in checkpoints[:-1]:
        stop = start + run.evaluation_interval
        explore = _stage("explore", subject, start, start, stop, explored, experience)
        yield explore
        if run.retrospective:
            yield _stage("self_judge", subject, start, start, stop, (explore,))
        explored = (*explored, explore)
        experience = _stage("build_experience", subject, stop, 0, stop, explored, experience)
        yield experience
        yield _stage("evaluate", subject, stop, 0, held_out, explored, experience)


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
    facts: dict[str, Any] = {
        "kind": kind,
        "schema": storage.SCHEMA_VERSION,
        "prompts": PROMPT_VERSION,
        "game": subject.game.id,
        "game_version": subject.game.VERSION,
        "model": subject.model.identity(),
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
            "scope": subject.scope,
            "pathway": settings_of(
                subject.pathway,
                subject.run.history_token_limit,
                subject.run.history_cut,
                subject.run.memory_source,
            ),
            "explored": [stage.key for stage in explored],
            "experience": experience.key if experience else None,
            "episodes": [first, last],
        }
    return Stage(kind, _hash(facts), subject, checkpoint, first, last, explored, experience)


def prices_in(entry: ModelEntry) -> Prices | None:
    """What the config says a model's tokens cost."""
    return given_prices(entry.prompt_price, entry.cached_price, entry.completion_price)


def _load_model(entry: ModelEntry, games: dict[str, Game[Any, Any, Any]]) -> Model:
    try:
        model = load_model(entry.id, entry.base_url, entry.revision, prices_in(entry))
    except UnknownName:
        raise
    except ValueError as error:
        raise ConfigError(f"model {entry.id!r}: {error}") from None
    if isinstance(model, scripted.PlayerModel):
        for game in games.values():
            known = scripted.names_for(game.players)
            if model.player not in known:
                raise UnknownName(f"player of {game.id}", model.player, known)
    return model


def _changed(game: Game[Any, Any, Any], phase: str, config: RunConfig) -> Config:
    """The game's configuration of a phase with the user's changes."""
    frozen: Config = getattr(game, phase)
    settings = config.game.get(game.id)
    changes: dict[str, Any] = getattr(settings, phase) if settings else {}
    where = f"game.{game.id}.{phase}"
    try:
        return frozen.changed(changes, where)
    except UnknownName:
        raise
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from None


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
        score_aggregation=game.score_aggregation,
        reward_min=reward_min,
        reward_max=reward_max,
        smallest_positive_score=game.smallest_positive_score(subject.evaluation),
        is_instances_shared=game.is_instances_shared,
    )


def _hash(value: Any) -> str:
    return sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()
