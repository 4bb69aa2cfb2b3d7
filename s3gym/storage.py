"""The data folder: one Arrow schema a table, atomic writes, and the manifests that say what is done.

The only writer of Parquet. A *part* is a run of episodes of one stage; its rows are written first, its
manifest last, each under a temporary name and then renamed, so that the manifest decides: rows without one are
not there for any reader. Nothing here knows games, models or SQL.

    tables/<table>/<game>/<part>.parquet      rows of a stage
    tables/<table>/<game>/packed-*.parquet    rows of many parts, which packs.json tells apart; see packs
    tables/<table>/<run_id>.parquet           runs, cells, cell_stages; the runs file is written last
    tables/refreshes/<refresh_id>.parquet     what a refresh did; written when it ends
    manifests/<part>.json                     key, counts, tokens, cost, times, versions, status
    derived/<table>/<run_id>.<key>.parquet    made of the rows that the key stands for; can be made again
"""

import errno
import fcntl
import json
import os
import shutil
import types
import typing
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import fields
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from s3gym import packs
from s3gym.derived import DERIVED
from s3gym.errors import Explained
from s3gym.locks import owner_in, shared_file_system, this_process
from s3gym.records import TABLES, Cell, CellStage, Refresh, Run

SCHEMA_VERSION = 4
"""Version of the folder's layout and of every table's columns. ``migration`` says what each brought."""

OLDEST_VERSION = 2
"""The first that ``migration`` brings up to date."""

KEY_VERSION = 3
"""Stands in every stage's key for how rows are made. Unlike the schema it only rises when a stage that was made before
would be made differently now, so that what is cached outlives a migration."""

MARKER = "s3gym.json"
"""File that makes a folder a data folder and holds its schema version."""

COMPLETE = "complete"
"""Status of a part that is not made again."""

REQUEST_TABLES = ("runs", "cells", "cell_stages")
LOG_TABLES = ("refreshes",)
"""What happened when: a file an event, each whole by itself."""
_OWNER_BYTES = 4096
"""Of a lock file, at most."""
_ARROW = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
_ARROW[datetime] = pa.timestamp("us", tz="UTC")


class StorageError(Explained):
    """The data folder cannot be used as asked; the message says which path and what to do."""


class FolderInUse(StorageError):
    """Another process holds the folder; it will be free again."""


class Rows(NamedTuple):
    """A file of a table, and what in it counts."""

    path: Path
    names: tuple[str, ...]
    """Of the parts, the run or the refresh whose rows are in it."""
    hidden: tuple[packs.Span, ...] = ()
    """Rows that do not count: their part has no manifest, or was made again."""


def schema(table: str) -> pa.Schema:
    """Arrow schema of ``table``, from the annotations of its record class."""
    record = TABLES[table] if table in TABLES else DERIVED[table]
    hints = typing.get_type_hints(record)
    return pa.schema([_field(f.name, hints[f.name]) for f in fields(record)])


def _field(name: str, hint: Any) -> pa.Field:
    if typing.get_origin(hint) is list:
        return pa.field(name, pa.list_(_ARROW[typing.get_args(hint)[0]]), nullable=False)
    if isinstance(hint, types.UnionType):
        return pa.field(name, _ARROW[typing.get_args(hint)[0]], nullable=True)
    return pa.field(name, _ARROW[hint], nullable=False)


def to_arrow(table: str, rows: Sequence[Any] | pa.Table) -> pa.Table:
    """Rows as an Arrow table; a wrong type, a null in a required column or a number not finite is refused by name.

    What is an Arrow table already must have the schema, and passes.
    """
    if isinstance(rows, pa.Table):
        if not rows.schema.equals(schema(table)):
            raise StorageError(f"table {table}: an Arrow table of another schema")
        return rows
    columns = []
    for field in schema(table):
        values = [getattr(row, field.name) for row in rows]
        try:
            array = pa.array(values, field.type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError) as error:
            raise StorageError(f"table {table}, column {field.name}: {error}") from None
        # Arrow would cut a fraction off without a word
        if pa.types.is_integer(field.type) and any(isinstance(v, float) for v in values):
            raise StorageError(f"table {table}, column {field.name}: a float in a column of integers")
        if array.null_count and not field.nullable:
            raise StorageError(f"table {table}, column {field.name}: null in a column that must have a value")
        if pa.types.is_floating(field.type) and not all(v is None or isfinite(v) for v in values):
            raise StorageError(
                f"table {table}, column {field.name}: not a finite number; write null for a missing value"
            )
        columns.append(array)
    return pa.Table.from_arrays(columns, schema=schema(table))


