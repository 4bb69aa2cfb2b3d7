"""Many small Parquet files of complete stages into few, for folders that have grown.

Rows are copied into packs first. Then the index is replaced: that is the one moment when readers see the packs in place
of the small files. Those are deleted last. A kill before that moment changes nothing; one after it leaves files that
nobody reads and that the next compaction deletes. Manifests stay as they are, and so do the files of a stage that is
not complete.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from s3gym import storage
from s3gym.packs import FILE, PREFIX, Entry, Index, read_index
from s3gym.records import TABLES

GROUP_ROWS = 5_000
"""Rows of a row group, about: what is read at once for the rows of one part."""
PACK_ROWS = 1_000_000
"""Rows of a pack, at least, that is not written again to add more."""

STAGE_TABLES = tuple(table for table in TABLES if table not in (*storage.REQUEST_TABLES, *storage.LOG_TABLES))
"""Tables with a file a part."""


@dataclass
class _Change:
    """What is to become of the files of one table and game."""

    folder: Path
    kept: dict[str, tuple[Entry, ...]] = field(default_factory=dict)
    """Packs that stay as they are."""
    parts: list[str] = field(default_factory=list)
    """Parts whose rows go into new packs."""
    replaced: list[Path] = field(default_factory=list)
    """Files that nobody needs after that."""


def compact(data: Path) -> tuple[int, int]:
    """Packs what is complete; the number of Parquet files of stages before and after.

    Raises:
        StorageError: there is no data, a run is at work on it, or a file cannot be read or written.
    """
    storage.check_version(data)
    with storage.exclusive(data):
        storage.sweep(data)
        before = len(list(_files(data)))
        index = read_index(data)
        packs: dict[str, tuple[Entry, ...]] = {}
        replaced: list[Path] = []
        try:
            for change in _changes(data, index):
                packs |= change.kept
                for pack, entries in _portions(data, change):
                    packs[pack] = entries
                replaced += change.replaced
            if packs != index.packs:
                storage.write_text(data / FILE, Index(packs).text())
        except storage.StorageError:  # such as a full disk, which needs the room
            for pack in packs.keys() - index.packs.keys():
                (data / "tables" / pack).unlink(missing_ok=True)
            raise
        known = {data / "tables" / pack for pack in packs}
        for path in [*replaced, *(path for path in _files(data) if path.name.startswith(PREFIX))]:
            if path not in known:
                path.unlink(missing_ok=True)
        return before, len(list(_files(data)))


def loose_files(data: Path) -> int:
    """How many small files of complete stages a compaction would pack."""
    return sum(len(change.replaced) for change in _changes(data, read_index(data)))


def _files(data: Path) -> Iterator[Path]:
    for table in STAGE_TABLES:
        yield from (data / "tables" / table).glob("*/[!.]*.parquet")


def _complete(data: Path) -> set[str]:
    """Parts whose rows are there and will not be made again."""
    manifests = ((part, storage.read_manifest(data, part)) for part in storage.parts_of(data, ""))
    return {part for part, manifest in manifests if manifest is not None and manifest["status"] == storage.COMPLETE}


def _changes(data: Path, index: Index) -> Iterator[_Change]:
    """What there is to do, by table and game; where nothing is, all packs are kept."""
    done, complete = storage.done_names(data), _complete(data)
    for table in STAGE_TABLES:
        for folder in sorted((data / "tables" / table).glob("[!.]*/")):
            packs = {path: entries for path, entries in index.of(table).items() if path.split("/")[1] == folder.name}
            yield _change(folder, packs, done, complete)


def _change(folder: Path, packs: Mapping[str, tuple[Entry, ...]], done: set[str], complete: set[str]) -> _Change:
    """Packs parts that are ``complete``, and drops rows whose part is not ``done`` at all."""
    single = sorted(path for path in folder.glob("[!.]*.parquet") if not path.name.startswith(PREFIX))
    packed = {entry.part for entries in packs.values() for entry in entries}
    change = _Change(folder, replaced=[path for path in single if path.stem in packed])  # a kill left these
    loose = [path for path in single if path.stem in complete and path.stem not in packed]
    small = []
    for path, entries in packs.items():
        is_whole = all(entry.part in done for entry in entries)
        if is_whole and sum(entry.rows for entry in entries) >= PACK_ROWS:
            change.kept[path] = entries
        else:
            small.append((path, entries, is_whole))
    if len(loose) + len(small) < 2 and all(is_whole for _, _, is_whole in small):  # nothing to be won
        change.kept |= {path: entries for path, entries, _ in small}
        return change
    change.replaced += [*loose, *(folder / path.rpartition("/")[2] for path, _, _ in small)]
    moved = [entry.part for _, entries, _ in small for entry in entries if entry.part in done]
    change.parts = sorted([*(path.stem for path in loose), *(part for part in moved if part is not None)])
    return change


def _portions(data: Path, change: _Change) -> Iterator[tuple[str, tuple[Entry, ...]]]:
    """Writes the packs of a change; each with what is in it, by its path below ``tables``."""
    parts = iter(change.parts)
    while written := _written(data, change, parts):
        yield written


def _written(data: Path, change: _Change, parts: Iterator[str]) -> tuple[str, tuple[Entry, ...]] | None:
    """One pack of the next parts; None when there are none left."""
    folder, table, game = change.folder, change.folder.parent.name, change.folder.name
    temporary = folder / f".{PREFIX}{os.getpid()}.tmp"
    entries: list[Entry] = []
    waiting: list[pa.Table] = []
    schema, waiting_rows, rows = storage.schema(table), 0, 0
    try:
        with storage.explained(temporary), pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
            for part in parts:
                content = storage.read_part_table(data, table, game, part)
                waiting.append(content)
                entries.append(Entry(part, len(content)))
                waiting_rows += len(content)
                rows += len(content)
                if waiting_rows >= GROUP_ROWS:
                    writer.write_table(pa.concat_tables(waiting))
                    waiting, waiting_rows = [], 0
                if rows >= PACK_ROWS:
                    break
            if waiting:
                writer.write_table(pa.concat_tables(waiting))
        if not entries:
            return None
        with storage.explained(temporary):
            name = f"{PREFIX}{_settled(temporary)}.parquet"
            os.replace(temporary, folder / name)
    finally:
        temporary.unlink(missing_ok=True)
    return f"{table}/{game}/{name}", tuple(entries)


def _settled(path: Path) -> str:
    """Hash of a file, which is on the disk for sure: what it was made of is deleted."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]
