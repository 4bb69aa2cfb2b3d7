"""Two folders become one: everything once, nothing mixed."""

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from s3gym import storage
from s3gym.compaction import compact
from s3gym.journal import FILE, Journal
from s3gym.merging import merge
from s3gym.models.base import Completion, ModelError
from s3gym.records import CallFacts
from s3gym.storage import FolderInUse, StorageError
from s3gym.warehouse import Warehouse
from tests.direct import measure_directly
from tests.flows.tables import contents
from tests.models.loopback import request_of
from tests.storage.test_storage import EPISODE, record

STEP = record("steps", "x", is_bare=True)


def stage(data: Path, kind: str, key: str, span: tuple[int, int], score: float = 1.0, **manifest: Any) -> str:
    """A part of a stage with an episode for each number of ``span``; its name."""
    part = f"{kind}-{key}-{span[0]:05d}-{span[1]:05d}"
    episodes = [
        replace(EPISODE, stage_key=key, episode_id=f"e{i}", episode_index=i, final_score=score) for i in range(*span)
    ]
    steps = [replace(STEP, stage_key=key, episode_id=f"e{i}", latency_seconds=score) for i in range(*span)]
    storage.write_part(
        data, part, "snake", {"episodes": episodes, "steps": steps}, {"status": "complete", "key": key, **manifest}
    )
    return part


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Two empty folders."""
    for name in ("ours", "theirs"):
        storage.open_folder(tmp_path / name)
    return tmp_path / "ours", tmp_path / "theirs"


def scores(data: Path) -> list[tuple[str, int, float]]:
    """(stage, episode, score) of all that counts."""
    rows = [row for content in storage.read_rows(data, "episodes") for row in content.to_pylist()]
    return sorted((row["stage_key"], row["episode_index"], row["final_score"]) for row in rows)


# --- runs of the package --------------------------------------------------------------------------------------


def measured(data: Path, *games: str) -> None:
    """Does what is not there yet."""
    budgets = {"exploration_episodes": 1, "evaluation_interval": 1, "evaluation_episodes": 1}
    measure_directly(data, games=games, models=["player:learner"], pathways=["none", "history"], **budgets)


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """Folders of two users who both measured trust, and of one who measured all that. Read only."""
    folder = tmp_path_factory.mktemp("users")
    for name, *requests in (
        ("one", ("trust", "nullify")),
        ("other", ("trust", "snake")),
        ("both", ("trust", "nullify"), ("trust", "snake")),
    ):
        for games in requests:
            measured(folder / name, *games)
    return folder / "one", folder / "other", folder / "both"


def test_two_users_folders_become_the_folder_of_one_who_did_it_all(
    users: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    one, other, both = users
    data = Path(shutil.copytree(one, tmp_path / "data"))
    compact(data)  # packed or not
    there = contents(other)

    merged = merge(data, other)

    assert contents(data) == contents(both)
    assert (merged.runs, merged.differing, merged.resting, merged.overlapping) == (1, [], [], [])
    assert contents(other) == there
    assert Warehouse(data).checks() == Warehouse(both).checks()
    before = sorted((data / "manifests").iterdir())
    measured(data, "trust", "snake")
    assert sorted((data / "manifests").iterdir()) == before  # nothing was left to be made

    again = merge(data, other)
    assert (again.added, again.runs, again.same) == (0, 0, merged.added + merged.same)
    assert contents(data) == contents(both)


def test_a_folder_can_be_merged_into_a_new_one(users: tuple[Path, Path, Path], tmp_path: Path) -> None:
    merge(tmp_path / "data", users[1])

    assert contents(tmp_path / "data") == contents(users[1])


KILLED = """
import os, signal, sys
from pathlib import Path
from s3gym import merging, storage

write, left = storage.write_text, int(sys.argv[3])
def text(path, content):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    write(path, content)

