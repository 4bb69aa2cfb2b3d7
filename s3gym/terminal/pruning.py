"""``prune``: the space of calls whose answers are in the tables, given back. Says first what that would delete."""

from collections import defaultdict
from pathlib import Path

from s3gym import storage
from s3gym.journal import FILE, Holdings, Journal
from s3gym.plan import COMPLETE
from s3gym.terminal.console import prose
from s3gym.warehouse import Warehouse

_ASKED = """
    select
        stage_key,
        if(stage in ('explore', 'self_judge'), checkpoint, 0) as first_episode,
        max(first_episode + episode_count) as last_episode
    from stg_cell_stages
    group by stage_key, first_episode
"""
"""Episodes of each stage that any run ever asked for."""


def prune(data: Path, is_confirmed: bool) -> None:
    """Says what can go, and deletes it when that is confirmed.

    Raises:
        StorageError: there is no data, or a run is at work on it.
    """
    storage.check_version(data)
    path = data / FILE
    if not path.exists():
        prose(f"Nothing to delete: no model call was made in {data}.")
        return
    if not is_confirmed:
        with Journal(path, is_read_only=True) as journal:
            is_worth_it = _announce(journal, finished(data))
        prose("Nothing was changed. `s3gym prune --yes` deletes them." if is_worth_it else "Nothing to delete.")
        return
    with storage.exclusive(data), Journal(path) as journal:
        stages, before = finished(data), _size(data)
        if not _announce(journal, stages):
            prose("Nothing to delete.")
            return
        journal.prune(stages)
        prose(f"Deleted. The journal takes {_bytes(_size(data))} on disk; before, {_bytes(before)}.")


def finished(data: Path) -> set[str]:
    """Keys of the stages of which every episode that any run asked for is in the tables, by their manifests.

    A stage whose larger budget was begun and not ended is none of them: its calls are not all in the tables.
    """
    parts: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for part in storage.parts_of(data, ""):
        manifest = storage.read_manifest(data, part)
        if manifest is not None and manifest["status"] == COMPLETE and "key" in manifest:
            parts[manifest["key"]].append((manifest["first_episode"], manifest["last_episode"]))
    asked = Warehouse(data, "all").sql(_ASKED).iter_rows()
    return {key for key, first, last in asked if _is_covered(sorted(parts[key]), first, last)}


def _is_covered(parts: list[tuple[int, int]], first: int, last: int) -> bool:
    for start, stop in parts:
        if start <= first:
            first = max(first, stop)
    return first >= last


def _announce(journal: Journal, stages: set[str]) -> bool:
    """Says what would go and what stays; whether anything would."""
    asking = journal.stage_keys()
    done = asking & stages
    held = journal.holdings(done)
    prose(
        f"{held.calls:,} calls of {len(done):,} complete stages and {held.messages:,} messages that no other call "
        f"refers to, about {_bytes(held.size)}; {_paid(held)}."
    )
    if held.calls:
        prose(
            "Their answers are in the tables. If tables were deleted, or a stage of other settings asked the same, "
            "these calls would be made, and paid for or computed, again."
        )
    if asking - done:
        prose(f"The calls of {len(asking - done):,} unfinished stages stay.")
    return bool(held.calls or held.messages)


def _paid(held: Holdings) -> str:
    if held.calls and not held.priced_calls:
        return "what was paid for them is unknown"
    unknown = held.calls - held.priced_calls
    told = f"{held.cost_usd:.6g} dollars were paid for them"
    return f"{told}, not counting {unknown:,} calls whose cost is unknown" if unknown else told


def _size(data: Path) -> int:
    """Bytes of the journal and what SQLite keeps beside it."""
    return sum(path.stat().st_size for path in data.glob(f"{FILE}*"))


def _bytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 1e5 else f"{count:,} bytes"
