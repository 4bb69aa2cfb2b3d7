"""Learning curves, and what chance makes of them: intervals, and floors of noise.

What one instance scored at all checkpoints is drawn as one, for all curves of a comparison alike, so that the same luck
is on both sides.

Interval: estimate - bias -+ t(df) * standard error, both of a bootstrap that draws n - 1 of n instances (and r - 1 of
r replicates), widened to hold the estimate and cut off where the number cannot be. At three episodes a checkpoint the
percentile and the BCa interval hold the true value in 60 to 80 % of runs, and that of a maximum in 6 %; these in
80 % or more, nearly always in 95 %.

Sources: Hesterberg (2015), The American Statistician 69, 371-386; Rao and Wu (1988), JASA 83, 231-241, for n - 1; Owen
(2007), Annals of Applied Statistics 1, 386-411, for replicates crossed with instances; Phipson and Smyth (2010), SAGMB
9, article 39, for p of permutations.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Names = NDArray[np.str_]

POINT_METRICS = ("max", "last", "delta", "gain")
"""Numbers that rest on the episodes of one or two checkpoints, at least in part; the others on those of all."""
METRICS = ("avg", *POINT_METRICS, "auc_plus", "auc_minus", "net_area", "naba")
"""As in the view ``improvement``; ``gain`` is the mean over the later checkpoints minus y_0."""
FLOOR_METRICS = ("auc_plus", "max", "naba", "gain")
_NEVER_NEGATIVE = ("auc_plus", "auc_minus", "naba")
_SAME = 1e-9
"""Relative; numbers closer than this differ by rounding."""
_BATCH = 1_000
"""Draws held in memory at once."""


@dataclass(frozen=True, eq=False)
class Curve:
    """The held-out episodes of a cell's valid checkpoints, one entry an episode."""

    checkpoints: Floats
    """(K,), ascending, without repetition."""
    position: NDArray[np.int64]
    """(E,), which of the checkpoints."""
    unit: Names
    """Episodes that are drawn together."""
    stratum: Names
    """Units that are drawn for one another."""
    block: Names
    """Episodes that may change places when nothing is learnt."""
    score: Floats
    least: float
    """Smallest positive mean score of a checkpoint: NABA's eps."""

    @property
    def places(self) -> Floats:
        """(E, K), 1 where an episode belongs to a checkpoint, else 0."""
        return np.eye(len(self.checkpoints))[self.position]

    def means(self, weights: Floats | None = None) -> Floats:
        """Mean score by checkpoint, (n, K), for weights of the episodes (n, E); as they are, (1, K)."""
        at = self.places
        given = np.ones((1, len(self.score))) if weights is None else weights
        with np.errstate(invalid="ignore"):  # a checkpoint of which no episode was drawn has no mean
            means: Floats = (given * self.score @ at) / (given @ at)
        return means

    def units(self, episodes: slice | NDArray[np.bool_] = slice(None)) -> list[tuple[str, str]]:
        """(stratum, unit) of each of these episodes."""
        return list(zip(self.stratum[episodes].tolist(), self.unit[episodes].tolist(), strict=True))

    def only(self, checkpoints: Floats) -> "Curve":
        """The part of it at these of its checkpoints."""
        kept = np.flatnonzero(np.isin(self.checkpoints[self.position], checkpoints))
        return Curve(
            checkpoints,
            np.searchsorted(checkpoints, self.checkpoints[self.position[kept]]),
            self.unit[kept],
            self.stratum[kept],
            self.block[kept],
            self.score[kept],
            self.least,
        )


def areas(means: Floats, checkpoints: Floats) -> tuple[Floats, Floats]:
    """Area above and area below the first value, each (n,), of lines through ``means`` (n, K); exact at crossings."""
    height = means - means[:, :1]
    upper = np.maximum(height[:, 1:], height[:, :-1])
    lower = np.minimum(height[:, 1:], height[:, :-1])
    width = np.diff(checkpoints)
    triangle = upper * upper / (2 * np.where(upper > lower, upper - lower, 1.0))
    above = width * np.where(lower >= 0, (upper + lower) / 2, np.where(upper <= 0, 0.0, triangle))
    plus: Floats = above.sum(axis=1)
    minus: Floats = (above - width * (upper + lower) / 2).sum(axis=1)
    return plus, minus


