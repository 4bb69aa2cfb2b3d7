"""Where an export goes: JSON Lines or Parquet, by the name's ending, written whole or not at all."""

import io
import json
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from s3gym import storage
from s3gym.errors import Explained

CANARY = "s3gym canary e00c6df6-0cdc-4333-97ea-d74c58fe659a"
"""Marks text that should stay out of corpora; the column ``canary`` of every export."""

JSON_LINES, PARQUET = ".jsonl", ".parquet"
ROWS_AT_ONCE = 1_000
"""Rows of one group of a Parquet file: Arrow does not hold more than 2 GB of text together."""

Row = dict[str, Any]
MESSAGES = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))


class ExportError(Explained):
    """Nothing can be written as asked; the message says why and what to do."""


def check_name(out: Path, is_forced: bool) -> None:
    """Raises ExportError unless a file may be written there."""
    if out.suffix not in (JSON_LINES, PARQUET):
        raise ExportError(f"--out {out}: the name decides the format; let it end in {JSON_LINES} or {PARQUET}")
    if out.exists() and not is_forced:
        raise ExportError(f"{out} exists; choose another name, or write over it with --force")


def write(rows: Iterable[Row], schema: pa.Schema, out: Path) -> None:
    """Writes rows in the columns of ``schema``, with the canary beside them."""
    schema = schema.append(pa.field("canary", pa.string()))
    marked = ({**row, "canary": CANARY} for row in rows)
    content = io.BytesIO()
    if out.suffix == JSON_LINES:
        for row in marked:
            line = json.dumps({name: row[name] for name in schema.names}, ensure_ascii=False)
            content.write(f"{line}\n".encode())
    else:
        with pq.ParquetWriter(content, schema, compression="zstd") as writer:
            for group in _groups(marked):
                writer.write_table(pa.Table.from_pylist(group, schema))
    storage.write_bytes(out, content.getvalue())


def _groups(rows: Iterator[Row]) -> Iterator[list[Row]]:
    while group := list(islice(rows, ROWS_AT_ONCE)):
        yield group
