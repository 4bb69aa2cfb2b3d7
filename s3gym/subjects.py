"""Who plays what how: names resolved and changes applied, before anything runs or is imported to run it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from s3gym.config import ALL, MAIN, ConfigError, ModelEntry, RunConfig, TrainingSettings, changed_training
from s3gym.errors import MissingPackage
from s3gym.games.base import Config, Game
from s3gym.guides import guided_games
from s3gym.interventions.base import Intervention, kind_of
from s3gym.models import load_model, scripted
from s3gym.models.base import Decoding, Model, Trainable
from s3gym.models.prices import Prices, given_prices
from s3gym.pathways.base import Pathway
from s3gym.protocol.splits import SplitError, Splits
from s3gym.registry import GAMES, INTERVENTIONS, PATHWAYS, UnknownName, load, names

NOT_IN_PAPER = {"chess"}
UNCHANGING = ("player:", "local:")
"""Models whose every change is seen in their keys: ``as_of`` does not measure them anew."""

AnyGame = Game[Any, Any, Any]


@dataclass(frozen=True, eq=False)
class Subject:
    """Who plays what how: everything the stages of one cell share."""

    model: Model
    game: AnyGame
    exploration: Config
    evaluation: Config
    pathway_id: str
    pathway: Pathway
    intervention: str
    replaced: Intervention
    """What the intervention does."""
    replicate: int
    splits: Splits
    decoding: Decoding
    run: RunConfig
    training: TrainingSettings
    """As the model and the game change them."""
    explorer: Model | None = None
    """Who explores in the model's place, without any experience; None: the model itself."""
    targets: "tuple[Subject, ...]" = ()
    """Other games its experience is evaluated in."""
    source: str | None = None
    """For a target: the game the experience is from."""
    unchanged: "Subject | None" = None
    """Itself without the intervention; None where there is none."""

    @property
    def scope(self) -> str:
        """What a cell's decoding seeds are made of: of the pathway too, unless nothing of it is read."""
        parts = [self.model.model_id, self.game.id, self.pathway_id, self.intervention, f"replicate {self.replicate}"]
        if self.replaced.guide and not self.replaced.is_measured:
            parts.remove(self.pathway_id)
        if self.source is not None:
            parts.append(f"from {self.source}")
        return "|".join(parts)

    @property
    def exploration_scope(self) -> str:
        """The same for exploration; what an explorer does is the same whoever learns from it."""
        if self.explorer is None:
            return self.scope
        return "|".join((self.explorer.model_id, self.game.id, "explorer", f"replicate {self.replicate}"))

    @property
    def explores(self) -> "Subject":
        """Whose exploration and judgments a cell rests on: itself, or itself without an intervention elsewhere."""
        return self if self.unchanged is None or self.replaced.explorer else self.unchanged

    @property
    def builds(self) -> "Subject":
        """Whose experience it is evaluated with, likewise."""
        return self if self.replaced.is_built else self.explores

    @property
    def starts(self) -> "Subject":
        """Whose evaluation before any experience it begins with, likewise."""
        return self if self.unchanged is None or self.replaced.is_relaxed else self.unchanged

    @property
    def transfers_at(self) -> tuple[int, ...]:
        """Checkpoints that are evaluated in other games too."""
        setting = self.run.transfer or ("last" if self.pathway.IS_TRAINED else "off")
        if setting == "off" or self.pathway.IS_CONTROL:
            return ()
        return (0, self.checkpoints[-1]) if setting == "last" else tuple(self.checkpoints)

    @property
    def checkpoints(self) -> range:
        """Exploration episodes behind the agent at each evaluation."""
        return range(0, self.run.exploration_episodes + 1, self.run.evaluation_interval)

    @property
    def held_out_count(self) -> int:
        """Held-out episodes a checkpoint: as asked, rounded up to whole strata of the strict configuration."""
        strata = self.game.strata((self.unchanged or self).evaluation)
        return -(-self.run.evaluation_episodes // strata) * strata

    def evaluation_scope(self, checkpoint: int) -> str:
        """The same for an evaluation; the one before any experience is shared by all pathways."""
        if checkpoint:
            return self.scope
        return "|".join((self.model.model_id, self.game.id, "start", f"replicate {self.replicate}"))


def subjects_of(config: RunConfig) -> tuple[list[Subject], tuple[str, ...]]:
    """The subjects of all cells, those without an intervention first, and what is left out, a sentence each.

    Left out is what a package is missing for.

    Raises:
        ConfigError, UnknownName, SplitError: a game, model, pathway or setting is not there, or nothing is left.
    """
    games = config.games or _suite(config)
    wanted = [*games, *(name for entry in config.models for name in entry.games or ()), *_targets(config)]
    loaded = {name: load(GAMES, name, "game").GAME for name in dict.fromkeys(wanted)}
    for name in config.game:
        if name not in names(GAMES):
            raise UnknownName("game in the settings", name, names(GAMES))
    common: dict[str, Any] = {
        "intervention": MAIN,
        "replaced": load(INTERVENTIONS, MAIN, "intervention").INTERVENTION,
        "splits": splits_of(config),
        "decoding": Decoding(
            temperature=config.temperature,
            max_output_tokens=config.max_output_tokens,
            timeout_seconds=config.timeout_seconds,
        ),
        "run": config,
    }
    subjects: list[Subject] = []
    left_out: dict[str, None] = {}
    for entry in config.models:
        played = [loaded[name] for name in entry.games or games]
        seen = loaded.values() if config.transfer in ("last", "every") else played
        model, explorer = _load_model(entry, seen, config), _load_explorer(entry, played, config)
        for pathway_id in entry.pathways or config.pathways:
            pathway = load(PATHWAYS, pathway_id, "pathway")
            try:
                model.identity()
                if pathway.IS_TRAINED:
                    for game in played:
                        _check_trainable(model, _training(entry, game, config))
            except MissingPackage as error:
                left_out[f"{model.model_id}, pathway {pathway_id}, is left out: {error}"] = None
                continue
            subjects += [
                Subject(
                    model=model,
                    game=game,
                    exploration=config_of(game, "exploration", config),
                    evaluation=config_of(game, "evaluation", config),
                    pathway_id=pathway_id,
                    pathway=pathway,
                    replicate=replicate,
                    training=_training(entry, game, config),
                    explorer=explorer,
                    **common,
                )
                for game in played
                for replicate in range(config.replicates)
            ]
    if not subjects:
        raise ConfigError("; ".join(left_out))
    subjects = [_with_targets(subject, loaded) for subject in subjects]
    subjects += _with_interventions(subjects, config)
    _check_seeds([each for subject in subjects for each in (subject, *subject.targets)])
    return subjects, tuple(left_out)


def _with_interventions(subjects: Sequence[Subject], config: RunConfig) -> list[Subject]:
    """The same cells with each link replaced that is asked for, where a cell has it.

    Raises:
        ConfigError, UnknownName: there is no such intervention, no cell has its link, or it needs another setting.
    """
    changed: list[Subject] = []
    asked = names(INTERVENTIONS) if ALL in config.interventions else config.interventions
    for name in (name for name in asked if name != MAIN):
        replaced: Intervention = load(INTERVENTIONS, name, "intervention").INTERVENTION
        fitting = [subject for subject in subjects if kind_of(subject.pathway) in replaced.fits]
        if not fitting and ALL not in config.interventions:
            given = ", ".join(dict.fromkeys(subject.pathway_id for subject in subjects))
            raise ConfigError(f"intervention {name!r} fits none of the pathways {given}; valid: {_combinations()}")
        explorer = _explorer_of(replaced, fitting, config)
        changed += [_changed(subject, name, replaced, explorer) for subject in fitting]
    return changed


def _combinations() -> str:
    """Which intervention fits which pathways, for people."""
    pathways = {name: kind_of(load(PATHWAYS, name, "pathway")) for name in names(PATHWAYS)}
    found = {name: load(INTERVENTIONS, name, "intervention").INTERVENTION.fits for name in names(INTERVENTIONS)}
    return "; ".join(
        f"{name} with {', '.join(pathway for pathway, kind in pathways.items() if kind in fits)}"
        for name, fits in found.items()
        if name != MAIN
    )


def _explorer_of(replaced: Intervention, subjects: Sequence[Subject], config: RunConfig) -> Model | None:
    """Who explores under the intervention; None where the model, or who explores for it, does."""
    if replaced.explorer is None:
        return None
    return _load_model(ModelEntry(id=replaced.explorer), (subject.game for subject in subjects), config)


def _changed(subject: Subject, name: str, replaced: Intervention, explorer: Model | None) -> Subject:
    """``subject`` with one link replaced."""
    is_recursive = subject.pathway.IS_MODEL_ASKED and subject.run.memory_source == "recursive"
    if is_recursive and (replaced.explorer or replaced.scores):
        raise ConfigError(
            f'intervention {name!r} changes what a memory is made from, but with memory_source = "recursive" each is '
            'made from the one before, which exploration made without it; use memory_source = "history"'
        )
    game = subject.game.id
    if replaced.guide and not replaced.is_measured and game not in guided_games():
        raise ConfigError(
            f"intervention {name!r}: there is no guide for {game!r}; write s3gym/guides/{game}.md, "
            f"or ask for it with --game {', --game '.join(guided_games())}"
        )
    return replace(
        subject,
        intervention=name,
        replaced=replaced,
        unchanged=subject,
        explorer=explorer or subject.explorer,
        evaluation=subject.exploration if replaced.is_relaxed else subject.evaluation,
        training=changed_training(subject.training, (f"intervention {name}", replaced.training)),
        targets=(),  # which link breaks is asked of the game itself
    )


def splits_of(config: RunConfig) -> Splits:
    """The seeds of a run."""
    return Splits(
        base_seed=config.seed,
        exploration_range=config.exploration_seeds,
        evaluation_range=config.evaluation_seeds,
        evaluation_set=config.evaluation_set,
        shuffled_count=config.exploration_episodes if config.exploration_order == "shuffled" else None,
    )


def prices_in(entry: ModelEntry) -> Prices | None:
    """What the config says a model's tokens cost."""
    return given_prices(entry.prompt_price, entry.cached_price, entry.completion_price)


def _check_seeds(subjects: list[Subject]) -> None:
    """Draws every seed once, so that a range too small for its episodes is refused before anything is written."""
    for subject in {(s.game.id, s.replicate, s.evaluation): s for s in subjects}.values():
        explored, checkpoints = subject.run.exploration_episodes, subject.checkpoints
        try:
            subject.splits.exploration(subject.game, subject.exploration, subject.replicate, explored)
            for checkpoint in checkpoints if subject.run.evaluation_set == "fresh" else checkpoints[:1]:
                subject.splits.evaluation(subject.game, subject.evaluation, checkpoint, subject.held_out_count)
        except SplitError:
            raise
        except ValueError as error:  # no start can be drawn under these settings
            raise ConfigError(f"game.{subject.game.id}: {error}") from None


def _load_model(entry: ModelEntry, games: Iterable[AnyGame], config: RunConfig) -> Model:
    revision = entry.revision
    if config.as_of is not None and not entry.id.startswith(UNCHANGING):
        revision = " ".join(filter(None, (revision, f"as of {config.as_of}")))
    try:
        model = load_model(entry.id, entry.base_url, revision, prices_in(entry), entry.weights)
    except UnknownName:
        raise
    except ValueError as error:
        raise ConfigError(f"model {entry.id!r}: {error}") from None
    if isinstance(model, scripted.PlayerModel):
        for game in games:
            known = scripted.names_for(game.players)
            if model.player not in known:
                raise UnknownName(f"player of {game.id}", model.player, known)
    return model


def _load_explorer(entry: ModelEntry, games: Iterable[AnyGame], config: RunConfig) -> Model | None:
    """Who explores in the place of a model; as configured, where it is itself one of the run's."""
    if entry.explorer is None:
        return None
    if config.memory_source == "recursive":
        raise ConfigError(
            f"model {entry.id!r} has an explorer, which keeps no memory from episode to episode; "
            'use memory_source = "history"'
        )
    given = next((other for other in config.models if other.id == entry.explorer), ModelEntry(id=entry.explorer))
    return _load_model(given, games, config)


def _check_trainable(model: Model, training: TrainingSettings) -> None:
    """Raises ConfigError unless the model can be trained here, MissingPackage when something for it is missing."""
    if not isinstance(model, Trainable):
        raise ConfigError(
            f"pathway training: {model.model_id!r} cannot be trained; name a model that is computed here, such as "
            "local:smollm2, or give a hosted_vllm/<name> with base_url the `weights` it is trained from"
        )
    if model.is_only_adapted and training.method == "full":
        raise ConfigError(
            f"pathway training: the server of {model.model_id!r} loads adapters and no whole models; "
            'use training.method = "lora"'
        )
    model.training_identity()


def _training(entry: ModelEntry, game: AnyGame, config: RunConfig) -> TrainingSettings:
    """The run's settings with the changes of the model, then of the game."""
    of_game = config.game[game.id].training if game.id in config.game else {}
    return changed_training(
        config.training, (f"models.{entry.id}.training", entry.training), (f"game.{game.id}.training", of_game)
    )


def _targets(config: RunConfig) -> tuple[str, ...]:
    """Games that experience may be evaluated in."""
    return config.transfer_games or _suite(config)


def _suite(config: RunConfig) -> tuple[str, ...]:
    return tuple(name for name in names(GAMES) if config.suite == "full" or name not in NOT_IN_PAPER)


def _with_targets(subject: Subject, loaded: dict[str, AnyGame]) -> Subject:
    """The subject, and itself in every other game that it is evaluated in."""
    if not subject.transfers_at:
        return subject
    others = [loaded[name] for name in _targets(subject.run) if name != subject.game.id]
    targets = tuple(
        replace(
            subject,
            game=game,
            exploration=config_of(game, "exploration", subject.run),
            evaluation=config_of(game, "evaluation", subject.run),
            source=subject.game.id,
        )
        for game in others
    )
    return replace(subject, targets=targets)


def config_of(game: AnyGame, phase: str, config: RunConfig) -> Config:
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