def metrics(means: Floats, checkpoints: Floats, least: float) -> dict[str, Floats]:
    """Every metric, (n,), of mean scores by checkpoint (n, K); NaN where one is not defined."""
    undefined = np.full(len(means), np.nan)
    found = dict.fromkeys(METRICS, undefined)
    if not len(checkpoints):
        return found
    found |= {"avg": means.mean(axis=1), "max": means.max(axis=1), "last": means[:, -1]}
    if checkpoints[0] != 0 or len(checkpoints) == 1:
        return found
    first = means[:, 0]
    plus, minus = areas(means, checkpoints)
    return found | {
        "delta": means[:, -1] - first,
        "gain": means[:, 1:].mean(axis=1) - first,
        "auc_plus": plus,
        "auc_minus": minus,
        "net_area": plus - minus,
        "naba": np.where(first > -_SAME, plus / np.maximum(first, least), np.nan),  # 0 may be a rounding error off
    }


# --- intervals -------------------------------------------------------------------------------------------------


def draw(curves: Sequence[Curve], rng: np.random.Generator, count: int) -> list[Floats]:
    """Weights of each curve's episodes, (count, E): how often its unit was drawn, the same draw for all curves.

    Of the n units of a stratum n - 1 are drawn and weighted n / (n - 1), so that means vary as much as they do in
    truth and not (n - 1) / n of it. A unit alone in its stratum is no chance.
    """
    members: dict[str, dict[str, int]] = defaultdict(dict)
    for curve in curves:
        for stratum, unit in curve.units():
            members[stratum].setdefault(unit, len(members[stratum]))
    drawn = {stratum: multiplicities(len(units), rng, count) for stratum, units in members.items()}
    return [np.stack([drawn[s][:, members[s][u]] for s, u in curve.units()], axis=1) for curve in curves]


def multiplicities(size: int, rng: np.random.Generator, count: int) -> Floats:
    """How often each of ``size`` things is drawn, (count, size), each row with the sum ``size``."""
    if size == 1:
        return np.ones((count, 1))
    drawn: Floats = rng.multinomial(size - 1, np.full(size, 1 / size), size=count) * np.float64(size / (size - 1))
    return drawn


def intervals(
    pairs: Sequence[tuple[Curve, Curve | None]], quantiles: Floats, rng: np.random.Generator, count: int
) -> dict[str, dict[str, Any]]:
    """What an ``Interval`` holds, by metric.

    Args:
        pairs: A curve a replicate, each with the one that is taken away from it, if any.
        quantiles: Degrees of freedom, ascending, and Student's t at each, (m, 2).
        rng: Where chance comes from.
        count: Resamples.
    """
    curves = [curve for pair in pairs for curve in pair if curve is not None]
    weights = dict(zip(map(id, curves), draw(curves, rng, count), strict=True))
    shares = multiplicities(len(pairs), rng, count) / len(pairs)
    observed, resampled = [], []
    for pair in pairs:
        seen, drawn = (
            [_metrics_of(curve, with_weights) for curve in pair if curve is not None] for with_weights in ({}, weights)
        )
        observed.append(_minus(seen))
        resampled.append(_minus(drawn))
    freedom = _degrees_of_freedom(curves, len(pairs))
    units = len({unit for curve in curves for unit in curve.units()})
    found = {}
    for metric in METRICS:
        estimate = float(np.mean([values[metric][0] for values in observed]))
        draws = sum(shares[:, r] * values[metric] for r, values in enumerate(resampled))
        degrees = freedom["point" if metric in POINT_METRICS else "all"]
        least = 0.0 if metric in _NEVER_NEGATIVE and all(other is None for _, other in pairs) else -math.inf
        found[metric] = _interval(estimate, np.asarray(draws), degrees, quantiles, least) | {
            "replicate_count": len(pairs),
            "unit_count": units,
            "resample_count": count,
        }
    return found


