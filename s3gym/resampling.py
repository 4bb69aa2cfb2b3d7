"""The derived tables: resamples the held-out scores of a run, which SQL cannot do, and keeps what comes of it.

Reads views and writes the derived tables; every other number is made in ``sql/``. The statistics are in ``curves`` and
``coupling``.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from s3gym import coupling, storage
from s3gym.curves import (
    Curve,
    Floats,
    against_checkpoints,
    against_control,
    exchange_p,
    intervals,
    multiplicities,
)
from s3gym.derived import PERMUTATIONS, RESAMPLES, SEED, CouplingTest, Interval, InterventionTest, NoiseFloor
from s3gym.warehouse import Warehouse

_ALL_GAMES = "*"
"""As in the view ``judge_coupling``."""

_CELLS = """
    select cells.cell_id, cells.run_id, cells.intervention = 'main' as is_main, series.series_id, series.is_counted,
        cells.smallest_positive_score / cells.evaluation_episode_count as least
    from int_selected_cells as cells
    inner join int_replicate_series as series on series.cell_id = cells.cell_id
    order by cells.replicate, cells.cell_id
"""
_SCORES = """
    select cell_id, checkpoint, unit_id, stratum, block_id, final_score
    from int_held_out_scores
    order by cell_id, checkpoint, seed
"""
_UNITS = """
    select unit, quality, game, cell_id, place, judgment, gain
    from judge_coupling_units
    order by game, cell_id, unit, quality, place
"""
_PAIRS = """
    select
        difference_id, block_id, avg(treated_score) as treated_score, avg(reference_score) as reference_score
    from int_intervention_pairs
    group by difference_id, block_id, checkpoint, seed  -- cells of a chain are no chance
    order by difference_id, block_id, checkpoint, seed
"""
_QUANTILES = "select degrees_of_freedom, t_quantile from int_t_quantiles order by degrees_of_freedom"
_CONTRASTS = {
    "over_control": "select cell_id, control_cell_id from control_gain where control_cell_id is not null",
    "over_history": """
        select memory_cell_id, history_cell_id
        from memory_vs_history
        where memory_cell_id is not null and history_cell_id is not null
    """,
}


def refresh(warehouse: Warehouse) -> None:
    """Makes the derived tables that the warehouse misses, fills them in, and keeps them where its folder lets it.

    Raises:
        WarehouseError: a file cannot be read.
    """
    if not warehouse.derived.missing:
        return
    study = _Study(warehouse)
    tables: dict[str, list[Interval] | list[NoiseFloor] | list[CouplingTest] | list[InterventionTest]] = {
        "intervals": list(study.intervals()),
        "noise_floors": list(study.noise_floors()),
        "coupling_tests": list(study.coupling_tests()),
        "intervention_tests": list(study.intervention_tests()),
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
        self._pairs = warehouse.sql(_PAIRS)
        self._quantiles = warehouse.sql(_QUANTILES).to_numpy()

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
        found = intervals(curves, self._quantiles, _stream(cell_id, scope, contrast), RESAMPLES)
        for metric, values in found.items():
            yield Interval(
                cell_id=cell_id, scope=scope, contrast=contrast, metric=metric, reference_cell_id=reference, **values
            )

    def noise_floors(self) -> Iterator[NoiseFloor]:
        """Of every cell, against its own checkpoints and, where it has one, against its control."""
        families = Counter((cell["run_id"], cell["is_main"]) for cell in self._cells)
        for cell_id, family in ((cell["cell_id"], (cell["run_id"], cell["is_main"])) for cell in self._cells):
            # Holm asks of the smallest of m two-sided p to be below 0.05 / m
            count = max(PERMUTATIONS, 40 * families[family])
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

    def intervention_tests(self) -> Iterator[InterventionTest]:
        """Of every chain and replaced link."""
        tests = self._pairs.partition_by("difference_id", maintain_order=True)
        count = max(PERMUTATIONS, 40 * len(tests))  # so many for Holm, as above
        for pairs in tests:
            difference_id = pairs["difference_id"][0]
            treated, reference = pairs["treated_score"].to_numpy(), pairs["reference_score"].to_numpy()
            p_value = exchange_p(treated, reference, pairs["block_id"].to_numpy(), _stream(difference_id), count)
            yield InterventionTest(difference_id=difference_id, p_value=p_value, permutation_count=count)


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
        drawn |= dict(zip(cells, multiplicities(len(cells), rng, RESAMPLES).T, strict=True))
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
        score = np.array([scores["final_score"][i] for i in own], dtype=np.float64)
        found[cell_id] = Curve(checkpoints.astype(np.float64), position, unit, stratum, block, score, least[cell_id])
    return found


def _stream(*names: str) -> np.random.Generator:
    """A stream of its own for each use, so that adding a cell changes no other's numbers."""
    digest = hashlib.sha256("/".join(names).encode()).digest()
    return np.random.default_rng([SEED, int.from_bytes(digest[:8], "big")])
