"""A data folder's tables by content, so that two folders can be compared."""

from pathlib import Path
from typing import Any

from s3gym import storage
from s3gym.records import TABLES

NOT_REPEATABLE = {"requested_at", "latency_seconds", "seconds", "peak_memory_bytes"}
"""When something happened and what it took; everything else must be the same in every run."""


def contents(data: Path) -> dict[str, list[dict[str, Any]]]:
    """Rows of every table but the logs, sorted, without the columns that tell the time."""
    result = {}
    for table in set(TABLES) - set(storage.LOG_TABLES):
        rows = [row for content in storage.read_rows(data, table) for row in content.to_pylist()]
        # the configuration of a run holds limits too, which change no result; cells hold what does
        left_out = NOT_REPEATABLE | ({"config"} if table == "runs" else set())
        kept = [{k: v for k, v in row.items() if k not in left_out} for row in rows]
        result[table] = sorted(kept, key=repr)
    return result
