"""Many small files become few, and nobody who reads them sees a difference."""

import errno
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from s3gym import compaction, packs, storage
from s3gym.compaction import compact, loose_files
from s3gym.records import Episode
from s3gym.storage import FolderInUse, StorageError
from tests.storage.test_storage import EPISODE, RUN, failing, record

STEP = record("steps", "x", is_bare=True)


def part_of(number: int) -> str:
    return f"evaluate-k{number}-00000-00003"


def write(data: Path, number: int, score: float = 0.0, status: str = "complete") -> None:
    """A part of three episodes with four steps; ``number`` tells them apart."""
    episodes = [replace(EPISODE, stage_key=f"k{number}", episode_index=i, final_score=score) for i in range(3)]
    steps = [replace(STEP, stage_key=f"k{number}", step_index=i) for i in range(4)]
    storage.write_part(data, part_of(number), "snake", {"episodes": episodes, "steps": steps}, {"status": status})


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Six parts."""
    storage.open_folder(tmp_path)
    for number in range(6):
        write(tmp_path, number)
    return tmp_path


def seen(data: Path) -> dict[str, Any]:
    """All that readers get."""
    by_part = {
        (table, game, part): storage.read_part(data, table, game, part)
        for table in ("episodes", "steps")
        for game, part in storage.visible_parts(data, table)
    }
    rows = {
        table: sorted(repr(row) for content in storage.read_rows(data, table) for row in content.to_pylist())
        for table in ("episodes", "steps")
    }
    return {"by part": by_part, "rows": rows, "manifests": [storage.read_manifest(data, part_of(n)) for n in range(6)]}


def files(data: Path) -> list[str]:
    return sorted(path.name for path in (data / "tables").rglob("*.parquet"))


def test_twelve_files_become_two_with_the_same_rows_and_manifests(data: Path) -> None:
    before = seen(data)

    assert loose_files(data) == 12
    assert compact(data) == (12, 2)

    assert [name[:7] for name in files(data)] == ["packed-", "packed-"]
    assert seen(data) == before
    assert len(before["by part"]) == 12
    assert (loose_files(data), compact(data)) == (0, (2, 2))


def test_rows_of_one_part_are_found_in_packs_of_many_row_groups_and_files(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = seen(data)
    monkeypatch.setattr(compaction, "GROUP_ROWS", 5)  # two parts of three episodes, or of four steps
    monkeypatch.setattr(compaction, "PACK_ROWS", 9)  # three parts of each

    compact(data)

    assert len(files(data)) == 4
    assert seen(data) == before


def test_what_comes_later_is_added_and_large_packs_are_left(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "PACK_ROWS", 18)  # six parts of three episodes; five of four steps, and one is left
    compact(data)
    (large,) = os.listdir(data / "tables" / "episodes" / "snake")
    for number in (6, 7):
        write(data, number)

    assert compact(data) == (3 + 4, 4)
    assert large in files(data)
    assert len(storage.visible_parts(data, "episodes")) == 8


def test_a_part_that_may_be_made_again_keeps_its_files(data: Path) -> None:
    write(data, 5, status="invalid")

    compact(data)

    assert [name for name in files(data) if not name.startswith("packed-")] == [f"{part_of(5)}.parquet"] * 2


def test_a_part_made_again_is_read_from_its_new_file_and_its_old_rows_are_nobodys(data: Path) -> None:
    compact(data)
    write(data, 2, score=7.0)

    scores = [row["final_score"] for content in storage.read_rows(data, "episodes") for row in content.to_pylist()]
    assert sorted(scores) == [0.0] * 15 + [7.0] * 3
    assert [row["final_score"] for row in storage.read_part(data, "episodes", "snake", part_of(2))] == [7.0] * 3

    assert compact(data) == (4, 2)
    assert len(storage.visible_parts(data, "episodes")) == 6


def test_rows_whose_manifest_is_deleted_by_hand_are_not_there(data: Path) -> None:
    compact(data)
    storage.manifest_path(data, part_of(0)).unlink()

    assert [part for _, part in storage.visible_parts(data, "episodes")] == [part_of(n) for n in range(1, 6)]
    assert sum(len(content) for content in storage.read_rows(data, "steps")) == 5 * 4
    assert storage.read_manifest(data, part_of(0)) is None


def test_a_part_whose_pack_is_gone_is_to_be_made_again(data: Path) -> None:
    compact(data)
    next((data / "tables" / "steps" / "snake").iterdir()).unlink()

    assert storage.read_manifest(data, part_of(0)) is None
    write(data, 0)
    assert len(storage.read_part(data, "steps", "snake", part_of(0))) == 4


def test_a_running_writer_keeps_compaction_out(data: Path) -> None:
    before = files(data)

    with storage.exclusive(data), pytest.raises(FolderInUse, match="another run"):
        compact(data)

    assert files(data) == before


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1}', '{"a": [["x"]]}', '{"a": [["x", "many"]]}'])
def test_a_damaged_index_is_named_with_a_remedy(data: Path, text: str) -> None:
    compact(data)
    (data / packs.FILE).write_text(text)

    with pytest.raises(packs.DamagedIndex, match=r"packs\.json is damaged; restore it from a copy"):
        storage.visible_files(data, "episodes")


def test_requests_and_refreshes_keep_a_file_each(data: Path) -> None:
    storage.write_request(data, RUN, [record("cells", "x")], [record("cell_stages", "x")])
    storage.write_refresh(data, record("refreshes", "x"))

    compact(data)

    assert [path.name for path in storage.visible_files(data, "runs")] == ["r1.parquet"]
    assert [path.name for path in storage.visible_files(data, "refreshes")] == ["x.parquet"]


KILLED = """
import os, signal, sys
from pathlib import Path
from s3gym import compaction

