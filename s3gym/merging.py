"""Two users' data folders made one, without counting anything twice.

A part is known by its name, which holds the hash of all that it was made from. What both folders have is kept once.
Where their rows differ, as answers of a hosted model may, those here are kept, and nothing that rests on the others
comes along: a run makes it anew. Rows are copied before the manifest that makes them count, so a merge that was killed
is simply done again. The other folder is only read.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from s3gym import storage
from s3gym.journal import FILE, Journal

MEASURED = ("latency_seconds", "seconds", "peak_memory_bytes")
"""Columns of what something took: equal work does not have them equal."""
_NAME = re.compile(r"(.+)-(\d{5})-(\d{5})")


@dataclass
class Merged:
    """What became of the other folder's parts and requests."""

    added: int = 0
    same: int = 0
    differing: list[str] = field(default_factory=list)
    """Parts that both have, with other rows; those here were kept."""
    resting: list[str] = field(default_factory=list)
    """Parts that were left out because they rest on one that differs."""
    overlapping: list[str] = field(default_factory=list)
    """Parts that were left out because some of their episodes are here in another part."""
    runs: int = 0
    calls: int = 0


def merge(data: Path, other: Path) -> Merged:
    """Adds what ``other`` has to ``data``.

    Raises:
        StorageError: one of them is no data folder of this version, is being written to, or is the other.
    """
    storage.check_version(other)
    if data.exists() and data.resolve() == other.resolve():
        raise storage.StorageError(f"{other} is the data folder itself; name another user's folder")
    storage.open_folder(data)
    with ExitStack() as held:
        held.enter_context(storage.exclusive(data))
        if os.access(other, os.W_OK):  # else nobody writes there
            held.enter_context(storage.exclusive(other))
        storage.sweep(data)
        merged = Merged()
        if (other / FILE).exists():  # first: what is made anew below is answered by it
            theirs = held.enter_context(Journal(other / FILE, is_read_only=True))
            merged.calls = held.enter_context(Journal(data / FILE)).unite(theirs)
        _Parts(data, other, merged).take()
        merged.runs = _take_requests(data, other)
    return merged


class _Parts:
    """The other folder's parts, taken over in an order in which each comes after those that it rests on."""

    def __init__(self, data: Path, other: Path, merged: Merged) -> None:
        self._data, self._other, self._merged = data, other, merged
        self._theirs = dict(_manifests(other))
        self._ours: dict[str, list[str]] = {}
        for part in storage.parts_of(data, ""):
            self._ours.setdefault(_stem(part), []).append(part)
        self._left_out: set[str] = set()
        """Keys of stages whose rows here are not those there."""

    def take(self) -> None:
        """Takes all over."""
        makers: dict[str, list[str]] = {}
        for part, manifest in self._theirs.items():
            makers.setdefault(manifest.get("key", part), []).append(part)
        done: set[str] = set()
        for root in self._theirs:
            waiting = [root]  # a stack: chains of blocks may be longer than Python's own
            while waiting:
                part = waiting[-1]
                sources = [maker for key in self._inputs(part) for maker in makers.get(key, [])]
                open_ones = [source for source in sources if source not in done]
                if part in done or not open_ones:
                    waiting.pop()
                    if part not in done:
                        done.add(part)
                        self._decide(part, self._theirs[part])
                else:
                    waiting += open_ones

    def _inputs(self, part: str) -> list[str]:
        inputs: list[str] = self._theirs[part].get("inputs", [])
        return inputs

    def _decide(self, part: str, manifest: Mapping[str, Any]) -> None:
        merged, key = self._merged, manifest.get("key", part)
        if self._left_out & set(self._inputs(part)):
            merged.resting.append(part)
            self._left_out.add(key)
            return
        is_complete = manifest["status"] == storage.COMPLETE
        if not is_complete and part in self._ours.get(_stem(part), []):
            merged.same += 1  # or better
            return
        mine = [own for own in self._ours.get(_stem(part), []) if _overlap(own, part) and self._is_complete(own)]
        if not mine:
            self._copy(part, manifest)
            merged.added += 1
        elif any(self._differ(own, part, manifest) for own in mine):
            merged.differing.append(part)
            self._left_out.add(key)
        elif mine == [part]:
            merged.same += 1
        elif all(_covers(part, own) for own in mine) and is_complete:  # it has more episodes
            for own in mine:
                storage.forget_part(self._data, own)
            self._copy(part, manifest)
            merged.added += 1
        elif any(_covers(own, part) for own in mine):
            merged.same += 1
        else:
            merged.overlapping.append(part)

    def _is_complete(self, part: str) -> bool:
        manifest = storage.read_manifest(self._data, part)
        return manifest is not None and manifest["status"] == storage.COMPLETE

    def _differ(self, own: str, part: str, manifest: Mapping[str, Any]) -> bool:
        """Whether rows that both parts have are not the same."""
        for table in manifest["rows"]:
            here = storage.read_part_table(self._data, table, manifest["game"], own)
            there = storage.read_part_table(self._other, table, manifest["game"], part)
            if own != part:  # only some episodes are in both
                both = set(here["episode_id"].to_pylist()) & set(there["episode_id"].to_pylist())
                here, there = (
                    rows.filter(pc.is_in(rows["episode_id"], pa.array(sorted(both), pa.string())))
                    for rows in (here, there)
                )
            if _sorted(here) != _sorted(there):
                return True
        return False

    def _copy(self, part: str, manifest: Mapping[str, Any]) -> None:
        _copy_weights(self._other / "weights" / part, self._data / "weights" / part)
        tables = {
            table: storage.read_part_table(self._other, table, manifest["game"], part) for table in manifest["rows"]
        }
        storage.write_part(self._data, part, manifest["game"], tables, manifest)


