"""Packs: the rows of many parts in one file, and the index that says whose they are.

    tables/<table>/<game>/packed-<hash>.parquet   rows of parts, one part after the other
    packs.json                                    by pack: its parts in order, each with its rows

What the index says of a part holds, whatever file of its own the part still has. Rows of a part that has been made
again since are nobody's: their part is null. Here packs are read; ``storage`` and ``compaction`` write them.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from s3gym.errors import Explained

FILE = "packs.json"
"""Name of the index in a data folder."""
PREFIX = "packed-"
"""What names of packs begin with, and names of parts never do."""
_GROUPS_KEPT = 8
"""Row groups kept in memory: parts are mostly read in order."""

Span = tuple[int, int]
"""First row, and the one after the last."""


class DamagedIndex(Explained):
    """The index cannot be read."""


class Entry(NamedTuple):
    """A part in a pack."""

    part: str | None
    """None where its rows are nobody's any more."""
    rows: int


@dataclass(frozen=True)
class Index:
    """Which parts are in which packs."""

    packs: Mapping[str, tuple[Entry, ...]]
    """By path below ``tables``: <table>/<game>/<pack>.parquet."""
    places: Mapping[tuple[str, str], tuple[str, Span]] = field(default_factory=dict)
    """By table and part: the pack, and the rows in it."""

    def of(self, table: str) -> dict[str, tuple[Entry, ...]]:
        """The packs of a table."""
        return {path: entries for path, entries in self.packs.items() if path.startswith(f"{table}/")}

    def without(self, part: str) -> "Index":
        """The same when the rows of ``part`` are nobody's."""
        return Index(
            {
                path: tuple(Entry(None, entry.rows) if entry.part == part else entry for entry in entries)
                for path, entries in self.packs.items()
            }
        )

    def text(self) -> str:
        """For the file."""
        return json.dumps({path: list(map(list, entries)) for path, entries in sorted(self.packs.items())}, indent=0)


def read_index(data: Path) -> Index:
    """The index of a data folder; empty where nothing was ever packed.

    Raises:
        DamagedIndex: it is not what was written.
    """
    path = data / FILE
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return Index(MappingProxyType({}))
    return _parsed(path, found.st_mtime_ns, found.st_size, found.st_ino)


def spans(entries: tuple[Entry, ...]) -> list[Span]:
    """The rows of each entry, in order."""
    ends = list(accumulate(entry.rows for entry in entries))
    return [(end - entry.rows, end) for entry, end in zip(entries, ends, strict=True)]


def read_span(pack: Path, span: Span, schema: pa.Schema) -> pa.Table:
    """So many rows of a pack, without reading the others' row groups."""
    modified = pack.stat().st_mtime_ns
    pieces = []
    for number, (first, last) in enumerate(_groups(pack, modified)):
        start, stop = max(first, span[0]), min(last, span[1])
        if start < stop:
            pieces.append(_group(pack, modified, number).slice(start - first, stop - start))
    return pa.concat_tables(pieces).cast(schema) if pieces else schema.empty_table()


@lru_cache(maxsize=4)
def _parsed(path: Path, modified: int, size: int, inode: int) -> Index:
    """Read anew when the file has changed."""
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        packs = {pack: tuple(Entry(part, int(rows)) for part, rows in entries) for pack, entries in said.items()}
    except (ValueError, TypeError, AttributeError):
        raise DamagedIndex(f"{path} is damaged; restore it from a copy: it says which rows belong to what") from None
    places = {
        (pack.partition("/")[0], entry.part): (pack, span)
        for pack, entries in packs.items()
        for entry, span in zip(entries, spans(entries), strict=True)
        if entry.part is not None
    }
    return Index(packs, places)


@lru_cache(maxsize=64)
def _groups(pack: Path, modified: int) -> list[Span]:
    about = pq.read_metadata(pack)
    counts = [about.row_group(number).num_rows for number in range(about.num_row_groups)]
    return [(end - count, end) for count, end in zip(counts, accumulate(counts), strict=True)]


@lru_cache(maxsize=_GROUPS_KEPT)
def _group(pack: Path, modified: int, number: int) -> pa.Table:
    return pq.ParquetFile(pack).read_row_group(number)
