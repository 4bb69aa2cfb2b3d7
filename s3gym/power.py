"""What a design can find, before anything is spent: the smallest gain it would show, and the numbers that a gain needs.

The test in mind is that of the mart ``control_gain``: an agent with experience and its control, the pathway ``none``,
play the same held-out instances at the same checkpoints, and the mean of the paired differences is judged by a t
interval clustered by instance. It covers one comparison; Holm's correction over n cells asks for ``alpha / n``.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import atan, ceil, cos, pi, sin, sqrt
from statistics import NormalDist
from typing import Any

from s3gym.config import SCALES
from s3gym.errors import Explained
from s3gym.games.base import Game
from s3gym.protocol.anchors import ENDS, read_anchors
from s3gym.records import SHIPPED_ANCHORS
from s3gym.registry import GAMES, load, names

MOST = 10_000
"""Larger numbers of episodes, checkpoints or replicates are not looked for."""
_NEARLY_NORMAL = 2_000
"""Degrees of freedom from which on the normal quantile serves: they differ by less than 0.002."""


class PowerError(Explained, ValueError):
    """A game has no anchors to plan with."""


@dataclass(frozen=True, slots=True)
class Design:
    """How much is played. The same ``episodes`` instances serve every checkpoint and every replicate."""

    episodes: int
    """Held-out episodes a checkpoint, from 1; a multiple of ``strata``."""
    checkpoints: int
    """Those after the first, from 1: before any experience agent and control are one."""
    replicates: int = 1
    strata: int = 1
    """Instances, where each checkpoint plays all that the game has; else 1."""

    @property
    def degrees_of_freedom(self) -> int:
        """Of the t interval; below 1 there is none. With replicates no more than one less than their number."""
        is_drawn = self.strata == 1
        spare = self.episodes - 1 if is_drawn else self.episodes * self.checkpoints - self.strata
        return spare if self.replicates == 1 else min(spare, self.replicates - 1)


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What cannot be known before anything is played."""

    correlation: float = 0.5
    """Of the final scores of agent and control on one instance, 0 to below 1: what pairing takes away."""
    persistence: float = 0.5
    """Share of the variance of a difference that belongs to the instance and comes back at every checkpoint, 0 to 1.
    Half of it is the control's where agent and control vary alike, and a deterministic control repeats itself."""
    alpha: float = 0.05
    """Two-sided."""
    power: float = 0.8