def _metrics_of(curve: Curve, weights: Mapping[int, Floats]) -> dict[str, Floats]:
    return metrics(curve.means(weights.get(id(curve))), curve.checkpoints, curve.least)


def _minus(values: Sequence[dict[str, Floats]]) -> dict[str, Floats]:
    """The first, minus the second where there is one."""
    own, *others = values
    return {metric: own[metric] - sum(other[metric] for other in others) for metric in METRICS}


def _degrees_of_freedom(curves: Sequence[Curve], replicates: int) -> dict[str, int]:
    """Of numbers that rest on all checkpoints, and of those that rest on single ones; the scarcest of what varies."""
    in_all = {unit for curve in curves for unit in curve.units()}
    at_points = [set(curve.units(curve.position == k)) for curve in curves for k in range(len(curve.checkpoints))]
    spare = {"all": _spare(in_all), "point": min(map(_spare, at_points), default=0)}
    if replicates == 1:
        return spare
    return {name: min(found or replicates - 1, replicates - 1) for name, found in spare.items()}


def _spare(units: set[tuple[str, str]]) -> int:
    return len(units) - len({stratum for stratum, _ in units})


def _interval(estimate: float, draws: Floats, degrees: int, quantiles: Floats, least: float) -> dict[str, Any]:
    nothing = dict.fromkeys(("bias", "standard_error", "low", "high"))
    if math.isnan(estimate) or np.isnan(draws).any():
        return nothing | {"estimate": None if math.isnan(estimate) else estimate, "status": "undefined"}
    if degrees < 1:
        return nothing | {"estimate": estimate, "status": "too_few"}
    error = float(draws.std())
    if error <= _SAME * max(1.0, abs(estimate)):
        return nothing | {"estimate": estimate, "status": "no_spread"}
    bias = float(draws.mean()) - estimate
    # between two rows fewer degrees of freedom count, as in the views
    reach = error * float(quantiles[np.searchsorted(quantiles[:, 0], degrees, side="right") - 1, 1])
    return {
        "estimate": estimate,
        "bias": bias,
        "standard_error": error,
        "low": max(least, min(estimate, estimate - bias - reach)),
        "high": max(estimate, estimate - bias + reach),
        "status": "ok",
    }


# --- noise floors ----------------------------------------------------------------------------------------------


def shuffled(curve: Curve, rng: np.random.Generator, count: int) -> Floats:
    """Mean scores by checkpoint, (count, K), with the scores of each block dealt anew among its places.

    Each block by itself: dealing whole checkpoints would leave no more than K different starts, and so no p below
    1 / K.
    """
    at = curve.places
    sums = np.zeros((count, len(curve.checkpoints)))
    for block in np.unique(curve.block):
        own = curve.block == block
        scores = curve.score[own]
        if np.ptp(scores) == 0:  # dealing changes nothing
            sums += scores @ at[own]
            continue
        for start in range(0, count, _BATCH):
            part = sums[start : start + _BATCH]
            part += rng.permuted(np.tile(scores, (len(part), 1)), axis=1) @ at[own]
    means: Floats = sums / at.sum(axis=0)
    return means


def against_checkpoints(curve: Curve | None, rng: np.random.Generator, count: int) -> dict[str, dict[str, Any]]:
    """What a ``NoiseFloor`` holds, by metric: had every checkpoint been played by one and the same policy."""
    if curve is None:
        return _floors(dict.fromkeys(FLOOR_METRICS, math.nan), {}, None, rng)
    observed = metrics(curve.means(), curve.checkpoints, curve.least)
    drawn = metrics(shuffled(curve, rng, count), curve.checkpoints, curve.least)
    side = (curve.position > 0).astype(np.int64)
    return _floors({name: float(values[0]) for name, values in observed.items()}, drawn, 1 / _ways(curve, side), rng)


