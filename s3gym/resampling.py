"""Intervals and noise floors: the statistics that SQL cannot do, from the held-out scores of a run.

Reads views and writes the derived tables; every other number is made in ``sql/``. What one instance scored at all
checkpoints is drawn as one, for all cells of a comparison alike, so that the same luck is on both sides.

Interval: estimate - bias -+ t(df) * standard error, both of a bootstrap that draws n - 1 of n instances (and r - 1 of
r replicates), widened to hold the estimate and cut off where the number cannot be. At three episodes a checkpoint the
percentile and the BCa interval hold the true value in 60 to 80 % of runs, and that of a maximum in 6 %; these in
80 % or more, nearly always in 95 %.

Sources: Hesterberg (2015), The American Statistician 69, 371-386; Rao and Wu (1988), JASA 83, 231-241, for n - 1; Owen
(2007), Annals of Applied Statistics 1, 386-411, for replicates crossed with instances; Phipson and Smyth (2010), SAGMB
9, article 39, for p of permutations.
"""

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from s3gym import coupling, storage
from s3gym.derived import PERMUTATIONS, RESAMPLES, SEED, CouplingTest, Interval, NoiseFloor
from s3gym.warehouse import Warehouse

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
_ALL_GAMES = "*"
"""As in the view ``judge_coupling``."""
_BATCH = 1_000
"""Draws held in memory at once."""

_CELLS = """
    select cells.cell_id, cells.run_id, cells.smallest_positive_score / cells.evaluation_episode_count as least,
        series.series_id, series.is_counted
    from int_selected_cells as cells
    inner join int_replicate_series as series on series.cell_id = cells.cell_id
    order by cells.replicate, cells.cell_id
"""
_SCORES = """
    select cell_id, checkpoint, seed, unit_id, stratum, block_id, final_score
    from int_held_out_scores
    order by cell_id, checkpoint, seed
"""
_UNITS = """
    select unit, quality, game, cell_id, place, judgment, gain
    from judge_coupling_units
    order by game, cell_id, unit, quality, place
"""
_CONTRASTS = {
    "over_control": "select cell_id, control_cell_id from control_gain where control_cell_id is not null",
    "over_history": """
        select memory_cell_id, history_cell_id
        from memory_vs_history
        where memory_cell_id is not null and history_cell_id is not null
    """,
}


@dataclass(frozen=True, eq=False)
class Curve:
    """The held-out episodes of a cell's valid checkpoints, one entry an episode."""

    checkpoints: Floats
    """(K,), ascending, without repetition."""
    position: NDArray[np.int64]
    """(E,), which of the checkpoints."""
    seed: NDArray[np.int64]
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
            self.seed[kept],
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
    drawn = {stratum: _multiplicities(len(units), rng, count) for stratum, units in members.items()}
    return [np.stack([drawn[s][:, members[s][u]] for s, u in curve.units()], axis=1) for curve in curves]


def _multiplicities(size: int, rng: np.random.Generator, count: int) -> Floats:
    """(count, size), each row with the sum ``size``."""
    if size == 1:
        return np.ones((count, 1))
    drawn: Floats = rng.multinomial(size - 1, np.full(size, 1 / size), size=count) * np.float64(size / (size - 1))
    return drawn


