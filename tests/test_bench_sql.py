"""The data of ``bench sql`` are such as a run writes, and its passes read them."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from s3gym import storage
from s3gym.bench import _sql_data
from s3gym.bench.sql import Marts, Pass, _pass, measure_marts
from s3gym.storage import StorageError
from s3gym.terminal.querying import as_json
from s3gym.warehouse import Warehouse


@pytest.fixture(autouse=True)
def one_game(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sql_data, "names", lambda package: ["snake"])
    monkeypatch.setattr(_sql_data, "REPLICATES", 1)


def test_so_many_steps_are_made_in_a_folder_that_passes_every_check(tmp_path: Path) -> None:
    count = _sql_data.make(tmp_path / "data", 6_000)

    # a start, ten evaluations of three pathways and ten explorations of two: 51 stages, 3 episodes of 39 steps each
    assert _sql_data.shape_of(6_000) == (1, 3, 39)
    assert abs(count / 6_000 - 1) < 0.1
    warehouse = Warehouse(tmp_path / "data")
    assert warehouse.sql("select count(*) from stg_steps").item() == count
    assert set(warehouse.checks().values()) == {0}
    cells = warehouse.sql("select checkpoint_count, valid_checkpoint_count, auc_plus from improvement").rows()
    assert [cell[:2] for cell in cells] == [(11, 11)] * 3 and None not in [area for *_, area in cells]


def test_the_same_steps_are_made_again(tmp_path: Path) -> None:
    for name in ("a", "b"):
        _sql_data.make(tmp_path / name, 500)

    first, second = (storage.visible_files(tmp_path / name, "steps") for name in ("a", "b"))
    assert [pq.read_table(file) for file in first] == [pq.read_table(file) for file in second]


def test_a_pass_times_every_mart_once(tmp_path: Path) -> None:
    _sql_data.make(tmp_path / "data", 500)

    one = _pass(tmp_path / "data", "together")

    assert [*one.mart_seconds] == [name for layer, name in Warehouse(tmp_path / "data").views() if layer == "marts"]
    assert one.seconds > one.open_seconds > 0 and one.cpu_seconds > 0 and one.peak_bytes > 10**7


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="is there already"):
        measure_marts(10, tmp_path, lambda name: None)


def test_aims_are_for_all_marts_together_and_for_the_judge_alone() -> None:
    together = Pass(20.0, {"judge_reliability": 9.0, "cost": 1.0}, 40.0, 4 * 10**9, 2.0)
    apart = Pass(1.0, {"judge_reliability": 10.5, "cost": 9.0}, 40.0, 10**9, 2.0)
    marts = Marts(10**7, 100, _sql_data.shape_of(10**7), together, apart)

    assert (together.seconds, marts.is_time_target_reached) == (30.0, True)
    assert (marts.is_memory_target_reached, marts.is_judge_target_reached) == (False, False)
    assert as_json(marts)["together"]["seconds"] == 30.0