@dataclass(frozen=True, slots=True)
class Scale:
    """One game's unit, as its reference players set it on the evaluation configuration."""

    game: str
    unit: str
    deviation: float
    """Standard deviation of a final score, game's unit: the largest of the reference players."""
    anchor_range: float
    """Game's unit; 1 on the normalised scale: from the random to the expert player."""
    strata: int

    def design(self, scale: str) -> Design:
        """The budgets of ``smoke``, ``small`` or ``paper`` in this game, one replicate."""
        budget = SCALES[scale]
        episodes = ceil(budget["evaluation_episodes"] / self.strata) * self.strata
        return Design(episodes, budget["exploration_episodes"] // budget["evaluation_interval"], strata=self.strata)


@dataclass(frozen=True, slots=True)
class Plan:
    """What one game needs. Gains are normalised."""

    scale: Scale
    design: Design
    smallest_gain: float | None
    """The design would show; None where it has no interval at all."""
    episodes: int | None = None
    """Held-out episodes a checkpoint that a given gain needs, all else as in the design; None: over ``MOST``."""
    checkpoints: int | None = None
    replicates: int | None = None


def plans(games: tuple[str, ...], scale: str, gain: float | None, assumed: Assumptions) -> Iterator[Plan]:
    """A plan a game; empty means all games. ``gain``, normalised and above 0, is what is looked for.

    Raises:
        UnknownName: there is no such game.
        PowerError: it has no anchors.
    """
    for name in games or names(GAMES):
        own = scale_of(name)
        design = own.design(scale)
        found = smallest_gain(design, own, assumed)
        if gain is None:
            yield Plan(own, design, found)
        else:
            yield Plan(own, design, found, *needed(gain, design, own, assumed))


def scale_of(name: str) -> Scale:
    """The scale of a game from the shipped anchors.

    Raises:
        UnknownName: there is no such game.
        PowerError: there are no anchors of its present version.
    """
    game: Game[Any, Any, Any] = load(GAMES, name, "game").GAME
    config_id = game.config_id(game.evaluation)
    players = {row.player: row for row in read_anchors(SHIPPED_ANCHORS) if row.config_id == config_id}
    if not set(ENDS) <= set(players):
        raise PowerError(f"{name} has no anchors in {SHIPPED_ANCHORS}; `s3gym anchors --game {name}` measures them")
    low, high = (players[end].mean for end in ENDS)
    deviation = max(row.standard_deviation for row in players.values())
    strata = game.strata(game.evaluation) if game.is_instances_shared else 1
    return Scale(name, game.unit, deviation, high - low, strata)


def standard_error(design: Design, deviation: float, assumed: Assumptions) -> float:
    """Of the mean paired difference, in the unit of ``deviation``.

    With D^2 = 2 (1 - correlation) deviation^2 the variance of one difference, persistence p, m instances, K
    checkpoints and R replicates on the same instances: D^2 (p / m + (1 - p) / (m K R)). Where instances are strata
    they are no sample, and p is 0. What differs between replicates as such is not known before, and not in it.
    """
    share = assumed.persistence if design.strata == 1 else 0.0
    draws = design.episodes * design.checkpoints * design.replicates
    return deviation * sqrt(2 * (1 - assumed.correlation) * (share / design.episodes + (1 - share) / draws))


def smallest_gain(design: Design, scale: Scale, assumed: Assumptions) -> float | None:
    """The smallest normalised gain that is found with the asked-for power; None without a degree of freedom.

    (t(1 - alpha / 2) + t(power)) times the standard error.
    Source: Bloom (1995), Evaluation Review 19, 547-556.
    """
    if design.degrees_of_freedom < 1:
        return None
    factor = detection_factor(design.degrees_of_freedom, assumed.alpha, assumed.power)
    return factor * standard_error(design, scale.deviation, assumed) / scale.anchor_range


def needed(
    gain: float, design: Design, scale: Scale, assumed: Assumptions
) -> tuple[int | None, int | None, int | None]:
    """Episodes a checkpoint, checkpoints and replicates that find ``gain``, each with all else as in ``design``."""

    def finds(other: Design) -> bool:
        found = smallest_gain(other, scale, assumed)
        return found is not None and found <= gain

    strata = scale.strata
    blocks = _first(lambda n: finds(replace(design, episodes=n * strata)), 1, MOST // strata)
    replicates = 1 if finds(replace(design, replicates=1)) else None
    return (
        None if blocks is None else blocks * strata,
        _first(lambda n: finds(replace(design, checkpoints=n)), 1, MOST),
        replicates or _first(lambda n: finds(replace(design, replicates=n)), 2, MOST),
    )


def _first(holds: Callable[[int], bool], low: int, high: int) -> int | None:
    """The first number from ``low`` to ``high`` for which ``holds``, which then holds for all larger ones."""
    if not holds(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def detection_factor(degrees_of_freedom: int, alpha: float, power: float) -> float:
    """Standard errors that a gain must have to be found: t(1 - alpha / 2) + t(power)."""
    return t_quantile(1 - alpha / 2, degrees_of_freedom) + t_quantile(power, degrees_of_freedom)


@lru_cache(maxsize=4096)
def t_quantile(probability: float, degrees_of_freedom: int) -> float:
    """The value that Student's t stays below with ``probability``, above 0 and below 1."""
    if degrees_of_freedom >= _NEARLY_NORMAL:
        return NormalDist().inv_cdf(probability)
    if probability < 0.5:
        return -t_quantile(1 - probability, degrees_of_freedom)
    low, high = 0.0, 1.0
    while _t_below(high, degrees_of_freedom) < probability:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _t_below(middle, degrees_of_freedom) < probability else (low, middle)
    return (low + high) / 2


def _t_below(t: float, degrees_of_freedom: int) -> float:
    """Probability that Student's t is below ``t``, from 0: exact for whole degrees of freedom.

    Source: Abramowitz and Stegun (1964), Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
    """
    angle = atan(t / sqrt(degrees_of_freedom))
    is_odd = degrees_of_freedom % 2 == 1
    term = cos(angle) if is_odd else 1.0
    total = 0.0
    for factor in range(3 if is_odd else 2, degrees_of_freedom + 1, 2):
        total += term
        term *= cos(angle) ** 2 * (factor - 1) / factor
    inside = (angle + sin(angle) * total) * 2 / pi if is_odd else sin(angle) * total
    return (1 + inside) / 2
