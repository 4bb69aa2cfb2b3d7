"""What a game is: a seeded start, a public view, a text for it, a grammar for answers, and a step.

Data flows one way: ``state -> view -> text``. The view holds only what an agent may know, and both the prompt
and the scripted players are made from the view alone, so hidden truth has no path to either.
A game knows nothing of models, prompts about scoring, storage or experiments.
"""

import hashlib
import json
import random
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Self, TypeVar

from s3gym.registry import UnknownName

EXPLORATION = "exploration"
EVALUATION = "evaluation"
USABLE = frozenset({"ok", "repaired"})
END = "END"
UNREADABLE = "The answer could not be read."
END_POLICIES = ("invalid", "resign")
TOO_EARLY = "The episode is not over."
RESIGNED = "resigned"
UNUSABLE_ANSWER = "unusable_answer"


class EpisodeOver(RuntimeError):
    """A finished episode was stepped, which is a mistake of the caller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Settings every game has; each game adds its own. Frozen, and part of every key."""

    horizon: int
    """Most steps of an episode; an unusable answer costs one as well."""
    end_policy: str = "invalid"
    """What ``Answer: END`` before the end is: ``invalid``, or ``resign`` (ends with the score so far)."""
    unusable_ends: bool = False
    """Whether an unusable answer ends the episode, besides the step it always costs."""

    MOST_STEPS: ClassVar[int] = 1000
    """Largest ``horizon``: what is drawn ahead, and what an expert looks ahead, must end."""

    def __post_init__(self) -> None:
        if not 1 <= self.horizon <= self.MOST_STEPS:
            raise ValueError(f"horizon = {self.horizon}: expected 1 to {self.MOST_STEPS} steps")
        if self.end_policy not in END_POLICIES:
            raise ValueError(f"end_policy = {self.end_policy!r}: expected {' or '.join(END_POLICIES)}")

    def changed(self, changes: Mapping[str, Any], owner: str) -> Self:
        """A copy with other settings; a list is taken for a tuple.

        Raises:
            UnknownName: ``owner`` has no such setting.
            ValueError: a value is not of its setting's type, or not allowed.
        """
        values: dict[str, Any] = {}
        for name, value in changes.items():
            known = [field.name for field in fields(self)]
            if name not in known:
                raise UnknownName(f"setting of {owner}", name, known)
            present, given = getattr(self, name), tuple(value) if isinstance(value, list) else value
            if present is not None and type(given) is not type(present):
                raise ValueError(f"{name} = {value!r}: expected {type(present).__name__}, such as {present!r}")
            values[name] = given
        return replace(self, **values)

    def to_json(self) -> str:
        """Canonical JSON: the text that is hashed and stored."""
        return json.dumps(asdict(self), sort_keys=True)


ConfigT = TypeVar("ConfigT", bound=Config)


@dataclass(frozen=True, slots=True, kw_only=True)
class State(Generic[ConfigT]):
    """What every moment of an episode has; each game adds its own, public or hidden."""

    config: ConfigT
    step_index: int = 0
    """Steps taken so far."""
    end_reason: str | None = None
    """The rule that ended the episode; None while it goes on and when the horizon cut it off."""


class Parsed(NamedTuple):
    """What a game's grammar made of an action text."""

    status: str
    """``ok``; ``repaired``: in a tolerated spelling; ``unparsable``: cannot be read; ``invalid``: names what does not
    exist in the game; ``illegal``: what the rules forbid here; ``ambiguous``: may mean several actions."""
    action: str | None
    """Canonical text of a usable action, else None."""
    feedback: str = ""
    """For an unusable action: one short fixed sentence, the same whatever the hidden truth is."""

    @classmethod
    def of(cls, text: str, action: str) -> "Parsed":
        """What became of a usable text: ``ok`` where it is the canonical action itself."""
        return cls("ok" if text == action else "repaired", action)


class Outcome(NamedTuple):
    """What one step led to."""

    state: Any
    reward: float
    """Verifier reward in the game's unit; for the benchmark only."""
    feedback: str
    """For the agent; never depends on hidden truth. May be empty."""

    @property
    def end_reason(self) -> str | None:
        """The rule that ended the episode, else None."""
        reason: str | None = self.state.end_reason
        return reason


