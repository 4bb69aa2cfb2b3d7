"""The data folder: what goes in comes out, and nothing half-written is ever seen."""

import errno
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_type_hints

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from s3gym import storage
from s3gym.records import TABLES, Anchor, CellStage, Episode, Experience, Run
from s3gym.storage import FolderInUse, StorageError

AWKWARD = [
    "openai/gpt-4o",
    "007",
    "a=b",
    "",
    "x" * 500,
    "né 左 🐍",
    "'; drop table steps; --",
    "NULL",
    "1e5",
    "a\nb\x00c",
]
"""Texts that some reader or other takes for something else."""
SAMPLES: dict[type, Any] = {
    int: 2**40 + 1,
    float: -0.1,
    bool: True,
    datetime: datetime(2026, 1, 2, 3, 4, 5, 678, UTC),
}


def record(table: str, text: str, is_bare: bool = False) -> Any:
    """A row of ``table`` whose texts are ``text``; bare: null wherever that is allowed."""
    values: dict[str, Any] = {}
    hints = get_type_hints(TABLES[table])
    for field in fields(TABLES[table]):
        hint = hints[field.name]
        kinds = getattr(hint, "__args__", (hint,))
        if type(None) in kinds and is_bare:
            values[field.name] = None
        elif hint == list[str]:
            values[field.name] = [text, text]
        else:
            values[field.name] = text if kinds[0] is str else SAMPLES[kinds[0]]
    return TABLES[table](**values)


def as_dict(row: Any) -> dict[str, Any]:
    return {field.name: getattr(row, field.name) for field in fields(row)}


EPISODE: Episode = record("episodes", "x")
RUN = Run(
    run_id="r1",
    requested_at=datetime(2026, 1, 1, tzinfo=UTC),
    scale="smoke",
    config="{}",
    package_version="0",
)


# --- round trip ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", TABLES)
def test_rows_of_every_table_come_back_as_they_were(tmp_path: Path, table: str) -> None:
    rows = [record(table, text) for text in AWKWARD] + [record(table, "bare", is_bare=True)]

    storage.write_part(tmp_path, "part", "snake", {table: rows}, {})

    assert storage.read_part(tmp_path, table, "snake", "part") == [as_dict(row) for row in rows]


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("count", [0, 2])
def test_columns_that_are_empty_or_all_null_keep_their_type(tmp_path: Path, table: str, count: int) -> None:
    path = tmp_path / "x.parquet"
    storage.write_rows(path, table, [record(table, "x", is_bare=True)] * count)

    assert pq.read_schema(path).remove_metadata().equals(storage.schema(table))


def test_the_schema_is_the_annotations_of_the_record() -> None:
    schema = storage.schema("episodes")

    assert schema.names == [field.name for field in fields(Episode)]
    assert schema.field("seed") == pa.field("seed", pa.int64(), nullable=False)
    assert schema.field("final_score") == pa.field("final_score", pa.float64(), nullable=True)
    assert storage.schema("experiences").field("source_episode_ids").type == pa.list_(pa.string())
    assert storage.schema("runs").field("requested_at").type == pa.timestamp("us", tz="UTC")


def test_a_folder_whose_name_looks_like_a_partition_adds_no_column(tmp_path: Path) -> None:
    data = tmp_path / "seed=7" / "run=x"
    storage.write_part(data, "part", "snake", {"episodes": [EPISODE]}, {})

    assert storage.read_part(data, "episodes", "snake", "part") == [as_dict(EPISODE)]