storage.write_text = text
merging.merge(Path(sys.argv[1]), Path(sys.argv[2]))
"""


def test_a_merge_that_is_killed_is_done_again(users: tuple[Path, Path, Path], tmp_path: Path) -> None:
    one, other, both = users
    data = Path(shutil.copytree(one, tmp_path / "data"))

    subprocess.run([sys.executable, "-c", KILLED, str(data), str(other), "4"], check=False)  # before a manifest
    parts = len(storage.parts_of(data, ""))
    assert parts == len(storage.parts_of(one, "")) + 4
    assert Warehouse(data).checks() == Warehouse(one).checks()

    merge(data, other)
    assert contents(data) == contents(both)


# --- parts that both have -------------------------------------------------------------------------------------


def test_what_took_another_time_is_the_same(pair: tuple[Path, Path]) -> None:
    ours, theirs = pair
    stage(ours, "explore", "a", (0, 3))
    part = stage(theirs, "explore", "a", (0, 3))
    steps = [replace(STEP, stage_key="a", episode_id=f"e{i}", latency_seconds=9.0) for i in range(3)]
    storage.write_rows(theirs / "tables" / "steps" / "snake" / f"{part}.parquet", "steps", steps)

    assert merge(ours, theirs).same == 1


def test_other_rows_are_named_and_nothing_that_rests_on_them_comes_along(pair: tuple[Path, Path]) -> None:
    ours, theirs = pair
    stage(ours, "explore", "a", (0, 3), score=1.0)
    stage(theirs, "explore", "a", (0, 3), score=2.0)
    stage(theirs, "evaluate", "c", (0, 3), score=2.0, inputs=["b"])
    stage(theirs, "explore", "b", (3, 6), score=2.0, inputs=["a"])
    stage(theirs, "explore", "z", (0, 3), score=5.0)

    merged = merge(ours, theirs)

    assert merged.differing == ["explore-a-00000-00003"]
    assert sorted(merged.resting) == ["evaluate-c-00000-00003", "explore-b-00003-00006"]
    assert scores(ours) == [*(("a", i, 1.0) for i in range(3)), *(("z", i, 5.0) for i in range(3))]


def test_a_larger_budget_takes_the_place_of_a_smaller_one(pair: tuple[Path, Path]) -> None:
    ours, theirs = pair
    stage(ours, "evaluate", "a", (0, 2))
    stage(ours, "evaluate", "a", (2, 3))
    stage(theirs, "evaluate", "a", (0, 7))

    assert merge(ours, theirs).added == 1
    assert scores(ours) == [("a", i, 1.0) for i in range(7)]
    assert len(list((ours / "tables" / "episodes").rglob("*.parquet"))) == 1
    assert merge(ours, theirs).same == 1


def test_a_smaller_budget_is_here_already(pair: tuple[Path, Path]) -> None:
    ours, theirs = pair
    stage(ours, "evaluate", "a", (0, 7))
    stage(theirs, "evaluate", "a", (0, 3))
    stage(theirs, "evaluate", "a", (3, 9))

    merged = merge(ours, theirs)

    assert (merged.same, merged.overlapping) == (1, ["evaluate-a-00003-00009"])
    assert scores(ours) == [("a", i, 1.0) for i in range(7)]


def test_a_larger_budget_of_other_scores_is_left_out(pair: tuple[Path, Path]) -> None:
    ours, theirs = pair
    stage(ours, "evaluate", "a", (0, 3), score=1.0)
    stage(theirs, "evaluate", "a", (0, 7), score=2.0)

    assert merge(ours, theirs).differing == ["evaluate-a-00000-00007"]
    assert scores(ours) == [("a", i, 1.0) for i in range(3)]


def test_a_complete_part_replaces_one_with_failed_calls_and_never_the_reverse(pair: tuple[Path, Path]) -> None:
    ours, theirs = pair
    stage(ours, "evaluate", "a", (0, 3), score=0.0, status="invalid")
    stage(theirs, "evaluate", "a", (0, 3), score=2.0)
    stage(ours, "evaluate", "b", (0, 3), score=3.0)
    stage(theirs, "evaluate", "b", (0, 3), score=0.0, status="invalid")

    merged = merge(ours, theirs)

    assert (merged.added, merged.same) == (1, 1)
    assert scores(ours) == [*(("a", i, 2.0) for i in range(3)), *(("b", i, 3.0) for i in range(3))]


def test_weights_come_with_the_update_that_made_them(pair: tuple[Path, Path]) -> None:
    ours, theirs = pair
    part = stage(theirs, "build_experience", "a", (0, 3))
    (theirs / "weights" / part).mkdir(parents=True)
    (theirs / "weights" / part / "adapter.safetensors").write_bytes(b"weights")
    let_go = stage(theirs, "build_experience", "b", (0, 3))
    storage.removal_mark(theirs / "weights" / let_go).touch()

    merge(ours, theirs)

    assert (ours / "weights" / part / "adapter.safetensors").read_bytes() == b"weights"
    assert sorted(path.name for path in (ours / "weights").iterdir()) == [part, f"{let_go}.removed"]


# --- journals -------------------------------------------------------------------------------------------------


def called(data: Path, seed: int, answer: str | None, stage_key: str = "s", cost: float = 1.0) -> str:
    """Notes a call; its key."""
    facts = CallFacts(cost_usd=cost)
    outcome = Completion(text=answer, reasoning=None, facts=facts) if answer else ModelError("server", "oops")
    with Journal(data / FILE) as journal:
        request = request_of(seed=seed)
        key = journal.key({"model": "m"}, request)
        journal.record(key, "m", stage_key, request, outcome)
    return key


def test_calls_are_united_and_what_was_answered_here_stays_so(pair: tuple[Path, Path]) -> None:
    ours, theirs = pair
    called(ours, 1, "here")
    called(theirs, 1, None)
    both = called(theirs, 1, "there")
    new = called(theirs, 2, "new", cost=5.0)

    assert merge(ours, theirs).calls == 3
    with Journal(ours / FILE, is_read_only=True) as journal:
        answers = {key: answer.text for key in (both, new) if (answer := journal.lookup(key))}
        assert answers == {both: "here", new: "new"}
        assert [call.attempt for call in journal.attempts_of(both)] == [1, 2, 3]
        assert journal.spent({"s"}) == (4, 1.0 + 1.0 + 5.0)
        (call,) = journal.attempts_of(new)
        assert journal.request_of(call) == request_of(seed=2).messages

    assert merge(ours, theirs).calls == 0


def test_what_was_pruned_is_counted_once(pair: tuple[Path, Path]) -> None:
    ours, theirs = pair
    called(theirs, 1, "mine too")
    shutil.copy(theirs / FILE, ours / FILE)
    called(theirs, 2, "theirs alone", stage_key="t")
    with Journal(ours / FILE) as journal:
        journal.prune({"s"})
    with Journal(theirs / FILE) as journal:
        journal.prune({"t"})

    for _ in range(2):
        assert merge(ours, theirs).calls == 0
        with Journal(ours / FILE, is_read_only=True) as journal:
            assert journal.spent({"s", "t"}) == (2, 2.0)


# --- refused --------------------------------------------------------------------------------------------------


def test_a_folder_is_not_merged_with_itself(pair: tuple[Path, Path]) -> None:
    with pytest.raises(StorageError, match="is the data folder itself"):
        merge(pair[0], pair[0] / ".." / "ours")


def test_another_version_is_refused_with_the_remedy(pair: tuple[Path, Path]) -> None:
    ours, theirs = pair
    (theirs / "s3gym.json").write_text('{"schema_version": 3}')

    with pytest.raises(StorageError, match="theirs has schema version 3, .*`s3gym data migrate` brings it up to date"):
        merge(ours, theirs)


@pytest.mark.parametrize("held", [0, 1])
def test_a_writer_on_either_side_keeps_merging_out(pair: tuple[Path, Path], held: int) -> None:
    with storage.exclusive(pair[held]), pytest.raises(FolderInUse):
        merge(*pair)