class Taken(NamedTuple):
    """One answer applied to a state."""

    status: str
    action: str | None
    outcome: Outcome


class Move(NamedTuple):
    """What a scripted player answers."""

    action: str
    self_score: float | None
    """Its estimate of the step's verifier reward; None where it knows nothing."""


Player = Callable[[Any, random.Random], Move]
"""A scripted player: a function of the public view and a generator of its own."""

Fact = tuple[str, str, str]
"""(situation, action, outcome) in the game's own short terms; no ``|`` and no line break inside."""
Facts = Mapping[tuple[str, str], Mapping[str, int]]
"""(situation, action) -> outcome -> how often it was seen."""


class Reader(ABC):
    """What a learner knows of a game before any experience: how to read it, never what an action leads to.

    All arguments are texts the agent saw: ``observation`` as made by ``Game.render``; ``after`` is the feedback,
    if any, and the next observation. A game without ``facts`` and ``choose`` gives a learner nothing to learn with.
    """

    @property
    def is_learnable(self) -> bool:
        """Whether the game says what its transitions show."""
        return type(self).facts is not Reader.facts

    @abstractmethod
    def actions(self, observation: str) -> list[str]:
        """Actions one could name from the stated rules alone, in a fixed order; never empty."""

    @abstractmethod
    def glance(self, observation: str, action: str) -> float:
        """The immediate reward one would guess from the stated rules; what a myopic player scores with."""

    def expect(self, observation: str, action: str) -> float | None:
        """The immediate reward that can honestly be expected from rules and ``observation``; None where it cannot."""
        return self.glance(observation, action)

    def facts(self, before: str, action: str, after: str) -> Iterable[Fact]:
        """What one transition shows; empty when the two states do not follow from each other."""
        return ()

    def choose(self, observation: str, facts: Facts, rng: random.Random) -> Move:
        """Looks ahead with nothing but ``facts``; self_score is None where they say nothing."""
        return Move(rng.choice(self.actions(observation)), None)


StateT = TypeVar("StateT", bound=State[Any])
ViewT = TypeVar("ViewT")


