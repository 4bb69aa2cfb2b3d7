"""A data folder's tables by content, so that two folders can be compared."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from s3gym import storage
from s3gym.records import TABLES

NOT_REPEATABLE = {"requested_at", "latency_seconds", "seconds", "peak_memory_bytes"}
"""When something happened and what it took; everything else must be the same in every run."""


def contents(data: Path) -> dict[str, list[dict[str, Any]]]:
    """Rows of every table, sorted, without the columns that tell the time."""
    result = {}
    for table in TABLES:
        files = storage.visible_files(data, table)
        rows = (
            pa.concat_tables([pq.read_table(f, schema=storage.schema(table)) for f in files]).to_pylist()
            if files
            else []
        )
        kept = [{k: v for k, v in row.items() if k not in NOT_REPEATABLE} for row in rows]
        result[table] = sorted(kept, key=repr)
    return result
