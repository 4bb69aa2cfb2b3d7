"""Every kind of change to what is stored is found and named. Each test edits one value of a real folder."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from s3gym import registry, storage
from s3gym.verification import Damaged, verify_folder
from tests.direct import measure_directly

Row = dict[str, Any]


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("honest") / "data"
    measure_directly(
        data, scale="smoke", games=["trust"], models=["player:learner"], pathways=["memory"], evaluation_episodes=7
    )
    return data


@pytest.fixture
def copied(honest: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(honest, tmp_path / "data"))


def edit(data: Path, table: str, change: Callable[[list[Row]], list[Row] | None]) -> None:
    """Changes the rows of the first file of a table in place, or replaces them."""
    path = storage.visible_files(data, table)[0]
    rows = pq.read_table(path).to_pylist()
    rows = change(rows) or rows
    pq.write_table(pa.Table.from_pylist(rows, schema=storage.schema(table)), path)


def problems(data: Path) -> str:
    return " ".join(problem for verdict in verify_folder(data) for problem in verdict.problems)


def test_an_honest_folder_has_no_problem(honest: Path) -> None:
    verdicts = list(verify_folder(honest))

    assert len(verdicts) == 3 + 2 * 7
    assert not any(verdict.problems for verdict in verdicts)


@pytest.mark.parametrize(
    ("table", "column", "value", "told"),
    [
        ("episodes", "seed", 7, "seed: stored 7, the split gives"),
        ("episodes", "config", "{}", "config: stored '{}', the run asked for"),
        ("episodes", "config", "{", "cannot be replayed"),
        ("episodes", "episode_index", 55, "episode_index: stored 55"),
        ("episodes", "checkpoint", 55, "checkpoint: stored 55"),
        ("episodes", "game", "snake", "game: stored 'snake'"),
        ("episodes", "stage_key", "other", "no run links to this stage"),
        ("steps", "checkpoint", 77, "checkpoint: stored 77"),
        ("steps", "verifier_reward", 9.0, "reward: stored 9.0"),
        ("steps", "observation", "Round 1", "observation: stored 'Round 1'"),
        ("steps", "action", "resign", "action: stored 'resign'"),
        ("experiences", "text", "Cheat always.", "text: does not have the stored content_hash"),
        ("judgments", "success_belief", 0.5, "success_belief: stored 0.5"),
    ],
)
def test_a_changed_value_is_named(copied: Path, table: str, column: str, value: object, told: str) -> None:
    edit(copied, table, lambda rows: rows[0].update({column: value}))

    assert told in problems(copied)


@pytest.mark.parametrize("table", ["episodes", "steps", "judgments"])
def test_a_row_taken_away_is_named(copied: Path, table: str) -> None:
    edit(copied, table, lambda rows: rows[1:])

    assert f"{table}: " in problems(copied) and "the manifest says" in problems(copied)


def test_only_episodes_count_as_replayed(copied: Path) -> None:
    edit(copied, "judgments", lambda rows: rows[0].update(retain="other"))

    assert sum(verdict.is_replay for verdict in verify_folder(copied)) == 3 + 2 * 7
    assert sum(bool(verdict.problems) for verdict in verify_folder(copied)) == 1


def test_a_game_that_is_not_there_any_more_leaves_the_rest_verified(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    present = [name for name in registry.names(registry.GAMES) if name != "trust"]
    monkeypatch.setattr("s3gym.verification.names", lambda package: present)

    verdicts = list(verify_folder(copied))

    told = [problem for verdict in verdicts for problem in verdict.problems]
    assert told and set(told) == {"not replayed: this s3gym has no game 'trust'; use the one that played it"}
    assert not any(verdict.is_replay for verdict in verdicts if verdict.problems)


def test_links_taken_away_are_named(copied: Path) -> None:
    pq.write_table(storage.schema("cell_stages").empty_table(), storage.visible_files(copied, "cell_stages")[0])

    assert "no run links to this stage" in problems(copied)


@pytest.mark.parametrize(("table", "column"), [("runs", "config"), ("cells", "evaluation_config")])
def test_a_request_that_cannot_be_read_is_told(copied: Path, table: str, column: str) -> None:
    edit(copied, table, lambda rows: rows[0].update({column: "{"}))

    with pytest.raises(Damaged, match="damaged"):
        list(verify_folder(copied))