def against_control(
    curve: Curve | None, control: Curve | None, rng: np.random.Generator, count: int
) -> dict[str, dict[str, Any]]:
    """What a ``NoiseFloor`` holds, by metric: had the cell played as its control.

    Then all scores on an instance, of the cell, of its control and of the start, which is both's, may change places;
    where instances are not repeated, those of the two at the same checkpoint.
    """
    if curve is None or control is None:
        return _floors(dict.fromkeys(FLOOR_METRICS, math.nan), {}, None, rng)
    common = np.intersect1d(curve.checkpoints, control.checkpoints)
    both = _together(curve.only(common), control.only(common[common > 0]))

    def measure(means: Floats) -> dict[str, Floats]:
        own, other = means[:, : len(common)], means[:, len(common) :]
        gain = own[:, common > 0].mean(axis=1) - other.mean(axis=1) if other.size else np.full(len(means), np.nan)
        return metrics(own, common, both.least) | {"gain": gain}

    observed, drawn = measure(both.means()), measure(shuffled(both, rng, count))
    side = np.where(both.position >= len(common), 2, both.checkpoints[both.position] > 0)
    return _floors({name: float(values[0]) for name, values in observed.items()}, drawn, 1 / _ways(both, side), rng)


def _together(curve: Curve, control: Curve) -> Curve:
    """The checkpoints of one curve, then those of the other."""
    blocks = [np.where(one.block == "", one.unit, one.block) for one in (curve, control)]
    return Curve(
        np.concatenate([curve.checkpoints, control.checkpoints]),
        np.concatenate([curve.position, control.position + len(curve.checkpoints)]),
        np.concatenate([curve.unit, control.unit]),
        np.concatenate([curve.stratum, control.stratum]),
        np.concatenate(blocks),
        np.concatenate([curve.score, control.score]),
        curve.least,
    )


def _ways(curve: Curve, side: NDArray[np.int64]) -> float:
    """In how many ways the episodes of each block can be shared out among the sides that a difference is between."""
    ways = 1.0
    for block in np.unique(curve.block):
        sizes = np.bincount(side[curve.block == block])
        ways *= math.factorial(sizes.sum()) / math.prod(math.factorial(size) for size in sizes)
    return ways


def _floors(
    observed: Mapping[str, float], drawn: Mapping[str, Floats], smallest: float | None, rng: np.random.Generator
) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for metric in FLOOR_METRICS:
        lot = rng.random()  # drawn always, so that no metric depends on another
        value, draws = observed[metric], drawn.get(metric)
        if math.isnan(value) or draws is None or np.isnan(draws).any():
            names = ("observed", "null_mean", "null_high", "p_above", "p_below", "p_randomised", "smallest_p")
            found[metric] = dict.fromkeys(names)
            continue
        margin = _SAME * max(1.0, abs(value))
        above, below = int((draws > value + margin).sum()), int((draws < value - margin).sum())
        ties, all_ = len(draws) - above - below, len(draws) + 1
        found[metric] = {
            "observed": value,
            "null_mean": float(draws.mean()),
            "null_high": float(np.quantile(draws, 0.95)),
            "p_above": (1 + above + ties) / all_,
            "p_below": (1 + below + ties) / all_,
            "p_randomised": (above + lot * (1 + ties)) / all_,
            "smallest_p": smallest if metric == "gain" else None,
        }
    return found


# --- pairs -----------------------------------------------------------------------------------------------------


def exchange_p(treated: Floats, reference: Floats, block: Names, rng: np.random.Generator, count: int) -> float:
    """Two-sided p of the mean difference of pairs, (n,) each, had both sides played alike.

    Then all scores of a block, of one side and of the other, may change places. Unlike a control the reference may
    have learnt as well, so that its start, at which both were one, is no part of it.
    """
    observed = float((treated - reference).sum())
    drawn = np.zeros(count)
    for name in np.unique(block):
        own = block == name
        scores, size = np.concatenate([treated[own], reference[own]]), int(own.sum())
        for start in range(0, count, _BATCH):
            part = drawn[start : start + _BATCH]
            dealt = rng.permuted(np.tile(scores, (len(part), 1)), axis=1)
            part += dealt[:, :size].sum(axis=1) - dealt[:, size:].sum(axis=1)
    margin = _SAME * max(1.0, abs(observed))
    above, below = int((drawn >= observed - margin).sum()), int((drawn <= observed + margin).sum())
    return min(1.0, 2 * (1 + min(above, below)) / (1 + count))
