"""What a run is asked for: frozen, validated, one ``--scale`` dial, every value overridable.

Values come from the scale, then a TOML file, then the command line. Names of games, models and pathways are
checked where they are looked up (``subjects``); here are types, ranges and the names of the settings themselves.
"""

import difflib
import importlib.util
import tomllib
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from s3gym.errors import Explained

SCALES: dict[str, dict[str, Any]] = {
    "smoke": {"exploration_episodes": 3, "evaluation_interval": 3, "evaluation_episodes": 2},
    "small": {"exploration_episodes": 9, "evaluation_interval": 3, "evaluation_episodes": 7},
    "paper": {"exploration_episodes": 30, "evaluation_interval": 3, "evaluation_episodes": 3},
}
"""The budgets of each scale; ``paper`` is the published protocol."""


class ConfigError(Explained, ValueError):
    """The request is wrong; the message names the setting, the value, and what to do."""


TRAINING_PACKAGES = ("torch", "transformers", "peft")
"""Without them a run that names no model leaves the pathway training out."""

MAIN, ALL = "main", "all"
"""The intervention that changes nothing, and the word for every one that fits."""

MOST = 2**63 - 1
"""Largest integer a table holds."""

Count = Annotated[int, Field(strict=True, ge=1, le=MOST)]
Price = Annotated[float, Field(ge=0)]
Seed = Annotated[int, Field(strict=True, ge=0, le=MOST)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


Share = Annotated[float, Field(gt=0, le=1)]


class TrainingSettings(_Frozen):
    """How judged episodes become weights: which steps are trained on, and how. All of it is part of the keys."""

    signal: Literal["auto", "score", "return"] = "auto"
    """What ranks a step: its self-score, or the sum of self-scores from it to the end of its episode; ``auto``: as the
    game declares."""
    rule: Literal["top", "above", "weighted"] = "top"
    """Kept are: the ``share`` that ranks highest, returns among steps that came after the same feedback; what is above
    ``threshold``; the same as ``top``, weighted by how far each stands above the lowest it was ranked with."""
    share: Share = 0.5
    threshold: float = 0.0
    correct: bool = False
    """Whether the model is asked for a better action where a step is filtered by its rank, and trained on that."""
    shuffle_scores: bool = False
    """A control: self-scores are dealt anew among the steps."""
    minimum_rows: Count = 8
    """With fewer there is no update, and the weights stay as they were."""
    method: Literal["lora", "full"] = "lora"
    """A LoRA adapter beside the weights, or the weights themselves."""
    start: Literal["last", "base"] = "last"
    """``last``: from the last weights, on what was explored since; ``base``: from untrained ones, on all so far."""
    rank: Count = 16
    alpha: Count = 32
    """What an adapter adds is scaled by ``alpha`` / ``rank``."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    learning_rate: Annotated[float, Field(gt=0)] = 2e-4
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    warmup: Annotated[float, Field(ge=0, le=1)] = 0.1
    """Share of the steps over which the rate rises; it falls linearly to 0 after them."""
    epochs: Count = 2
    batch: Count = 8
    """Rows a step of the optimizer."""
    batch_tokens: Count = 4096
    """Most tokens computed at once, filled up to the longest row; a larger batch is computed in parts."""
    row_tokens: Count = 4096
    """Longer rows are filtered."""
    gradient_norm: Annotated[float, Field(gt=0)] = 1.0
    """Larger gradients are clipped to it."""
    checkpointing: bool = False
    """Whether activations are computed twice to save memory."""
    keep: Literal["all", "last", "best"] = "all"
    """Whose weights stay on disk once a cell is done; ``best``: by the held-out score, the last beside them, because
    a larger budget goes on from there."""


class ModelEntry(_Frozen):
    """One model, and optionally the pathways and games it alone is run on."""

    id: str
    pathways: tuple[str, ...] | None = None
    games: tuple[str, ...] | None = None
    base_url: str | None = None
    """Endpoint of one's own."""
    weights: str | None = None
    """Of a model behind an endpoint that takes adapters (vLLM): the folder or hub id it is trained from, in this
    process."""
    explorer: str | None = None
    """A model that explores in its place, such as ``player:expert``."""
    training: dict[str, Any] = Field(default_factory=dict)
    """Changes to the run's ``training`` for this model."""
    revision: str | None = None
    """A note that tells versions behind one name apart; part of every key."""
    requests_per_minute: Count | None = None
    tokens_per_minute: Count | None = None
    """Limits of the endpoint, prompt and answer tokens together; of several models there the lowest holds."""
    prompt_price: Price | None = None
    cached_price: Price | None = None
    completion_price: Price | None = None
    """US dollars per million tokens, where litellm's list does not know them or is wrong."""

    @field_validator("pathways", "games")
    @classmethod
    def _not_empty(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if value == ():
            raise ValueError("give at least one, or leave it out for all")
        return value

    @model_validator(mode="after")
    def _whole_prices(self) -> "ModelEntry":
        if (self.prompt_price is None) != (self.completion_price is None):
            raise ValueError("give both prompt_price and completion_price, or neither")
        return self


class GameSettings(_Frozen):
    """Changes to one game's configurations; the fields are the game's own."""

    exploration: dict[str, Any] = Field(default_factory=dict)
    evaluation: dict[str, Any] = Field(default_factory=dict)
    training: dict[str, Any] = Field(default_factory=dict)
    """Changes to the run's ``training`` in this game."""


def embedded_models() -> tuple[ModelEntry, ...]:
    """Those a run has that names none: what each must show is known beforehand."""
    players = (
        ModelEntry(id="player:learner"),
        ModelEntry(id="player:myopic"),
        ModelEntry(id="player:random", pathways=("none",)),
        ModelEntry(id="player:expert", pathways=("none",)),
    )
    if not all(importlib.util.find_spec(name) for name in TRAINING_PACKAGES):
        return players
    trained = ModelEntry(
        id="local:tiny",
        pathways=("none", "training"),
        games=("snake", "trust"),
        explorer="player:random?confidence=honest",
        training={"learning_rate": 3e-3, "batch": 16, "epochs": 3},
    )
    return (*players, trained)


class RunConfig(_Frozen):
    """One request. Every field is a key of the TOML file and of ``--set``."""

    scale: Literal["smoke", "small", "paper"] = "small"
    """Sets the three budgets below, where they are not set themselves."""
    models: tuple[ModelEntry, ...] = Field(default_factory=lambda: embedded_models())
    """Scripted players, and where it can be trained a model of random weights."""
    games: tuple[str, ...] = ()
    """Empty means the suite."""
    suite: Literal["paper", "full"] = "full"
    """All games, or all but ``chess``, as published."""
    pathways: tuple[str, ...] = ("none", "history", "memory")
    """How experience is carried on; ``none`` is the control, and ``training`` is there too."""
    interventions: tuple[str, ...] = (MAIN,)
    """Links replaced one at a time to find the one that breaks, beside ``main``; ``all``: every one that fits."""
    replicates: Count = 1
    """Independent repetitions: other exploration seeds and other decoding."""
    seed: Seed = 0
    """What everything that is drawn is drawn from."""
    exploration_episodes: Count
    """Budget of a cell; a multiple of ``evaluation_interval``."""
    evaluation_interval: Count
    """Exploration episodes between two checkpoints."""
    evaluation_episodes: Count
    """Held-out episodes a checkpoint; rounded up where a game evaluates in strata (``trust``: multiples of seven)."""
    evaluation_set: Literal["fixed", "fresh"] = "fixed"
    """The same held-out instances at every checkpoint, or new ones at each."""
    as_of: Annotated[str, Field(min_length=1, max_length=40)] | None = None
    """Measures hosted models and agents anew under this note, such as a date: they may change behind their name."""
    exploration_order: Literal["fixed", "shuffled"] = "fixed"
    """``shuffled``: all replicates explore the same instances, each in an order of its own; a larger budget is another
    order, and explores anew."""
    exploration_seeds: tuple[Seed, Seed] = (0, 2**31)
    """First seed and the one after the last."""
    evaluation_seeds: tuple[Seed, Seed] = (2**31, 2**32)
    """May not overlap with those of exploration."""
    retrospective: bool = True
    """Whether the agent is asked to judge each exploration episode afterwards."""
    history_token_limit: Count = 100_000
    """Most tokens of earlier episodes in a prompt."""
    history_cut: Literal["newest", "oldest"] = "newest"
    """Which end of them gives way."""
    memory_source: Literal["history", "recursive"] = "history"
    """A memory is written from all episodes, or from the last memory and the new one."""
    training: TrainingSettings = TrainingSettings()
    """Of the pathway ``training``."""
    transfer: Literal["off", "last", "every"] | None = None
    """Checkpoints whose experience is evaluated in other games too; unless told ``last`` for training, else ``off``."""
    transfer_games: tuple[str, ...] = ()
    """Empty means all of the suite."""
    temperature: float | None = Field(None, ge=0)
    """Unless told the provider's default."""
    max_output_tokens: Count = 14_000
    """Most tokens of an answer."""
    timeout_seconds: float = Field(600.0, gt=0)
    """Of a call; changes no result."""
    parallel: Count = 16
    """Most calls in flight at one endpoint; changes no result."""
    max_calls: Count | None = None
    """Model calls of a run, restarts included: it stops between two calls, and goes on when this is raised."""
    max_cost: float | None = Field(None, gt=0)
    """US dollars, likewise."""
    give_up_seconds: float = Field(600.0, gt=0)
    """How long an endpoint may answer nobody before what is left of its evaluations is invalid."""
    game: dict[str, GameSettings] = Field(default_factory=dict)
    """Per game: ``[game.snake.evaluation]`` and so on."""

    @field_validator("as_of", mode="before")
    @classmethod
    def _plain_date(cls, value: Any) -> Any:
        """TOML has dates of its own."""
        return value.isoformat() if isinstance(value, date) else value

    @field_validator("models", mode="before")
    @classmethod
    def _plain_names(cls, value: Any) -> Any:
        """A model may be given as just its name."""
        if isinstance(value, list | tuple):
            return tuple({"id": entry} if isinstance(entry, str) else entry for entry in value)
        return value

    @field_validator("models")
    @classmethod
    def _told_apart(cls, value: tuple[ModelEntry, ...]) -> tuple[ModelEntry, ...]:
        """Rows, prices and limits go by a model's id."""
        served = {entry.id: (entry.base_url, entry.revision) for entry in value}
        for entry in value:
            if served[entry.id] != (entry.base_url, entry.revision):
                raise ValueError(f"{entry.id!r} stands there with two endpoints or revisions: measure them in two runs")
        return value

    @field_validator("interventions")
    @classmethod
    def _main_first(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        """What is replaced is compared with what is not."""
        return tuple(dict.fromkeys((MAIN, *value)))

    @field_validator("models", "pathways")
    @classmethod
    def _not_empty(cls, value: tuple[Any, ...]) -> tuple[Any, ...]:
        if not value:
            raise ValueError("give at least one")
        return value


def changed_training(base: TrainingSettings, *changes: tuple[str, Mapping[str, Any]]) -> TrainingSettings:
    """``base`` with changes, each as (where it is from, settings).

    Raises:
        ConfigError: a setting is unknown, of the wrong type or out of range.
    """
    values = base.model_dump()
    for where, given in changes:
        try:
            values = TrainingSettings.model_validate({**values, **given}).model_dump()
        except ValidationError as error:
            raise ConfigError(f"{where}: {_sentence(error, TrainingSettings)}") from None
    return TrainingSettings.model_validate(values)


def load_config(
    source: Path | Mapping[str, Any] | None, overrides: Mapping[str, Any], assignments: Sequence[str] = ()
) -> RunConfig:
    """The configuration of a run.

    Args:
        source: a TOML file, the settings that one would hold, or None.
        overrides: values from the command line; None values are skipped.
        assignments: further ``key=value`` texts, the key dotted for nested settings, the value as in TOML.

    Raises:
        ConfigError: anything is unknown, of the wrong type or out of range.
    """
    values: dict[str, Any] = _read(source) if isinstance(source, Path) else dict(source or {})
    values |= {key: value for key, value in overrides.items() if value is not None}
    for assignment in assignments:
        _assign(values, assignment)
    scale = values.get("scale", "small")
    if not isinstance(scale, str) or scale not in SCALES:
        raise ConfigError(f"scale = {scale!r}: expected one of {', '.join(SCALES)}")
    try:
        config = RunConfig.model_validate({**SCALES[scale], **values})
    except ValidationError as error:
        raise ConfigError(_sentence(error)) from None
    if config.exploration_episodes % config.evaluation_interval:
        raise ConfigError(
            f"exploration_episodes = {config.exploration_episodes} is not a multiple of evaluation_interval = "
            f"{config.evaluation_interval}; change one of them"
        )
    return config


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ConfigError(f"no config file {path}; give the path of a TOML file") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path} cannot be read as TOML: {error}") from None


def _assign(values: dict[str, Any], assignment: str) -> None:
    key, equals, text = assignment.partition("=")
    if not equals:
        raise ConfigError(f"--set {assignment!r}: expected key=value, such as evaluation_episodes=5")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text  # a bare word is a string
    *folders, leaf = key.strip().split(".")
    for folder in folders:
        inner = values.setdefault(folder, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"--set {assignment!r}: {folder} is not a table")
        values = inner
    values[leaf] = value


def _sentence(error: ValidationError, model: type[BaseModel] | None = None) -> str:
    sentences = []
    for problem in error.errors():
        where = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            valid = sorted(model.model_fields) if model else _siblings(problem["loc"])
            near = difflib.get_close_matches(str(problem["loc"][-1]), valid, n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(near)}?" if near else f"valid: {', '.join(valid)}"
            sentences.append(f"unknown setting {where!r}; {hint}")
        else:
            told = problem["msg"].replace("a valid tuple", "a list, such as [1, 2] or ['a', 'b']")
            # a whole table is not shown: it may hold what is nobody's business
            given = "" if isinstance(problem["input"], dict) else f" = {problem['input']!r}"
            sentences.append(f"{where}{given}: {told[0].lower()}{told[1:]}")
    return "; ".join(sentences)


def _siblings(loc: tuple[int | str, ...]) -> list[str]:
    if len(loc) > 1 and loc[0] == "game":
        return sorted(GameSettings.model_fields)
    if len(loc) > 1 and loc[0] == "models":
        return sorted(ModelEntry.model_fields)
    if len(loc) > 1 and loc[0] == "training":
        return sorted(TrainingSettings.model_fields)
    return sorted(RunConfig.model_fields)
