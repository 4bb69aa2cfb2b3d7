"""What an intervention is: which link of a cell's chain it replaces, for which pathways, and by what.

A link that an intervention leaves alone is not done again: its stages are those of the cell without one. Here and in
the modules beside are pure functions; ``plan`` says which stages differ, ``flows`` calls the hooks.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from s3gym.guides import Guide
from s3gym.pathways.base import Pathway
from s3gym.records import Step

Kind = Literal["control", "text", "weights"]
"""What a pathway carries on: nothing, a text before the prompt, or weights."""
Scores = Callable[[Sequence[Step], random.Random], list[float | None]]
"""The scores of explored steps, in order, in place of the agent's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervention:
    """One link replaced. A hook that is not given leaves its link as it is."""

    version: int
    """Raised when what it does changes; part of the keys of the stages it changes."""
    fits: frozenset[Kind]
    """Kinds of pathways that have the link."""
    mark: str | None = None
    """Said with the kind of every experience it makes, such as ``oracle scores``."""
    explorer: str | None = None
    """Who explores in the model's place, and judges what it does."""
    scores: Scores | None = None
    """Of the steps that a text is made from."""
    ranking: Scores | None = None
    """Of the steps that training chooses from."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """Changes to how experience becomes weights."""
    guide: Callable[[str], Guide] | None = None
    """From a game's id to the guide that is read in place of the experience."""
    is_measured: bool = False
    """Whether the guide is made as long as the experience in whose place it stands."""
    is_relaxed: bool = False
    """Whether held-out instances are played under the rules of exploration."""

    @property
    def is_built(self) -> bool:
        """Whether experience is made in another way than without it."""
        return any((self.scores, self.ranking, self.training, self.guide))

    def marked(self, kind: str) -> str:
        """The kind of an experience, with what is changed in it."""
        return f"{kind}, {self.mark}" if self.mark else kind


def kind_of(pathway: Pathway) -> Kind:
    """What a pathway carries on."""
    if pathway.IS_CONTROL:
        return "control"
    return "weights" if pathway.IS_TRAINED else "text"
