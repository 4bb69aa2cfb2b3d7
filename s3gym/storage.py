"""The data folder: one Arrow schema a table, atomic writes, and the manifests that say what is done.

The only writer of Parquet. A *part* is a run of episodes of one stage; its rows are written first, its
manifest last, each under a temporary name and then renamed, so that the manifest decides: rows without one are
not there for any reader. Nothing here knows games, models or SQL.

    tables/<table>/<game>/<part>.parquet      rows of a stage
    tables/<table>/<run_id>.parquet           runs, cells, cell_stages; the runs file is written last
    manifests/<part>.json                     key, counts, tokens, cost, times, versions, status
    derived/<table>/<run_id>.<key>.parquet    made of the rows that the key stands for; can be made again
"""

import errno
import fcntl
import json
import os
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from s3gym.derived import DERIVED
from s3gym.errors import Explained
from s3gym.records import TABLES, Cell, CellStage, Run

SCHEMA_VERSION = 3
"""Version of the folder's layout and of every table's columns."""

MARKER = "s3gym.json"
"""File that makes a folder a data folder and holds its schema version."""

REQUEST_TABLES = ("runs", "cells", "cell_stages")
_ARROW = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
_ARROW[datetime] = pa.timestamp("us", tz="UTC")


class StorageError(Explained):
    """The data folder cannot be used as asked; the message says which path and what to do."""


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


def to_arrow(table: str, rows: Sequence[Any]) -> pa.Table:
    """Rows as an Arrow table; a wrong type, a null in a required column or a number not finite is refused by name."""
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
    with _explained(data):
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
    """Takes away what killed writes left under temporary names; the caller holds the folder."""
    for path in data.rglob(".*.tmp"):
        path.unlink(missing_ok=True)


def check_version(data: Path) -> None:
    """Raises StorageError unless ``data`` is a data folder of this schema version."""
    marker = data / MARKER
    if not marker.exists():
        raise StorageError(f"no s3gym data in {data}; run `s3gym run` first or name the folder with --data")
    try:
        found = json.loads(marker.read_text())["schema_version"]
        if type(found) is not int:
            raise TypeError
    except (ValueError, KeyError, TypeError, IsADirectoryError):
        raise StorageError(f"{marker} is not readable as JSON with a schema_version; restore it from a copy") from None
    if found != SCHEMA_VERSION:
        raise StorageError(
            f"data folder {data} has schema version {found}, this s3gym reads {SCHEMA_VERSION}; "
            "use the s3gym that wrote it, or another folder with --data"
        )


def write_text(path: Path, text: str) -> None:
    """Writes a small file atomically."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file atomically."""
    with _replacing(path) as temporary:
        temporary.write_bytes(content)


def write_rows(path: Path, table: str, rows: Sequence[Any]) -> None:
    """Writes one Parquet file atomically: a killed write leaves nothing under ``path``."""
    content = to_arrow(table, rows)
    with _replacing(path) as temporary:
        pq.write_table(content, temporary, compression="zstd")


def write_part(
    data: Path, part: str, game: str, tables: Mapping[str, Sequence[Any]], manifest: Mapping[str, Any]
) -> dict[str, Any]:
    """Writes the rows of one part, then its manifest, which it returns. An earlier manifest is taken away first."""
    path = manifest_path(data, part)
    with _explained(path):
        path.unlink(missing_ok=True)
    for table, rows in tables.items():
        write_rows(_rows_path(data, table, game, part), table, rows)
    written = {
        **manifest,
        "part": part,
        "game": game,
        "rows": {table: len(rows) for table, rows in tables.items()},
    }
    write_text(path, json.dumps(written, indent=1, sort_keys=True))
    return written


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
        files = [_rows_path(data, table, manifest["game"], part) for table in manifest["rows"]]
        manifest["status"]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, KeyError, TypeError, IsADirectoryError):
        raise StorageError(
            f"{manifest_path(data, part)} is damaged; delete it and run again, the stage is then made anew"
        ) from None
    return manifest if all(file.exists() for file in files) else None


def parts_of(data: Path, stem: str) -> list[str]:
    """Names of the parts whose name starts with ``stem``, sorted."""
    return sorted(path.stem for path in (data / "manifests").glob(f"{stem}*.json"))


def read_part(data: Path, table: str, game: str, part: str) -> list[dict[str, Any]]:
    """Rows of one part as dictionaries."""
    path = _rows_path(data, table, game, part)
    try:
        return typing.cast(list[dict[str, Any]], pq.read_table(path, schema=schema(table)).to_pylist())
    except (pa.ArrowInvalid, OSError) as error:
        raise StorageError(f"{path} cannot be read ({error}); delete it and run again") from None


def write_request(data: Path, run: Run, cells: Sequence[Cell], links: Sequence[CellStage]) -> None:
    """Records what a run asked for; the ``runs`` file comes last and makes the others visible."""
    for table, rows in (("cells", cells), ("cell_stages", links), ("runs", [run])):
        write_rows(data / "tables" / table / f"{run.run_id}.parquet", table, rows)


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
    """Files of ``table`` that count: those of parts with a manifest, or of requests with a ``runs`` file. Sorted."""
    folder = data / "tables" / table
    if table in REQUEST_TABLES:
        done = {path.name for path in (data / "tables" / "runs").glob("[!.]*.parquet")}
        return sorted(path for path in folder.glob("[!.]*.parquet") if path.name in done)
    done = {path.stem for path in (data / "manifests").glob("[!.]*.json")}
    return sorted(path for path in folder.glob("*/[!.]*.parquet") if path.stem in done)


@contextmanager
def exclusive(data: Path) -> Iterator[None]:
    """Holds the folder for one writing process; the lock dies with its owner, so none is ever stale.

    Raises:
        StorageError: another process holds it; the message names its process id.
    """
    path = data / "run.lock"
    with ExitStack() as held:
        with _explained(path):
            lock = held.enter_context(open(path, "a+"))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.seek(0)
                owner = lock.read().strip() or "unknown"
                raise StorageError(
                    f"another run (process {owner}) is writing to {data}; wait for it, or choose another with --data"
                ) from None
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
        yield  # what goes wrong meanwhile is not the lock's


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A temporary name beside ``path``, which takes its place when all went well."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with _explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield temporary
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
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
        }.get(error.errno or 0, "check the path and run again")
        raise StorageError(f"cannot write {path}: {error.strerror or error}; {remedy}") from error