left = int(sys.argv[2])
def counted(function):
    def call(*args, **options):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **options)
    return call

os.replace = counted(os.replace)
Path.unlink = counted(Path.unlink)
compaction.compact(Path(sys.argv[1]))
"""


@pytest.mark.parametrize("steps", [6, 7, 12])  # at the index, after it, among the small files
def test_a_compaction_killed_anywhere_loses_nothing_and_is_done_again(data: Path, steps: int) -> None:
    before = seen(data)

    ended = subprocess.run([sys.executable, "-c", KILLED, str(data), str(steps)], check=False)

    assert ended.returncode == -signal.SIGKILL
    assert seen(data) == before
    assert compact(data)[1] == 2
    assert seen(data) == before
    assert len(files(data)) == 2


@pytest.mark.parametrize(
    "place",
    ["s3gym.compaction.pq.ParquetWriter.write_table", "s3gym.compaction.os.fsync", "s3gym.storage.Path.write_bytes"],
)
def test_a_full_disk_is_told_and_loses_nothing(data: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    before, there = seen(data), files(data)

    with monkeypatch.context() as patch:
        patch.setattr(place, failing(errno.ENOSPC))
        with pytest.raises(StorageError, match="free some disk space and run again; nothing written before is lost"):
            compact(data)

    assert (seen(data), files(data)) == (before, there)


def test_the_index_holds_names_and_counts(data: Path) -> None:
    compact(data)

    said = json.loads((data / packs.FILE).read_text())

    assert {path.rsplit("/", 1)[0]: entries for path, entries in said.items()} == {
        "episodes/snake": [[part_of(n), 3] for n in range(6)],
        "steps/snake": [[part_of(n), 4] for n in range(6)],
    }
    assert os.listdir(data / "tables" / "episodes" / "snake") == [next(iter(said)).rsplit("/", 1)[1]]


def test_an_empty_folder_has_nothing_to_pack(tmp_path: Path) -> None:
    storage.open_folder(tmp_path)

    assert compact(tmp_path) == (0, 0)
    assert not (tmp_path / packs.FILE).exists()


def test_episodes_are_records_again(data: Path) -> None:
    compact(data)

    assert [Episode(**row) for row in storage.read_part(data, "episodes", "snake", part_of(1))][0].stage_key == "k1"