def open_folder(data: Path) -> None:
    """Makes the folder if it is missing.

    Raises:
        StorageError: it cannot be used, made or written to.
    """
    check_usable(data)
    marker = data / MARKER
    if not marker.exists():
        write_text(marker, json.dumps({"schema_version": SCHEMA_VERSION}))
    elif not os.access(data, os.W_OK):
        raise StorageError(f"data folder {data} is read-only; choose another with --data")


def check_usable(data: Path) -> None:
    """Raises StorageError unless ``data`` is a data folder of ours, or one can be made there; changes nothing."""
    with explained(data):
        if set("*?[") & set(str(data.absolute())):
            raise StorageError(f"{data.absolute()} holds one of * ? [, a pattern to SQL; choose another name")
        above = next(parent for parent in data.absolute().parents if parent.exists())
        if not above.is_dir():
            raise StorageError(f"{above} is a file where a folder is needed; choose another with --data")
        if (data / MARKER).exists():
            check_version(data)
        elif data.exists() and any(data.iterdir()):
            raise StorageError(f"{data} is not empty and not an s3gym data folder; choose another with --data")


def sweep(data: Path) -> None:
    """Takes away what killed writers left: temporary files, and weights of updates that were not finished.

    The caller holds the folder.
    """
    for path in data.rglob(".*.tmp"):
        path.unlink(missing_ok=True)
    for folder in unfinished_weights(data):
        shutil.rmtree(folder, ignore_errors=True)


def unfinished_weights(data: Path) -> list[Path]:
    """Folders of weights that no manifest speaks of, or that were not written to their end."""
    return [folder for folder in (data / "weights").glob("build_experience-*/") if not _is_done(data, folder.name)]


def _is_done(data: Path, part: str) -> bool:
    return manifest_path(data, part).exists()


def version_of(data: Path) -> int:
    """Schema version of a data folder; raises StorageError where there is none to be read."""
    marker = data / MARKER
    if not marker.exists():
        raise StorageError(f"no s3gym data in {data}; run `s3gym run` first or name the folder with --data")
    try:
        found: int = json.loads(marker.read_text())["schema_version"]
        if type(found) is not int:
            raise TypeError
    except (ValueError, KeyError, TypeError, IsADirectoryError):
        raise StorageError(f"{marker} is not readable as JSON with a schema_version; restore it from a copy") from None
    return found


def check_version(data: Path) -> None:
    """Raises StorageError unless ``data`` is a data folder of this schema version."""
    found = version_of(data)
    if found == SCHEMA_VERSION:
        return
    if found > SCHEMA_VERSION:
        remedy = "a newer s3gym wrote it: update yours, or choose another folder with --data"
    elif found >= OLDEST_VERSION:
        remedy = "`s3gym data migrate` brings it up to date"
    else:
        remedy = "use the s3gym that wrote it, or another folder with --data"
    told = f"data folder {data} has schema version {found}, this s3gym reads {SCHEMA_VERSION}"
    raise StorageError(f"{told}; {remedy}")


def write_text(path: Path, text: str) -> None:
    """Writes a small file atomically."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file atomically."""
    with _replacing(path) as temporary:
        temporary.write_bytes(content)


def write_rows(path: Path, table: str, rows: Sequence[Any] | pa.Table) -> None:
    """Writes one Parquet file atomically: a killed write leaves nothing under ``path``."""
    content = to_arrow(table, rows)
    with _replacing(path) as temporary:
        pq.write_table(content, temporary, compression="zstd")


def write_part(
    data: Path, part: str, game: str, tables: Mapping[str, Sequence[Any] | pa.Table], manifest: Mapping[str, Any]
) -> dict[str, Any]:
    """Writes the rows of one part, then its manifest, which it returns. An earlier manifest is taken away first."""
    path = manifest_path(data, part)
    with explained(path):
        path.unlink(missing_ok=True)
    for table, rows in tables.items():
        write_rows(_rows_path(data, table, game, part), table, rows)
    index = packs.read_index(data)
    if any((table, part) in index.places for table in tables):  # its rows there are those of before
        write_text(data / packs.FILE, index.without(part).text())
    written = {
        **manifest,
        "part": part,
        "game": game,
        "rows": {table: len(rows) for table, rows in tables.items()},
    }
    write_text(path, json.dumps(written, indent=1, sort_keys=True))
    return written


