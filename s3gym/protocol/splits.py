"""Seeds: which instances a phase plays, and what draws an answer.

Instance seeds depend on the base seed, game, phase and index (exploration: and the replicate), never on model or
pathway, so everything pairs. The phases are kept apart twice: their seeds come from ranges that do not overlap,
and where a game has instances enough an instance's own hash says which phase may use it, whatever the budgets.
"""

import hashlib
import random
from dataclasses import dataclass
from itertools import count
from typing import Any

from s3gym.errors import Explained
from s3gym.games.base import EVALUATION, EXPLORATION, Config, Game

_MOST_DRAWS = 20_000


class SplitError(Explained, ValueError):
    """The seed ranges cannot serve the phases; the message says which and what to do."""


def hashed(*parts: object) -> int:
    """A 63-bit seed from what it stands for; the same on every machine."""
    text = "/".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Splits:
    """The seeds of a run."""

    base_seed: int
    exploration_range: tuple[int, int]
    """First seed and the one after the last."""
    evaluation_range: tuple[int, int]
    evaluation_set: str = "fixed"
    """``fixed``: the same held-out instances at every checkpoint; ``fresh``: new ones at each."""
    shuffled_count: int | None = None
    """Exploration episodes that each replicate plays in an order of its own; None: each replicate has other ones."""

    def __post_init__(self) -> None:
        for name, (low, high) in (
            ("exploration_seeds", self.exploration_range),
            ("evaluation_seeds", self.evaluation_range),
        ):
            if not 0 <= low < high:
                raise SplitError(f"{name} = [{low}, {high}] is empty; give [first, end) with 0 <= first < end")
        if max(self.exploration_range[0], self.evaluation_range[0]) < min(
            self.exploration_range[1], self.evaluation_range[1]
        ):
            raise SplitError(
                f"exploration_seeds = {list(self.exploration_range)} and evaluation_seeds = "
                f"{list(self.evaluation_range)} overlap; held-out seeds must be disjoint, so give two separate ranges"
            )

    def exploration(self, game: Game[Any, Any, Any], config: Config, replicate: int, stop: int) -> list[int]:
        """Seeds of exploration episodes 0 to ``stop`` of one replicate."""
        if self.shuffled_count is None:
            return self._draw(game, config, EXPLORATION, self.exploration_range, f"replicate {replicate}", stop)
        seeds = self._draw(game, config, EXPLORATION, self.exploration_range, "replicate 0", self.shuffled_count)
        random.Random(hashed(self.base_seed, game.id, "order", f"replicate {replicate}")).shuffle(seeds)
        return seeds[:stop]

    def evaluation(self, game: Game[Any, Any, Any], config: Config, checkpoint: int, stop: int) -> list[int]:
        """Seeds of held-out episodes 0 to ``stop`` of a checkpoint."""
        variant = f"checkpoint {checkpoint}" if self.evaluation_set == "fresh" else "fixed"
        return self._draw(game, config, EVALUATION, self.evaluation_range, variant, stop)

    def _draw(
        self,
        game: Game[Any, Any, Any],
        config: Config,
        phase: str,
        limits: tuple[int, int],
        variant: str,
        stop: int,
    ) -> list[int]:
        seeds: list[int] = []
        strata = game.strata(config)
        for index in range(stop):
            for draw in count():
                if draw == _MOST_DRAWS:
                    raise SplitError(
                        f"{phase}_seeds = {list(limits)} holds too few instances of {game.id} for {stop} episodes; "
                        "widen the range"
                    )
                offset = hashed(self.base_seed, game.id, phase, variant, index, draw) % (limits[1] - limits[0])
                seed = limits[0] + offset
                if seed in seeds or seed % strata != index % strata:
                    continue
                if game.is_instances_shared or phase_of(game.instance_id(game.reset(config, seed))) == phase:
                    seeds.append(seed)
                    break
        return seeds


def phase_of(instance_id: str) -> str:
    """The only phase that may use an instance: even hashes are held out."""
    return EVALUATION if int(instance_id, 16) % 2 == 0 else EXPLORATION
