"""How sure one can be of a rank correlation of units that come in cells, such as blocks of exploration.

Blocks of one cell share an agent, so whole cells are drawn for the interval, and whole cells change places for p.

Interval: tanh(atanh(rho) -+ t(cells - games) * standard error), the error that of atanh(rho) over draws of cells within
their games. p: cells of a game with the same checkpoints are dealt each other's gains, so that gains keep their order
in time, and what all cells of a game have in common at a checkpoint is no evidence.

Sources: Fisher (1921), Metron 1, 3-32; Field and Welsh (2007), JRSS B 69, 369-390, for drawing clusters; Phipson and
Smyth (2010), SAGMB 9, article 39, for p of permutations.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_SAME = 1e-9
"""Numbers closer than this differ by rounding."""
_LARGEST = 1 - 1e-6
"""Correlations are cut off here, as that of 1 has no finite transform."""
LEAST_UNITS = 3
"""As in the view ``judge_coupling``."""


@dataclass(frozen=True, eq=False)
class Units:
    """What is correlated, one entry a unit; those of a cell stand in the order of their places."""

    cell: NDArray[np.str_]
    game: NDArray[np.str_]
    place: NDArray[np.str_]
    """Which checkpoints a unit lies between."""
    judgment: Floats
    gain: Floats

    @property
    def games(self) -> dict[str, str]:
        """The game of each cell."""
        return dict(zip(self.cell.tolist(), self.game.tolist(), strict=True))


def midranks(values: Floats, weights: Floats) -> Floats:
    """Ranks, (n, units), where each unit counts as often as its weight in (n, units) says; equal values share one."""
    distinct, place = np.unique(values, return_inverse=True)
    order = np.argsort(place, kind="stable")
    mass = np.add.reduceat(weights[:, order], np.searchsorted(place[order], np.arange(len(distinct))), axis=1)
    ranks: Floats = (np.cumsum(mass, axis=1) - mass / 2)[:, place]
    return ranks


def spearman(units: Units, weights: Floats) -> Floats:
    """Rank correlation of judgment and gain, (n,), for weights of the units (n, units); NaN where one is constant."""
    total = weights.sum(axis=1, keepdims=True)
    centred = []
    for values in (units.judgment, units.gain):
        ranks = midranks(values, weights)
        centred.append(ranks - (weights * ranks).sum(axis=1, keepdims=True) / total)
    judgment, gain = centred
    spread = (weights * judgment**2).sum(axis=1) * (weights * gain**2).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Floats = np.where(spread > _SAME, (weights * judgment * gain).sum(axis=1) / np.sqrt(spread), np.nan)
    return found


def interval(units: Units, drawn: dict[str, Floats], quantiles: Floats) -> dict[str, Any]:
    """``low``, ``high`` and ``status`` of the rank correlation.

    Args:
        units: What is correlated.
        drawn: How often each cell was drawn, (draws,).
        quantiles: Degrees of freedom, ascending, and Student's t at each, (m, 2).
    """
    nothing: dict[str, Any] = {"low": None, "high": None}
    if len(units.cell) < LEAST_UNITS:
        return nothing | {"status": "too_few"}
    estimate = float(spearman(units, np.ones((1, len(units.cell))))[0])
    if np.isnan(estimate):
        return nothing | {"status": "undefined"}
    degrees = len(units.games) - len(set(units.games.values()))
    if degrees < 1:
        return nothing | {"status": "too_few"}
    draws = spearman(units, np.stack([drawn[cell] for cell in units.cell.tolist()], axis=1))
    if np.isnan(draws).any():
        return nothing | {"status": "undefined_in_draws"}
    error = float(np.arctanh(np.clip(draws, -_LARGEST, _LARGEST)).std())
    if error <= _SAME:
        return nothing | {"status": "no_spread"}
    centre = float(np.arctanh(np.clip(estimate, -_LARGEST, _LARGEST)))
    reach = error * float(quantiles[np.searchsorted(quantiles[:, 0], degrees, side="right") - 1, 1])
    return {
        "low": min(estimate, float(np.tanh(centre - reach))),
        "high": max(estimate, float(np.tanh(centre + reach))),
        "status": "ok",
    }


def p_value(units: Units, rng: np.random.Generator, count: int) -> float | None:
    """Two-sided p of the rank correlation; None where it is not defined, or no two cells can change places."""
    ones = np.ones((1, len(units.cell)))
    if len(units.cell) < LEAST_UNITS or np.isnan(spearman(units, ones)[0]):
        return None
    judgment, gain = (midranks(values, ones)[0] for values in (units.judgment, units.gain))
    alike: dict[tuple[str, ...], list[NDArray[np.int64]]] = defaultdict(list)
    for cell, game in units.games.items():
        own = np.flatnonzero(units.cell == cell)
        alike[(game, *units.place[own].tolist())].append(own)
    if max(map(len, alike.values())) < 2:
        return None
    observed, draws = 0.0, np.zeros(count)
    for cells in alike.values():  # ranks stay what they are when gains change places: a sum of products is enough
        products = np.stack([judgment[own] for own in cells]) @ np.stack([gain[own] for own in cells]).T
        observed += float(np.trace(products))
        places = rng.permuted(np.tile(np.arange(len(cells)), (count, 1)), axis=1)
        draws += products[np.arange(len(cells)), places].sum(axis=1)
    margin = _SAME * max(1.0, abs(observed))
    above, below = (draws >= observed - margin).sum(), (draws <= observed + margin).sum()
    return min(1.0, 2 * (1 + int(min(above, below))) / (1 + count))
