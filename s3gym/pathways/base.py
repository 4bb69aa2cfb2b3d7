"""What a pathway is: how experience is made of finished exploration episodes for the next one to read.

A pathway sees transcripts only: what the agent saw, did, and scored itself. It has no access to verifier rewards.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Protocol

from s3gym.models.base import Completion
from s3gym.records import CallFacts
from s3gym.transcript import Message, PastEpisode


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """Experience as the next episode reads it."""

    kind: str
    content: str
    """What stands before the prompt."""
    stored_text: str | None
    """``content`` where a model wrote it; None where the steps themselves hold it."""
    token_count: int
    steps_kept: int
    steps_dropped: int
    tokens_dropped: int
    facts: CallFacts = field(default_factory=CallFacts)

    @property
    def content_hash(self) -> str:
        """SHA-256 of the content."""
        return sha256(self.content.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """What a pathway may use to build."""

    rules: str
    """The game's rules as the exploration prompt states them."""
    ask: Callable[[tuple[Message, ...]], Awaitable[Completion]]
    """One call to the agent's own model; raises ModelError."""
    count_tokens: Callable[[str], int]
    token_limit: int
    """Most tokens of earlier-episode history."""
    cut: str
    """``newest``: what does not fit is cut at the tail, as published; ``oldest``: at the head."""
    memory_source: str
    """``history``: memory is made from all episodes so far; ``recursive``: from the last memory and what is new."""
    previous: str | None = None
    """The memory of all but the last episode, for ``recursive``."""


class Pathway(Protocol):
    """A module of this package has these names."""

    VERSION: int
    """Raised when what it builds changes; part of every key."""
    IS_CONTROL: bool
    """True for the pathway that carries nothing and explores nothing."""
    IS_MODEL_ASKED: bool
    """True when building makes calls."""
    IS_TRAINED: bool
    """True when experience becomes weights, not text: then nothing is built between two episodes."""

    async def build(self, episodes: Sequence[PastEpisode], workshop: Workshop) -> Built:
        """Makes the experience of ``episodes`` (at least one, in order); raises ModelError."""


def settings_of(pathway: Pathway, token_limit: int, cut: str, memory_source: str) -> dict[str, Any]:
    """What of a run's settings can change what ``pathway`` builds; part of its keys."""
    settings: dict[str, Any] = {"version": pathway.VERSION, "token_limit": token_limit, "cut": cut}
    if pathway.IS_MODEL_ASKED:
        settings["memory_source"] = memory_source
    return settings
