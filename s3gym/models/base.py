"""What a model back end is: an awaitable from a request to a completion, or a typed error.

A back end classifies its failures and never retries by itself: ``protocol.asking`` does, once, for all.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from s3gym.config import TrainingSettings
from s3gym.records import CallFacts
from s3gym.transcript import Message

ERROR_KINDS = (
    "authentication",
    "bad_request",
    "content_filter",
    "context_window",
    "connection",
    "empty_reply",
    "malformed_reply",
    "not_found",
    "rate_limit",
    "server",
    "timeout",
    "truncated",
)
"""Why a call failed, in words that tables and messages share."""

TRANSIENT = frozenset({"connection", "malformed_reply", "rate_limit", "server", "timeout"})
"""Kinds worth asking again; the others would fail the same way."""

TRUNCATED = "length"
"""The finish reason of a reply that was cut off at the token limit, as providers call it."""


class ModelError(Exception):
    """A failed call: never an answer, never played."""

    def __init__(
        self, kind: str, message: str, retry_after_seconds: float | None = None, paid: CallFacts | None = None
    ) -> None:
        """Says what failed.

        Args:
            kind: one of ``ERROR_KINDS``.
            message: what happened and what to do, without any credential.
            retry_after_seconds: how long the provider asks to wait.
            paid: tokens and cost of an answer that came and was none, such as a truncated one.
        """
        assert kind in ERROR_KINDS, kind
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message
        self.retry_after_seconds = retry_after_seconds
        self.facts = replace(paid or CallFacts(), error_kind=kind, error_message=message)
        """For the row of the failed call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """How answers are drawn; part of every key that rests on a call."""

    temperature: float | None = None
    """None leaves the provider's default."""
    max_output_tokens: int = 14_000
    timeout_seconds: float = 600.0
    """Wall clock of one call; not part of any key."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What a scripted player may look at beside its prompt: the game's public side, never a state."""

    players: Any
    """The game's ``players``."""
    reader: Any
    """The game's ``reader``."""
    reward_range: tuple[float, float]
    success_score: float
    score_aggregation: str
    """``sum`` or ``mean`` of the rewards of an episode."""
    view: Any = None
    """The public view of the current step; None outside a step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call."""

    messages: tuple[Message, ...]
    purpose: str
    """``act`` (a step), ``judge`` (retrospective judgment) or ``remember`` (memory text)."""
    seed: int
    """Decoding seed; unique to (cell, phase, checkpoint, episode, step)."""
    decoding: Decoding
    scene: Scene


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What came back."""

    text: str
    """The reply, thinking removed; raw otherwise."""
    reasoning: str | None = None
    facts: CallFacts = CallFacts()


class Model(Protocol):
    """A back end serving one model."""

    model_id: str
    """As the user wrote it; stored in every table."""
    revision: str | None
    is_free: bool
    """True for scripted players: instant, deterministic, and not worth a journal entry."""

    @property
    def endpoint(self) -> str:
        """Who answers, without any credential: models of one endpoint share its limits."""

    def identity(self) -> dict[str, Any]:
        """Everything of the model that can change an answer, JSON-able; part of every key. Never a credential."""

    def check(self) -> None:
        """Whether anything can serve this name, before anything is written; may be slow, asks no endpoint.

        Raises:
            UnknownName: nothing can; the message gives the nearest names.
            Explained: something it needs is missing, such as a key.
        """

    async def complete(self, request: Request) -> Completion:
        """Answers, or raises ModelError."""

    def count_tokens(self, text: str) -> int:
        """Tokens of ``text``: the model's own where a tokenizer is at hand, else ``estimate_tokens``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One answer to train on, as the tokens of its call."""

    tokens: list[int]
    """Of the prompt, then of the answer with the token that ends it."""
    prompt_count: int
    """How many of them are the prompt's; the loss is taken on the others."""
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What training made: a folder that transformers or peft loads without us."""

    folder: Path
    """In PEFT's format, or (trained whole) as transformers saves a model."""
    digest: str
    """SHA-256 of the weights in it."""

    @property
    def name(self) -> str:
        """For a server that is told to load them."""
        return f"s3gym-{self.digest[:24]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of the weights; see ``records.TrainingStep``."""

    epoch: float
    row_count: int
    token_count: int
    loss: float
    gradient_norm: float
    learning_rate: float
    seconds: float
    peak_memory_bytes: int | None


class TrainingFailed(Exception):
    """Training came to nothing; weights made before are untouched. The message says why and what to do."""


@runtime_checkable
class Trainable(Protocol):
    """A back end whose model can also be trained, in this process."""

    is_only_adapted: bool
    """True where answers come from a server that loads adapters and nothing else."""

    def training_identity(self) -> dict[str, Any]:
        """Everything beside settings and examples that can change what training makes, JSON-able; part of its keys."""

    def example(self, messages: Sequence[Message], reply: str, reasoning: str | None = None) -> Example:
        """A call and its answer, token by token as they were read and written."""

    async def train(
        self,
        examples: Sequence[Example],
        settings: TrainingSettings,
        *,
        start: Weights | None,
        seed: int,
        folder: Path,
        card: Mapping[str, str],
        on_update: Callable[[Change], None],
    ) -> str:
        """Makes new weights.

        Args:
            examples: at least one.
            settings: how.
            start: where to begin; None for the untrained model.
            seed: of the order of the examples, of new adapters' weights, and of dropout.
            folder: where the weights are written, whole or not at all: under another name first, then renamed.
            card: what they come from, as heading to text, for the README in the folder.
            on_update: told after each step of the optimizer.

        Returns:
            The digest of the weights.

        Raises:
            TrainingFailed: a loss that is not a number, no memory, a folder that cannot be written, or weights that
                are not those this model was set up with.
        """

    def with_weights(self, weights: Weights) -> "AbstractAsyncContextManager[Model]":
        """The model with other weights, while the context lasts; itself it stays as it is."""


def estimate_tokens(text: str) -> int:
    """The stated estimate where no tokenizer is at hand: one token for every four characters, rounded up."""
    return -(-len(text) // 4)


def writable(text: str) -> str:
    """Text that every store can hold: half a surrogate pair, which JSON lets through, becomes ``?``."""
    return text.encode("utf-8", "replace").decode()