class Game(ABC, Generic[ConfigT, StateT, ViewT]):
    """A game of one file, which ends with ``GAME = TheClass()``."""

    id: ClassVar[str]
    VERSION: ClassVar[int]
    """Raised when behaviour changes; part of every key and row."""
    unit: ClassVar[str]
    """Unit of the score, for axes and prompts, such as ``apples``."""
    exploration: ConfigT
    evaluation: ConfigT
    score_aggregation: ClassVar[str] = "sum"
    """``sum`` or ``mean`` of the rewards of an episode."""
    is_length_fixed: ClassVar[bool] = False
    """True when an episode ends at its horizon and never before, unless an unusable answer ends it."""
    is_instances_shared: ClassVar[bool] = False
    """True when there are too few instances to keep the phases apart; the report says so."""
    success_score: ClassVar[float]
    """Final score from which an episode counts as a success; told to the agent in the retrospective question."""
    training_signal: ClassVar[Literal["score", "return"]] = "score"
    """What says that an action was good, where self-scores select what is trained on: its own ``score``, or the
    ``return`` (all scores from it to the end) where what pays at once costs more later."""
    players: ClassVar[Mapping[str, Player]]
    """At least ``random`` and ``expert``; further reference lines by name."""
    reader: ClassVar[Reader]
    palette: ClassVar[Mapping[str, str]] = {}
    """Colours for a person's terminal: a regular expression over the observation -> a rich style."""

    @abstractmethod
    def reset(self, config: ConfigT, seed: int) -> StateT:
        """The start state; everything random of the episode comes from generators made of ``seed``."""

    @abstractmethod
    def view(self, state: StateT) -> ViewT:
        """What an agent may know of ``state``."""

    @abstractmethod
    def render(self, view: ViewT) -> str:
        """The observation text; also what a person plays from."""

    @abstractmethod
    def rules(self, config: ConfigT) -> str:
        """The rules told to the agent, true for this very configuration, with the format of an action."""

    @abstractmethod
    def parse(self, text: str, view: ViewT) -> Parsed:
        """The grammar of an action: tolerant separators, the whole text or nothing, any text is safe."""

    @abstractmethod
    def step(self, state: StateT, action: str) -> Outcome:
        """Applies a usable canonical action."""

    @abstractmethod
    def layout(self, state: StateT) -> str:
        """A text of the start state with all that is drawn ahead; equal layouts are the same instance."""

    @abstractmethod
    def reward_range(self, config: ConfigT) -> tuple[float, float]:
        """Declared lowest and highest verifier reward of one step."""

    @abstractmethod
    def smallest_positive_score(self, config: ConfigT) -> float:
        """Smallest positive final score of one episode."""

    def spoil(self, state: StateT, feedback: str) -> Outcome:
        """Applies the configuration's rule for an unusable answer: it costs the step, or ends the episode."""
        end_reason = UNUSABLE_ANSWER if state.config.unusable_ends else None
        return Outcome(replace(state, step_index=state.step_index + 1, end_reason=end_reason), 0.0, feedback)

    def exact_anchor(self, config: ConfigT, player: str) -> tuple[float, float] | None:
        """(mean, standard deviation) over instances where it can be computed; None where it must be sampled."""
        return None

    def strata(self, config: ConfigT) -> int:
        """Number of strata: instance ``i`` is drawn with a seed that is ``i`` modulo this number."""
        return 1

    def instance_id(self, state: StateT) -> str:
        """Hash of the start state's layout; the same task has the same id under every seed."""
        return digest(f"{self.id} {self.layout(state)}")

    def config_id(self, config: ConfigT) -> str:
        """Hash of game, VERSION and configuration."""
        return digest(f"{self.id} {self.VERSION} {config.to_json()}")

    def read_config(self, text: str) -> ConfigT:
        """The configuration of a stored JSON text; inverse of ``Config.to_json``."""
        values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in json.loads(text).items()}
        return type(self.exploration)(**values)

    def take(self, state: StateT, text: str | None) -> Taken:
        """One answer of the agent; ``text`` is the action part, None when no answer could be read.

        Raises:
            EpisodeOver: the episode has ended, or its horizon is reached.
        """
        if state.end_reason is not None or state.step_index >= state.config.horizon:
            raise EpisodeOver(f"{self.id}: no step after {state.end_reason or 'the horizon'}; reset to play again")
        if text is None:
            return Taken("unparsable", None, self.spoil(state, UNREADABLE))
        if text.strip().strip(".").upper() == END:
            if state.config.end_policy == "resign":
                return Taken("ok", END, Outcome(replace(state, end_reason=RESIGNED), 0.0, ""))
            return Taken("invalid", None, self.spoil(state, TOO_EARLY))
        parsed = self.parse(text, self.view(state))
        if parsed.status not in USABLE or parsed.action is None:
            return Taken(parsed.status, None, self.spoil(state, parsed.feedback))
        return Taken(parsed.status, parsed.action, self.step(state, parsed.action))

    def final_score(self, rewards: Iterable[float]) -> float:
        """The verifier's score of an episode from its rewards, as the game declares."""
        values = list(rewards)
        total = sum(values)
        return total / len(values) if self.score_aggregation == "mean" and values else total


_STEP = re.compile(r"\b(?:Step|Round) (\d+) of ")


def numbered(step_index: int, horizon: int, name: str = "Step") -> str:
    """The number of an observation, such as ``Step 3 of 64``; the state after the last step repeats its number."""
    return f"{name} {min(step_index + 1, horizon)} of {horizon}"


def is_next_step(before: str, after: str) -> bool:
    """Whether two observations are numbered as neighbours; the state after the last step never is."""
    old, new = _STEP.search(before), _STEP.search(after)
    return old is not None and new is not None and int(new[1]) == int(old[1]) + 1


def digest(text: str) -> str:
    """First 16 hex digits of the SHA-256 of ``text``."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def stream(seed: int, name: str) -> random.Random:
    """A private generator for one purpose (``layout``, ``chance``, ``opponent``) of one episode."""
    return random.Random(f"{seed}/{name}")  # a str seed is hashed with SHA-512: the same on every machine
