"""Numbers of the marts, worked out again from the Parquet rows in plain Python, and compared.

Of every cell the mean score and the area above the start, the judge's agreement and error; of every game the rank
correlations. Written from the definitions and not from the SQL, so that a slip in one of them shows.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3gym import storage
from s3gym.warehouse import ALL_RUNS, Warehouse

SAME = 1e-9
"""Numbers closer than this are the same."""
_DECIMALS = 9
"""Numbers that are ranked are rounded to so many before."""
_LEAST_UNITS = 3
_ALL_GAMES = "*"

Row = dict[str, Any]
Pair = tuple[float, float]
"""(judgment, gain)."""


class Scored(NamedTuple):
    """Steps that have both a self-score and a reward."""

    step_count: int = 0
    agreement_count: int = 0
    error_sum: float = 0.0

    def __add__(self, other: Any) -> "Scored":
        return Scored(*(own + more for own, more in zip(self, other, strict=True)))

    @property
    def agreement(self) -> float | None:
        """Share of steps on which both are above 0, or both are not."""
        return self.agreement_count / self.step_count if self.step_count else None

    def error(self, cell: Row) -> float | None:
        """Mean absolute error, by the declared range."""
        width = cell["reward_max"] - cell["reward_min"]
        return self.error_sum / self.step_count / width if self.step_count and width else None


class Recomputed(NamedTuple):
    """One cell."""

    cell: Row
    curve: dict[int, float]
    """Mean score by valid checkpoint, ascending."""
    scored: dict[tuple[str, int], Scored]
    """By phase and checkpoint."""

    @property
    def avg_score(self) -> float | None:
        """Mean over the valid checkpoints."""
        return sum(self.curve.values()) / len(self.curve) if self.curve else None

    @property
    def auc_plus(self) -> float | None:
        """Area between the curve and its start, where the curve is above it."""
        if 0 not in self.curve or len(self.curve) < 2:
            return None
        area = 0.0
        for (before, low), (after, high) in pairwise((x, y - self.curve[0]) for x, y in self.curve.items()):
            corners: list[tuple[float, float]] = [(before, low), (after, high)]
            if low * high < 0:  # the line crosses the start
                corners.insert(1, (before + (after - before) * low / (low - high), 0.0))
            area += sum((b - a) * (max(y, 0.0) + max(z, 0.0)) / 2 for (a, y), (b, z) in pairwise(corners))
        return area

    @property
    def naba(self) -> float | None:
        """The area by the start, or by the smallest positive mean score."""
        area = self.auc_plus
        if area is None or self.curve[0] < 0:
            return None
        least: float = self.cell["smallest_positive_score"] / self.cell["evaluation_episode_count"]
        return area / max(self.curve[0], least)

    def judged(self, phase: str, first: int = 0, last: float = float("inf")) -> Scored:
        """The scored steps of a phase, from checkpoint ``first`` to before ``last``."""
        own = (found for (of, at), found in self.scored.items() if of == phase and first <= at < last)
        return sum(own, Scored())


def differences(data: Path) -> Iterator[tuple[str, str]]:
    """(what, how a mart differs from its rows), for all cells of all runs of the folder."""
    warehouse = Warehouse(data, ALL_RUNS)
    cells = list(_recomputed(data))
    yield from _of_cells(warehouse, cells)
    yield from _of_games(warehouse, cells)


def _of_cells(warehouse: Warehouse, cells: Sequence[Recomputed]) -> Iterator[tuple[str, str]]:
    curves = {row["cell_id"]: row for row in warehouse.sql("from improvement").to_dicts()}
    judges = {(row["cell_id"], row["phase"]): row for row in warehouse.sql("from judge_reliability").to_dicts()}
    for one in cells:
        name = one.cell["cell_id"]
        found = {"avg_score": one.avg_score, "auc_plus": one.auc_plus}
        yield from _compared(f"improvement of {name}", curves.get(name), found)
        for phase in dict.fromkeys(phase for phase, _ in one.scored):
            judged = one.judged(phase)
            found = {"agreement": judged.agreement, "nmae": judged.error(one.cell)}
            yield from _compared(f"judge_reliability of {name}, {phase}", judges.get((name, phase)), found)


def _of_games(warehouse: Warehouse, cells: Sequence[Recomputed]) -> Iterator[tuple[str, str]]:
    columns = ("unit", "game", "quality")
    rows = {tuple(row[name] for name in columns): row for row in warehouse.sql("from judge_coupling").to_dicts()}
    for key, pairs in _pairs(cells).items():
        found = {"spearman": _spearman(pairs)}
        yield from _compared(f"judge_coupling of {', '.join(key)}", rows.get(key), found)


def _compared(what: str, row: Row | None, found: dict[str, float | None]) -> Iterator[tuple[str, str]]:
    if row is None:
        if any(value is not None for value in found.values()):
            yield what, "the mart has no row of it"
        return
    for name, value in found.items():
        told = row[name]
        is_same = told is value if told is None or value is None else abs(told - value) <= SAME * max(1, abs(value))
        if not is_same:
            yield what, f"{name}: the mart says {told!r}, its rows say {value!r}"


def _pairs(cells: Sequence[Recomputed]) -> dict[tuple[str, str, str], list[Pair]]:
    """Judgments and gains of blocks and of cells, by (unit, game, quality)."""
    heights: dict[str, list[float]] = defaultdict(list)
    for one in cells:
        if one.cell["intervention"] == "main":
            heights[one.cell["game"]] += one.curve.values()
    pairs: dict[tuple[str, str, str], list[Pair]] = defaultdict(list)
    for one in cells:
        game = one.cell["game"]
        if one.cell["pathway"] == "none" or one.cell["intervention"] != "main":
            continue
        width = max(heights[game], default=0) - min(heights[game], default=0)
        units = [("cell", one.judged("exploration"), one.naba)]
        for (before, low), (after, high) in pairwise(one.curve.items()):
            units.append(("block", one.judged("exploration", before, after), (high - low) / width if width else None))
        for unit, judged, gain in units:
            error = judged.error(one.cell)
            for quality, judgment in (("agreement", judged.agreement), ("accuracy", None if error is None else -error)):
                if judgment is not None and gain is not None:
                    for group in (game, _ALL_GAMES):
                        pairs[unit, group, quality].append((round(judgment, _DECIMALS), round(gain, _DECIMALS)))
    return pairs


def _spearman(pairs: Sequence[Pair]) -> float | None:
    """Correlation of the ranks, equal numbers sharing theirs; None for few pairs, or where one side is constant."""
    ranks = []
    for side in zip(*pairs, strict=True):
        _, place, count = np.unique(side, return_inverse=True, return_counts=True)
        ranks.append((np.cumsum(count) - count / 2)[place])
    if len(pairs) < _LEAST_UNITS or any(np.ptp(side) == 0 for side in ranks):
        return None
    judgments, gains = (side - side.mean() for side in ranks)
    return float(judgments @ gains / np.sqrt((judgments @ judgments) * (gains @ gains)))


# --- rows ------------------------------------------------------------------------------------------------------


def _recomputed(data: Path) -> Iterator[Recomputed]:
    episodes: dict[str, list[Row]] = defaultdict(list)
    for row in _rows(data, "episodes", "stage_key", "episode_id", "episode_index", "phase", "status", "final_score"):
        episodes[row["stage_key"]].append(row)
    steps = _scored(data)
    links: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in _rows(data, "cell_stages"):
        if row["stage"] in ("explore", "evaluate"):
            links[row["run_id"], row["cell_id"]].append(row)
    for cell in _latest(data):
        curve: dict[int, float] = {}
        scored: dict[tuple[str, int], Scored] = defaultdict(Scored)
        for link in sorted(links[cell["run_id"], cell["cell_id"]], key=lambda row: row["checkpoint"]):
            is_held_out = link["stage"] == "evaluate"
            used = [
                row
                for row in episodes[link["stage_key"]]
                if not is_held_out or row["episode_index"] < link["episode_count"]
            ]
            for row in used:
                scored[row["phase"], link["checkpoint"]] += steps[link["stage_key"], row["episode_id"]]
            scores = [row["final_score"] for row in used if row["status"] == "valid"]
            if is_held_out and len(scores) == link["episode_count"]:
                curve[link["checkpoint"]] = sum(scores) / len(scores)
        yield Recomputed(cell, curve, scored)


def _latest(data: Path) -> list[Row]:
    """Each cell as the latest run asks for it."""
    asked = {row["run_id"]: (row["requested_at"], row["run_id"]) for row in _rows(data, "runs")}
    cells = sorted(_rows(data, "cells"), key=lambda row: asked[row["run_id"]])
    return list({row["cell_id"]: row for row in cells}.values())


def _scored(data: Path) -> dict[tuple[str, str], Scored]:
    """By stage and episode."""
    found: dict[tuple[str, str], Scored] = defaultdict(Scored)
    for stored in storage.read_rows(data, "steps", ["stage_key", "episode_id", "self_score", "verifier_reward"]):
        table = stored.drop_null()
        guess, reward = table["self_score"], table["verifier_reward"]
        is_same = pc.equal(pc.greater(guess, 0), pc.greater(reward, 0))
        table = table.append_column("agreement", pc.cast(is_same, pa.int64()))
        table = table.append_column("error", pc.abs(pc.subtract(guess, reward)))
        sums = table.group_by(["stage_key", "episode_id"]).aggregate(
            [("error", "count"), ("agreement", "sum"), ("error", "sum")]
        )
        for row in sums.to_pylist():
            count, agreements, error = row["error_count"], row["agreement_sum"], row["error_sum"]
            found[row["stage_key"], row["episode_id"]] += Scored(count, agreements, error)
    return found


def _rows(data: Path, table: str, *columns: str) -> Iterator[Row]:
    for stored in storage.read_rows(data, table, list(columns) or None):
        yield from stored.to_pylist()