def forget_part(data: Path, part: str) -> None:
    """Takes a part away: its manifest first, then the rows that have a file of their own."""
    manifest = read_manifest(data, part)
    manifest_path(data, part).unlink(missing_ok=True)
    if manifest is not None:
        for table in manifest["rows"]:
            _rows_path(data, table, manifest["game"], part).unlink(missing_ok=True)


def manifest_path(data: Path, part: str) -> Path:
    """Where the manifest of a part is."""
    return data / "manifests" / f"{part}.json"


def _rows_path(data: Path, table: str, game: str, part: str) -> Path:
    return data / "tables" / table / game / f"{part}.parquet"


def removal_mark(folder: Path) -> Path:
    """The file that says that trained weights were let go, and are to be made again before they are used."""
    return folder.with_name(f"{folder.name}.removed")


def read_manifest(data: Path, part: str) -> dict[str, Any] | None:
    """The manifest of a part, or None when the part is not done: no manifest, or one whose files are gone."""
    try:
        manifest: dict[str, Any] = json.loads(manifest_path(data, part).read_text())
        files = [(table, _rows_path(data, table, manifest["game"], part)) for table in manifest["rows"]]
        manifest["status"]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, KeyError, TypeError, IsADirectoryError):
        raise StorageError(
            f"{manifest_path(data, part)} is damaged; delete it and run again, the stage is then made anew"
        ) from None
    is_there = all(file.exists() or _is_packed(data, table, part) for table, file in files)
    return manifest if is_there else None


def _is_packed(data: Path, table: str, part: str) -> bool:
    place = packs.read_index(data).places.get((table, part))
    return place is not None and (data / "tables" / place[0]).exists()


def parts_of(data: Path, stem: str) -> list[str]:
    """Names of the parts whose name starts with ``stem``, sorted."""
    return sorted(path.stem for path in (data / "manifests").glob(f"{stem}*.json"))


def read_part(data: Path, table: str, game: str, part: str) -> list[dict[str, Any]]:
    """Rows of one part as dictionaries."""
    return typing.cast(list[dict[str, Any]], read_part_table(data, table, game, part).to_pylist())