# --- refused values -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"seed": "7"}, "table episodes, column seed"),
        ({"seed": 1.5}, "table episodes, column seed"),
        ({"seed": 2**70}, "table episodes, column seed"),
        ({"game": 7}, "table episodes, column game"),
        ({"final_score": "high"}, "table episodes, column final_score"),
        ({"is_success": "yes"}, "table episodes, column is_success"),
        ({"seed": None}, "table episodes, column seed: null in a column that must have a value"),
        ({"final_score": float("nan")}, "table episodes, column final_score: not a finite number; write null"),
        ({"game": "\ud800"}, "table episodes, column game"),
    ],
    ids=str,
)
def test_a_wrong_value_is_refused_by_table_and_column(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    path = tmp_path / "x.parquet"

    with pytest.raises(StorageError, match=told):
        storage.write_rows(path, "episodes", [EPISODE, replace(EPISODE, **changes)])

    assert list(tmp_path.iterdir()) == []


def test_a_refused_part_leaves_no_manifest(tmp_path: Path) -> None:
    wrong = replace(EPISODE, seed=None)  # type: ignore[arg-type]

    with pytest.raises(StorageError):
        storage.write_part(tmp_path, "part", "snake", {"steps": [], "episodes": [wrong]}, {})

    assert storage.read_manifest(tmp_path, "part") is None
    assert storage.visible_files(tmp_path, "steps") == []


# --- what is visible ----------------------------------------------------------------------------------------


def test_a_part_is_visible_with_its_manifest_and_only_then(tmp_path: Path) -> None:
    storage.write_part(tmp_path, "one", "snake", {"episodes": [EPISODE]}, {"status": "complete"})
    storage.write_rows(tmp_path / "tables" / "episodes" / "snake" / "two.parquet", "episodes", [EPISODE])

    assert [path.stem for path in storage.visible_files(tmp_path, "episodes")] == ["one"]


def test_a_request_is_visible_with_its_runs_file_and_only_then(tmp_path: Path) -> None:
    link: CellStage = record("cell_stages", "x")
    storage.write_request(tmp_path, RUN, [record("cells", "x")], [link])
    storage.write_rows(tmp_path / "tables" / "cells" / "r2.parquet", "cells", [record("cells", "x")])

    for table in storage.REQUEST_TABLES:
        assert [path.stem for path in storage.visible_files(tmp_path, table)] == ["r1"]


def test_nothing_is_visible_in_an_empty_folder(tmp_path: Path) -> None:
    assert {table: storage.visible_files(tmp_path, table) for table in TABLES} == {table: [] for table in TABLES}
    assert storage.parts_of(tmp_path, "") == []


def test_a_manifest_tells_its_part_game_and_row_counts(tmp_path: Path) -> None:
    storage.write_part(tmp_path, "one", "snake", {"episodes": [EPISODE] * 2, "steps": []}, {"status": "complete"})

    assert storage.read_manifest(tmp_path, "one") == {
        "part": "one",
        "game": "snake",
        "rows": {"episodes": 2, "steps": 0},
        "status": "complete",
    }


def test_parts_are_listed_by_the_beginning_of_their_name(tmp_path: Path) -> None:
    for part in ("evaluate-ab-00003-00005", "evaluate-ab-00000-00003", "explore-ab-00000-00003"):
        storage.write_part(tmp_path, part, "snake", {}, {})

    assert storage.parts_of(tmp_path, "evaluate-ab") == ["evaluate-ab-00000-00003", "evaluate-ab-00003-00005"]


# --- killed, full, forbidden --------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
from pathlib import Path
import pyarrow.parquet as pq
from s3gym import storage
from tests.storage.test_storage import EPISODE

write_table = pq.write_table
def half(content, path, **options):
    if "{victim}" in str(path):
        Path(path).write_bytes(b"PAR1 half a file")
        os.kill(os.getpid(), signal.SIGKILL)
    write_table(content, path, **options)

storage.pq.write_table = half
storage.write_part(Path(sys.argv[1]), "two", "snake", {{"episodes": [EPISODE], "steps": []}}, {{}})
"""


@pytest.mark.parametrize("victim", ["episodes", "steps"])
def test_a_killed_write_leaves_nothing_visible(tmp_path: Path, victim: str) -> None:
    storage.write_part(tmp_path, "one", "snake", {"episodes": [EPISODE], "steps": []}, {})

    ended = subprocess.run([sys.executable, "-c", KILLED.format(victim=victim), str(tmp_path)], check=False)

    assert ended.returncode == -signal.SIGKILL
    assert list(tmp_path.rglob(".two*"))  # it was in the middle
    assert storage.read_manifest(tmp_path, "two") is None
    for table in ("episodes", "steps"):
        assert [path.stem for path in storage.visible_files(tmp_path, table)] == ["one"]


def failing(number: int) -> Callable[..., None]:
    def fail(*args: Any, **options: Any) -> None:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "free some disk space and run again"),
        (errno.EDQUOT, "quota is used up"),
        (errno.EROFS, "the folder is read-only; choose another with --data"),
        (errno.EACCES, "you may not write there; choose another folder"),
        (errno.EIO, "check the path and run again"),
    ],
)
@pytest.mark.parametrize("place", ["pq.write_table", "os.replace"])
def test_what_the_disk_refuses_is_told_with_a_remedy_and_harms_nothing_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, remedy: str, place: str
) -> None:
    storage.write_part(tmp_path, "one", "snake", {"episodes": [EPISODE]}, {})

    with monkeypatch.context() as patch:
        patch.setattr(f"s3gym.storage.{place}", failing(number))
        with pytest.raises(StorageError, match=remedy) as told:
            storage.write_part(tmp_path, "two", "snake", {"episodes": [EPISODE]}, {})

    assert "cannot write" in str(told.value) and "two" in str(told.value)
    assert storage.read_manifest(tmp_path, "two") is None
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {"one.json", "one.parquet"}
    assert storage.read_part(tmp_path, "episodes", "snake", "one") == [as_dict(EPISODE)]


def test_a_folder_that_may_not_be_written_to_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage.open_folder(tmp_path / "data")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may always

    with pytest.raises(StorageError, match="is read-only; choose another with --data"):
        storage.open_folder(tmp_path / "data")


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "mkdir", failing(errno.EROFS))

    with pytest.raises(StorageError, match="the folder is read-only"):
        storage.open_folder(tmp_path / "data")


# --- foreign and damaged folders ----------------------------------------------------------------------------


def test_a_new_folder_is_made_and_opened_again(tmp_path: Path) -> None:
    data = tmp_path / "deep" / "data"
    storage.open_folder(data)
    storage.open_folder(data)

    storage.check_version(data)


def test_an_empty_folder_becomes_a_data_folder(tmp_path: Path) -> None:
    storage.open_folder(tmp_path)

    storage.check_version(tmp_path)


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")

    with pytest.raises(StorageError, match="is not empty and not an s3gym data folder; choose another"):
        storage.open_folder(tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_in_place_of_the_folder_is_told(tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_text("mine")

    with pytest.raises(StorageError, match="a file where a folder is needed|a file stands where a folder is needed"):
        storage.open_folder(file)
    with pytest.raises(StorageError, match="a file where a folder is needed|a file stands where a folder is needed"):
        storage.open_folder(file / "below")


@pytest.mark.parametrize(
    ("version", "remedy"),
    [
        (99, "a newer s3gym wrote it: update yours"),
        (storage.SCHEMA_VERSION - 1, "`s3gym data migrate` brings it up to date"),
        (storage.OLDEST_VERSION - 1, "use the s3gym that wrote it"),
    ],
)
def test_another_schema_version_is_refused_for_reading_and_writing(tmp_path: Path, version: int, remedy: str) -> None:
    (tmp_path / "s3gym.json").write_text(json.dumps({"schema_version": version}))

    for opening in (storage.open_folder, storage.check_version):
        with pytest.raises(StorageError, match=f"has schema version {version}, this s3gym reads 4; {remedy}"):
            opening(tmp_path)


def test_a_folder_without_data_says_how_to_make_some(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no s3gym data in .*; run `s3gym run` first"):
        storage.check_version(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "3", "\udcff"])
def test_a_damaged_marker_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "s3gym.json").write_bytes(text.encode(errors="surrogateescape"))

    with pytest.raises(StorageError, match=r"s3gym\.json is not readable as JSON with a schema_version"):
        storage.check_version(tmp_path)


@pytest.mark.parametrize("text", ["", '{"rows": {"episo', "[]", "{}", '{"rows": 3, "game": "snake"}', "null"])
def test_a_damaged_manifest_is_named_with_a_remedy(tmp_path: Path, text: str) -> None:
    storage.write_part(tmp_path, "one", "snake", {"episodes": [EPISODE]}, {})
    storage.manifest_path(tmp_path, "one").write_text(text)

    with pytest.raises(StorageError, match=r"one\.json is damaged; delete it and run again"):
        storage.read_manifest(tmp_path, "one")


def test_a_manifest_whose_file_is_gone_counts_for_nothing(tmp_path: Path) -> None:
    storage.write_part(tmp_path, "one", "snake", {"episodes": [EPISODE]}, {"status": "complete"})
    next(tmp_path.rglob("*.parquet")).unlink()

    assert storage.read_manifest(tmp_path, "one") is None


@pytest.mark.parametrize("size", [0, 10, -10])
def test_a_truncated_file_is_named_with_a_remedy(tmp_path: Path, size: int) -> None:
    storage.write_part(tmp_path, "one", "snake", {"episodes": [EPISODE]}, {})
    path = next(tmp_path.rglob("*.parquet"))
    path.write_bytes(path.read_bytes()[:size])

    with pytest.raises(StorageError, match=r"one\.parquet cannot be read .*; delete it and run again"):
        storage.read_part(tmp_path, "episodes", "snake", "one")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"gone\.parquet cannot be read"):
        storage.read_part(tmp_path, "episodes", "snake", "gone")


# --- the lock -----------------------------------------------------------------------------------------------

HOLDER = """
import sys, time
from pathlib import Path
from s3gym import storage
with storage.exclusive(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_held_folder_names_its_owner_and_is_free_when_that_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None and owner.stdout.readline() == "held\n"

        told = rf"another run \(process {owner.pid}\) is writing to .*: `.*` on {socket.gethostname()} since 20..-"
        with pytest.raises(StorageError, match=told), storage.exclusive(tmp_path):
            raise AssertionError("two owners")
        owner.kill()
        owner.wait()

    left = json.loads((tmp_path / "run.lock").read_text())
    assert (left["pid"], left["host"]) == (owner.pid, socket.gethostname())
    with storage.exclusive(tmp_path):
        assert json.loads((tmp_path / "run.lock").read_text())["pid"] == os.getpid()
    assert (tmp_path / "run.lock").read_text() == ""


def test_the_lock_is_given_back_and_taken_again(tmp_path: Path) -> None:
    for _ in range(2):
        with storage.exclusive(tmp_path):
            pass


def test_a_lock_of_an_earlier_version_is_taken(tmp_path: Path) -> None:
    (tmp_path / "run.lock").write_text("4711")

    with storage.exclusive(tmp_path):
        pass


ELSEWHERE = json.dumps({"host": "elsewhere", "pid": 4711, "command": "s3gym run", "since": "2026-12-01T03:00:00Z"})


def test_what_another_machine_left_on_a_disk_of_ours_holds_nobody_up(tmp_path: Path) -> None:
    (tmp_path / "run.lock").write_text(ELSEWHERE)  # as in a folder that was copied from there

    with storage.exclusive(tmp_path):
        pass


def test_where_the_lock_of_another_machine_may_not_be_seen_its_word_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run.lock").write_text(ELSEWHERE)
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/sda1 / ext4 rw 0 0\nserver:/home {tmp_path.parent} nfs4 rw 0 0\n")
    monkeypatch.setattr("s3gym.locks._MOUNTS", mounts)

    told = r"process 4711\) may be writing to .*: `s3gym run` on elsewhere since .* On nfs4 .* delete .*run\.lock"
    with pytest.raises(FolderInUse, match=told), storage.exclusive(tmp_path):
        raise AssertionError("two owners")

    assert (tmp_path / "run.lock").read_text() == ELSEWHERE


def test_on_a_full_disk_the_lock_holds_without_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("s3gym.storage.os.pwrite", failing(errno.ENOSPC))
        told = pytest.raises(FolderInUse, match="another run is writing to")
        with storage.exclusive(tmp_path), told, storage.exclusive(tmp_path):
            raise AssertionError("two owners")


def test_a_file_system_without_locks_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("s3gym.storage.fcntl.flock", failing(errno.ENOLCK))

    with pytest.raises(StorageError, match="this file system has no locks"), storage.exclusive(tmp_path):
        raise AssertionError("held")


def test_a_writer_sweeps_up_after_killed_ones(tmp_path: Path) -> None:
    weights = tmp_path / "weights"
    for part in ("build_experience-a-00000-00003", "build_experience-b-00000-00003"):
        (weights / part).mkdir(parents=True)
    (weights / "build_experience-a-00003-00006.partial").mkdir()
    storage.write_part(tmp_path, "build_experience-a-00000-00003", "trust", {}, {"status": "complete"})
    (tmp_path / "manifests" / ".x.json.1.tmp").write_text("half")

    storage.sweep(tmp_path)

    assert [path.name for path in weights.iterdir()] == ["build_experience-a-00000-00003"]
    assert [path.name for path in (tmp_path / "manifests").iterdir()] == ["build_experience-a-00000-00003.json"]


def test_what_fails_under_the_lock_is_not_told_as_a_failure_of_the_lock(tmp_path: Path) -> None:
    with pytest.raises(ConnectionError, match="no server"), storage.exclusive(tmp_path):
        raise ConnectionError("no server")


def test_a_lock_in_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with (
        pytest.raises(StorageError, match=r"cannot write .*run\.lock"),
        storage.exclusive(tmp_path / "nowhere"),
    ):
        raise AssertionError("held")


# --- rows of one kind in another's place --------------------------------------------------------------------


def test_rows_of_another_table_are_refused(tmp_path: Path) -> None:
    anchor: Anchor = record("anchors", "x")
    experience: Experience = record("experiences", "x")

    with pytest.raises((StorageError, AttributeError)):
        storage.write_rows(tmp_path / "x.parquet", "episodes", [anchor, experience])
