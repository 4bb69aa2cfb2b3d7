"""``data``: what a data folder holds and what of it could go; compaction, merging and migration of folders."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
from rich.table import Table

from s3gym import compaction, merging, migration, storage
from s3gym.derived import DERIVED
from s3gym.journal import FILE
from s3gym.packs import read_index
from s3gym.records import TABLES
from s3gym.terminal.console import console, prose

_LISTED = 5
"""Parts that a message names."""


@dataclass
class _Share:
    """So much of the folder."""

    files: int = 0
    rows: int = 0
    size: float = 0.0
    """Bytes."""

    def row(self) -> list[str]:
        """For a table."""
        return [f"{self.files:,}", f"{self.rows:,}", size_of(self.size)]


def show_data(data: Path) -> None:
    """Sizes by table and by kind of stage, of everything else, and what could be let go."""
    storage.check_version(data)
    counts = _row_counts(data)
    tables: dict[str, _Share] = defaultdict(_Share)
    kinds: dict[str, _Share] = defaultdict(_Share)
    for table in TABLES:
        for rows in storage.visible(data, table):
            size = rows.path.stat().st_size
            tables[table].files += 1
            tables[table].size += size
            if table not in compaction.STAGE_TABLES:
                tables[table].rows += pq.read_metadata(rows.path).num_rows
                continue
            held = sum(counts[table, part] for part in rows.names)
            tables[table].rows += held
            for part in rows.names:  # of a pack, each part takes by its rows
                kind = kinds[part.partition("-")[0]]
                kind.rows += counts[table, part]
                kind.size += size * counts[table, part] / held if held else size / len(rows.names)
    for part in storage.parts_of(data, ""):
        kinds[part.partition("-")[0]].files += 1
    _print("table", "files", tables)
    _print("stage", "parts", dict(sorted(kinds.items())))
    for line in _beside(data):
        prose(line)
    for line in _dispensable(data):
        prose(f"- {line}")


def compact(data: Path) -> None:
    """Packs small files."""
    before, after = compaction.compact(data)
    told = f"{before:,} Parquet files of stages are now {after:,}" if before != after else "Nothing to pack"
    prose(f"{told}; the tables hold the same rows.")


def merge(data: Path, other: Path) -> None:
    """Adds what another folder has."""
    merged = merging.merge(data, other)
    prose(
        f"{data} now has what {other} has: {merged.added:,} parts, {merged.runs:,} runs and {merged.calls:,} model "
        f"calls were added; {merged.same:,} parts were here already."
    )
    for parts, why in (
        (merged.differing, "have other rows there than here; those here were kept"),
        (merged.resting, "rest on one that differs, and were left out"),
        (merged.overlapping, "share episodes with other parts here, and were left out"),
    ):
        if parts:
            more = f" and {len(parts) - _LISTED:,} more" if len(parts) > _LISTED else ""
            prose(f"{len(parts):,} parts {why}: {', '.join(parts[:_LISTED])}{more}.")
    if merged.resting or merged.overlapping:
        prose("A run that asks for what was left out makes it anew, with the answers of the journal where they fit.")


def migrate(data: Path) -> None:
    """Brings a folder up to date."""
    found, changed = migration.migrate(data)
    if found == storage.SCHEMA_VERSION:
        prose(f"Nothing to do: {data} has schema version {found}, today's.")
        return
    prose(f"{data} had schema version {found}, now {storage.SCHEMA_VERSION}; {changed:,} files were written again.")
    for version, what in migration.BROUGHT.items():
        if version > found:
            prose(f"Version {version} brought {what}.")


def size_of(count: float) -> str:
    """Bytes, for people."""
    return f"{count / 1e6:,.1f} MB" if count >= 1e5 else f"{count / 1e3:,.1f} kB"


def _row_counts(data: Path) -> dict[tuple[str, str], int]:
    """By table and part, as the manifests say."""
    manifests = ((part, storage.read_manifest(data, part)) for part in storage.parts_of(data, ""))
    found = {(table, part): count for part, told in manifests if told for table, count in told["rows"].items()}
    return defaultdict(int, found)


def _print(first: str, second: str, shares: dict[str, _Share]) -> None:
    table = Table(first)
    for name in (second, "rows", "size"):
        table.add_column(name, justify="right")
    for name, share in shares.items():
        table.add_row(name, *share.row())
    if len(shares) > 1:
        total = _Share(*(sum(getattr(share, name) for share in shares.values()) for name in ("files", "rows", "size")))
        table.add_row("all", *total.row())
    console.print(table)


def _beside(data: Path) -> Iterator[str]:
    """What there is beside the rows that count."""
    for what, paths in {
        "manifests": [data / "manifests"],
        "journal of model calls": data.glob(f"{FILE}*"),
        "weights": [data / "weights"],
        "intervals, made again at will (derived/)": [data / "derived"],
        "task results of Prefect (prefect/)": [data / "prefect"],
        "database of the schedule's server (server/)": [data / "server"],
        "reports": data.glob("report.*"),
    }.items():
        files = [file for path in paths for file in _files_in(path)]
        if files:
            yield f"{what}: {len(files):,} files, {size_of(_size(files))}"


def _dispensable(data: Path) -> Iterator[str]:
    """What could be let go, and how."""
    if loose := compaction.loose_files(data):
        yield f"{loose:,} small files of complete stages: `s3gym data compact` packs them into few"
    if (data / FILE).exists():
        yield "calls whose answers the tables hold: `s3gym prune` says how much that is"
    if unseen := list(_unseen(data)):
        yield f"{len(unseen):,} files that no reader looks at, {size_of(_size(unseen))}, such as a killed run leaves"
    lapsed = [path for table in DERIVED for path in (data / "derived" / table).glob("*.parquet")]
    if lapsed or (data / "prefect").exists():
        yield "derived/ and prefect/ may be deleted: one is made again, the other is not needed for what is complete"
    if any((data / "weights").glob("*/")):
        yield "weights that no run goes on from: `--set training.keep='\"last\"'` lets them go once a cell is done"


def _unseen(data: Path) -> Iterator[Path]:
    """Files that no reader looks at."""
    seen = {path for table in TABLES for path in storage.visible_files(data, table)}
    index = {data / "tables" / pack for pack in read_index(data).packs}
    yield from (path for path in (data / "tables").rglob("*") if path.is_file() and path not in seen | index)
    for folder in storage.unfinished_weights(data):
        yield from _files_in(folder)


def _files_in(path: Path) -> list[Path]:
    return [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]


def _size(files: Iterable[Path]) -> int:
    return sum(file.stat().st_size for file in files)