def read_part_table(data: Path, table: str, game: str, part: str) -> pa.Table:
    """Rows of one part."""
    place = packs.read_index(data).places.get((table, part))
    path = data / "tables" / place[0] if place else _rows_path(data, table, game, part)
    with reading(path):
        return packs.read_span(path, place[1], schema(table)) if place else pq.read_table(path, schema=schema(table))


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turns what goes wrong with a Parquet file into a sentence that says what to do."""
    try:
        yield
    except (pa.ArrowInvalid, OSError) as error:
        raise StorageError(f"{path} cannot be read ({error}); delete it and run again") from None


def write_request(data: Path, run: Run, cells: Sequence[Cell], links: Sequence[CellStage]) -> None:
    """Records what a run asked for; the ``runs`` file comes last and makes the others visible."""
    for table, rows in (("cells", cells), ("cell_stages", links), ("runs", [run])):
        write_rows(data / "tables" / table / f"{run.run_id}.parquet", table, rows)


def write_refresh(data: Path, refresh: Refresh) -> None:
    """Records what a refresh did, in place of what the same one said before."""
    write_rows(data / "tables" / "refreshes" / f"{refresh.refresh_id}.parquet", "refreshes", [refresh])


def derived_file(data: Path, table: str, run_id: str, key: str) -> Path:
    """Where a derived table of a run is, if it has been made of what ``key`` stands for."""
    return data / "derived" / table / f"{run_id}.{key}.parquet"


def write_derived(data: Path, table: str, run_id: str, key: str, rows: Sequence[Any]) -> None:
    """Writes a derived table of a run, then takes away those that were made of other rows."""
    path = derived_file(data, table, run_id, key)
    write_rows(path, table, rows)
    for old in path.parent.iterdir():
        if old != path and not old.name.startswith(".") and old.name.rsplit(".", 2)[0] == run_id:
            old.unlink(missing_ok=True)


def visible_files(data: Path, table: str) -> list[Path]:
    """Files of ``table`` that hold rows that count; see ``visible``."""
    return [rows.path for rows in visible(data, table)]


def visible_parts(data: Path, table: str) -> list[tuple[str, str]]:
    """(game, part) of every part with rows of ``table`` that count. Sorted."""
    return sorted((rows.path.parent.name, part) for rows in visible(data, table) for part in rows.names)


def visible(data: Path, table: str, done: Collection[str] | None = None) -> list[Rows]:
    """What counts in ``table``: rows of parts with a manifest, or of requests with a ``runs`` file. Sorted by path.

    Args:
        data: the data folder.
        table: its name.
        done: as ``done_names`` gave it, where several tables are to be seen as of one time.
    """
    folder = data / "tables" / table
    if table in LOG_TABLES:
        return [Rows(path, (path.stem,)) for path in sorted(folder.glob("[!.]*.parquet"))]
    done = done_names(data) if done is None else done
    if table in REQUEST_TABLES:
        return [Rows(path, (path.stem,)) for path in sorted(folder.glob("[!.]*.parquet")) if path.stem in done]
    single = list(folder.glob("*/[!.]*.parquet"))  # before the index is read: what it knows may be taken away after
    index = packs.read_index(data)
    found = [
        Rows(path, (path.stem,)) for path in single if path.stem in done and (table, path.stem) not in index.places
    ]
    for pack, entries in index.of(table).items():
        hidden = [
            span
            for entry, span in zip(entries, packs.spans(entries), strict=True)
            if entry.rows and entry.part not in done
        ]
        if names := tuple(entry.part for entry in entries if entry.part is not None and entry.part in done):
            found.append(Rows(data / "tables" / pack, names, tuple(hidden)))
    return sorted(found)


def done_names(data: Path) -> set[str]:
    """Names of the parts that have a manifest, and of the runs."""
    runs = (data / "tables" / "runs").glob("[!.]*.parquet")
    return {*parts_of(data, ""), *(path.stem for path in runs)}


def read_rows(data: Path, table: str, columns: list[str] | None = None) -> Iterator[pa.Table]:
    """The rows of ``table`` that count, file by file, of all columns or of some."""
    for rows in visible(data, table):
        with reading(rows.path):
            content = pq.read_table(rows.path, columns=columns, partitioning=None)
        kept, first = [], 0
        for start, stop in (*rows.hidden, (len(content), 0)):
            kept.append(content.slice(first, start - first))
            first = stop
        yield pa.concat_tables(kept)


@contextmanager
def exclusive(data: Path, role: str = "run") -> Iterator[None]:
    """Holds the folder for one process of a ``role``; the lock dies with its owner, so none is ever stale.

    A ``run`` writes rows; a ``schedule`` starts runs when their time comes.

    Raises:
        FolderInUse: another process holds it; the message says which.
    """
    path = data / f"{role}.lock"
    with ExitStack() as held:
        with explained(path):
            lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            held.callback(os.close, lock)
            is_held = False
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                is_held = True
            owner = owner_in(os.pread(lock, _OWNER_BYTES, 0).decode(errors="replace"))
            if is_held:
                who = f"(process {owner.pid}) is writing to {data}: {owner}" if owner else f"is writing to {data}"
                raise FolderInUse(f"another {role} {who}; wait for it, or choose another with --data")
            # left behind by a crash, or held where we cannot see it
            if owner is not None and not owner.is_here and (kind := shared_file_system(data)):
                raise FolderInUse(
                    f"another {role} (process {owner.pid}) may be writing to {data}: {owner}. On {kind} its lock may "
                    f"not be seen from here; if it has ended, delete {path}"
                )
            _sign(lock, this_process().text)
            held.callback(_sign, lock, "")
        yield  # what goes wrong meanwhile is not the lock's


def _sign(lock: int, text: str) -> None:
    """Says who holds a lock, which is for others to read: on a full disk the lock holds without it."""
    with suppress(OSError):
        os.ftruncate(lock, 0)
        os.pwrite(lock, text.encode(), 0)


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A temporary name beside ``path``, which takes its place when all went well."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield temporary
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turns what the operating system says into a sentence that says what to do."""
    try:
        yield
    except OSError as error:
        remedy = {
            errno.ENOSPC: "free some disk space and run again; nothing written before is lost",
            errno.EDQUOT: "your disk quota is used up; free some space and run again; nothing written before is lost",
            errno.EROFS: "the folder is read-only; choose another with --data",
            errno.EACCES: "you may not write there; choose another folder with --data",
            errno.ENOTDIR: "a file stands where a folder is needed; choose another folder with --data",
            errno.ENOLCK: "this file system has no locks; choose a folder on another with --data",
            errno.EOPNOTSUPP: "this file system has no locks; choose a folder on another with --data",
        }.get(error.errno or 0, "check the path and run again")
        raise StorageError(f"cannot write {path}: {error.strerror or error}; {remedy}") from error