def _manifests(data: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for part in storage.parts_of(data, ""):
        manifest = storage.read_manifest(data, part)
        if manifest is not None:
            yield part, manifest


def _take_requests(data: Path, other: Path) -> int:
    """Copies the requests that are not here, each runs file last, and the log; how many requests that were."""
    known = storage.done_names(data)
    new = [rows.path for rows in storage.visible(other, "runs") if rows.path.stem not in known]
    for path in new:
        for table in ("cells", "cell_stages", "runs"):
            _copy_file(path.parent.parent / table / path.name, data / "tables" / table / path.name)
    for table in storage.LOG_TABLES:
        for path in storage.visible_files(other, table):
            if not (data / "tables" / table / path.name).exists():
                _copy_file(path, data / "tables" / table / path.name)
    return len(new)


def _copy_file(source: Path, target: Path) -> None:
    with storage.reading(source):
        content = source.read_bytes()
    storage.write_bytes(target, content)


def _copy_weights(source: Path, target: Path) -> None:
    """The weights of an update, where it made some, and the mark that they were let go."""
    if storage.removal_mark(source).exists():
        storage.write_text(storage.removal_mark(target), "")
    if source.is_dir() and not target.exists():
        partial = target.with_name(f"{target.name}.partial")
        with storage.explained(target):
            shutil.rmtree(partial, ignore_errors=True)
            shutil.copytree(source, partial)
            partial.rename(target)


def _stem(part: str) -> str:
    found = _NAME.fullmatch(part)
    return found[1] if found else part


def _span(part: str) -> tuple[int, int]:
    found = _NAME.fullmatch(part)
    return (int(found[2]), int(found[3])) if found else (0, 1)


def _overlap(one: str, other: str) -> bool:
    return _span(one)[0] < _span(other)[1] and _span(other)[0] < _span(one)[1]


def _covers(one: str, other: str) -> bool:
    return _span(one)[0] <= _span(other)[0] and _span(other)[1] <= _span(one)[1]


def _sorted(table: pa.Table) -> list[str]:
    """Rows to compare, whatever their order."""
    kept = table.select([name for name in table.column_names if name not in MEASURED])
    return sorted(json.dumps(row, default=str) for row in kept.to_pylist())
