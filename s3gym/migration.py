"""A data folder of an earlier schema version brought up to date, in place.

So far every version has only added: columns that are null where nobody knew them, tables, and files. So each Parquet
file is written again with today's columns, where it lacks some, and the version comes last: until then the folder is of
its old version, and a migration that was killed is done again.

What was made with keys of today's ``storage.KEY_VERSION`` stays cached. Older rows are read like any others; a run that
asks for them again makes them anew.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from s3gym import storage
from s3gym.records import TABLES

BROUGHT = {
    3: "training: explorer_id and training of cells, path and is_updated of experiences, tables sft_rows and "
    "training_steps",
    4: "care: the table refreshes, and packs.json for compacted folders",
}
"""What a version added to the one before it."""


def migrate(data: Path) -> tuple[int, int]:
    """Brings a folder up to date; the version it had, and the number of files that were written again.

    Raises:
        StorageError: it is too old or too new, a run is at work on it, or a file cannot be read or written.
    """
    found = storage.version_of(data)
    if not storage.OLDEST_VERSION <= found < storage.SCHEMA_VERSION:
        storage.check_version(data)
        return found, 0
    with storage.exclusive(data):
        storage.sweep(data)
        changed = sum(_brought_up_to_date(path, table) for table in TABLES for path in _files(data, table))
        storage.write_text(data / storage.MARKER, json.dumps({"schema_version": storage.SCHEMA_VERSION}))
    return found, changed


def _files(data: Path, table: str) -> Iterator[Path]:
    yield from sorted((data / "tables" / table).rglob("[!.]*.parquet"))


def _brought_up_to_date(path: Path, table: str) -> bool:
    """Whether the file had to be written again."""
    wanted = storage.schema(table)
    with storage.reading(path):
        if pq.read_schema(path).remove_metadata().equals(wanted):
            return False
        content = pq.read_table(path, partitioning=None)
    missing = [field for field in wanted if field.name not in content.schema.names]
    required = [field.name for field in missing if not field.nullable]
    if required or set(content.schema.names) - set(wanted.names):
        raise storage.StorageError(
            f"{path} is no file of table {table}, its columns are {', '.join(content.schema.names)}; restore the file"
        )
    for field in missing:
        content = content.append_column(field, pa.nulls(len(content), field.type))
    storage.write_rows(path, table, content.select(wanted.names).cast(wanted))
    return True