def intervals(
    pairs: Sequence[tuple[Curve, Curve | None]], quantiles: Floats, rng: np.random.Generator, count: int = RESAMPLES
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
    shares = _multiplicities(len(pairs), rng, count) / len(pairs)
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
        np.concatenate([curve.seed, control.seed]),
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


# --- tables ----------------------------------------------------------------------------------------------------


def refresh(warehouse: Warehouse) -> None:
    """Makes the derived tables that the warehouse misses, fills them in, and keeps them where its folder lets it.

    Raises:
        WarehouseError: a file cannot be read.
    """
    if not warehouse.derived.missing:
        return
    study = _Study(warehouse)
    tables: dict[str, list[Interval] | list[NoiseFloor] | list[CouplingTest]] = {
        "intervals": list(study.intervals()),
        "noise_floors": list(study.noise_floors()),
        "coupling_tests": list(study.coupling_tests()),
    }
    for table in warehouse.derived.missing:
        warehouse.fill(table, tables[table])
        with suppress(storage.StorageError):  # a folder that is only read: they can be made again
            storage.write_derived(warehouse.data, table, warehouse.derived.run_id, warehouse.derived.key, tables[table])


class _Study:
    """The curves of the selected cells, and what is compared with what."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._cells = warehouse.sql(_CELLS).to_dicts()
        self._curves = _curves(warehouse.sql(_SCORES).to_dict(as_series=False), self._cells)
        self._contrasts = {name: dict(warehouse.sql(query).rows()) for name, query in _CONTRASTS.items()}
        self._units = warehouse.sql(_UNITS).to_dicts()
        self._quantiles = warehouse.sql("from int_t_quantiles order by degrees_of_freedom").to_numpy()

    def intervals(self) -> Iterator[Interval]:
        """Of every cell, every group of replicates, and every difference between pathways."""
        own: dict[str, str | None] = dict.fromkeys(self._curves)
        for contrast, references in {"own": own, **self._contrasts}.items():
            series: dict[str, list[tuple[str, str | None]]] = defaultdict(list)
            for cell in self._cells:
                pair = cell["cell_id"], references.get(cell["cell_id"])
                if any(name not in self._curves for name in pair if name) or (contrast != "own" and pair[1] is None):
                    continue
                yield from self._intervals("cell", contrast, [pair])
                if cell["is_counted"]:
                    series[cell["series_id"]].append(pair)
            for pairs in series.values():
                if len(pairs) > 1:
                    yield from self._intervals("replicates", contrast, pairs)

    def _intervals(self, scope: str, contrast: str, pairs: Sequence[tuple[str, str | None]]) -> Iterator[Interval]:
        curves = [(self._curves[own], None if other is None else self._curves[other]) for own, other in pairs]
        cell_id, reference = pairs[0]
        for metric, values in intervals(curves, self._quantiles, _stream(cell_id, scope, contrast)).items():
            yield Interval(
                cell_id=cell_id, scope=scope, contrast=contrast, metric=metric, reference_cell_id=reference, **values
            )

    def noise_floors(self) -> Iterator[NoiseFloor]:
        """Of every cell, against its own checkpoints and, where it has one, against its control."""
        runs = [cell["run_id"] for cell in self._cells]
        # Holm asks of the smallest of m two-sided p to be below 0.05 / m
        count = max(PERMUTATIONS, 40 * max(map(runs.count, set(runs)), default=0))
        for cell_id in (cell["cell_id"] for cell in self._cells):
            curve, control_id = self._curves.get(cell_id), self._contrasts["over_control"].get(cell_id)
            floors = {"checkpoints": against_checkpoints(curve, _stream(cell_id, "checkpoints"), count)}
            if control_id is not None:
                control = self._curves.get(control_id)
                floors["control"] = against_control(curve, control, _stream(cell_id, "control"), count)
            for null_kind, found in floors.items():
                for metric, values in found.items():
                    yield NoiseFloor(
                        cell_id=cell_id,
                        null_kind=null_kind,
                        metric=metric,
                        control_cell_id=control_id if null_kind == "control" else None,
                        permutation_count=count,
                        **values,
                    )

    def coupling_tests(self) -> Iterator[CouplingTest]:
        """Of every unit and quality, for each game and for all of them."""
        groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = defaultdict(list)
        for row in self._units:
            for game in (row["game"], _ALL_GAMES):
                groups[row["unit"], game, row["quality"]].append(row)
        for (unit, game, quality), rows in groups.items():
            units = _paired(rows)
            rng = _stream("coupling", unit, game, quality)
            yield CouplingTest(
                unit=unit,
                game=game,
                quality=quality,
                **coupling.interval(units, _cells_drawn(units, rng), self._quantiles),
                p_value=coupling.p_value(units, rng, PERMUTATIONS),
                resample_count=RESAMPLES,
                permutation_count=PERMUTATIONS,
            )


def _paired(rows: Sequence[Mapping[str, Any]]) -> coupling.Units:
    """Those of which both numbers are known."""
    known = [row for row in rows if row["judgment"] is not None and row["gain"] is not None]
    cell, game, place = (np.array([row[name] for row in known], dtype=np.str_) for name in ("cell_id", "game", "place"))
    judgment, gain = (np.array([row[name] for row in known], dtype=np.float64) for name in ("judgment", "gain"))
    return coupling.Units(cell, game, place, judgment, gain)


def _cells_drawn(units: coupling.Units, rng: np.random.Generator) -> dict[str, Floats]:
    """How often each cell was drawn from those of its game."""
    drawn: dict[str, Floats] = {}
    for game in sorted(set(units.games.values())):
        cells = [cell for cell, own in units.games.items() if own == game]
        drawn |= dict(zip(cells, _multiplicities(len(cells), rng, RESAMPLES).T, strict=True))
    return drawn


def _curves(scores: Mapping[str, Sequence[Any]], cells: Sequence[Mapping[str, Any]]) -> dict[str, Curve]:
    """By cell; those without a valid checkpoint are left out."""
    least = {cell["cell_id"]: cell["least"] for cell in cells}
    episodes: dict[str, list[int]] = defaultdict(list)
    for index, cell_id in enumerate(scores["cell_id"]):
        episodes[cell_id].append(index)
    found = {}
    for cell_id, own in episodes.items():
        checkpoints, position = np.unique([scores["checkpoint"][i] for i in own], return_inverse=True)
        unit, stratum, block = (np.array([scores[name][i] for i in own]) for name in ("unit_id", "stratum", "block_id"))
        seed = np.array([scores["seed"][i] for i in own], dtype=np.int64)
        score = np.array([scores["final_score"][i] for i in own], dtype=np.float64)
        found[cell_id] = Curve(
            checkpoints.astype(np.float64), position, seed, unit, stratum, block, score, least[cell_id]
        )
    return found


def _stream(*names: str) -> np.random.Generator:
    """A stream of its own for each use, so that adding a cell changes no other's numbers."""
    digest = hashlib.sha256("/".join(names).encode()).digest()
    return np.random.default_rng([SEED, int.from_bytes(digest[:8], "big")])
