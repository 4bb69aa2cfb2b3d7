"""A folder of an earlier schema version, brought up to date."""

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from s3gym import migration, storage
from s3gym.config import load_config
from s3gym.migration import migrate
from s3gym.plan import make_plan, missing
from s3gym.storage import FolderInUse, StorageError
from s3gym.warehouse import Warehouse
from tests.direct import measure_directly
from tests.flows.tables import contents

REQUEST = {"scale": "smoke", "games": ["trust"], "models": ["player:learner"]}
ADDED_SINCE_2 = {"cells": ["explorer_id", "training"], "experiences": ["path", "is_updated"]}


@pytest.fixture(scope="module")
def today(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of today's version; read only."""
    data = tmp_path_factory.mktemp("migration") / "data"
    measure_directly(data, "game.trust.exploration.horizon=4", **REQUEST)
    return data


@pytest.fixture
def third(today: Path, tmp_path: Path) -> Path:
    """The same as version 3 wrote it: there was no log of refreshes, and nothing was packed."""
    data = Path(shutil.copytree(today, tmp_path / "data"))
    marked(data, 3)
    return data


@pytest.fixture
def second(third: Path) -> Path:
    """The same as version 2 wrote it: nothing was known of training."""
    for table, columns in ADDED_SINCE_2.items():
        for path in (third / "tables" / table).rglob("*.parquet"):
            pq.write_table(pq.read_table(path, partitioning=None).drop_columns(columns), path)
    marked(third, 2)
    return third


def marked(data: Path, version: int) -> None:
    (data / "s3gym.json").write_text(json.dumps({"schema_version": version}))


def test_a_folder_of_version_3_keeps_its_cache(third: Path) -> None:
    with pytest.raises(StorageError, match="has schema version 3, this s3gym reads 4; `s3gym data migrate`"):
        Warehouse(third)

    assert migrate(third) == (3, 0)

    plan = make_plan(load_config(None, REQUEST, ["game.trust.exploration.horizon=4"]))
    assert [stage.label for stage in plan.stages() if missing(third, stage)] == []
    assert Warehouse(third).sql("from improvement").height == 3


def test_a_folder_of_version_2_gets_the_columns_that_were_added_and_keeps_its_rows(second: Path, today: Path) -> None:
    experiences = storage.visible_files(second, "experiences")

    assert migrate(second) == (2, 1 + len(experiences))

    assert contents(second) == contents(today)
    frame = Warehouse(second).sql("from improvement order by all")
    assert frame.equals(Warehouse(today).sql("from improvement order by all"))


def test_a_migration_that_is_killed_is_done_again(second: Path, today: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(storage, "write_text", lambda path, text: 1 // 0)  # the version comes last
        with pytest.raises(ZeroDivisionError):
            migrate(second)
    with pytest.raises(StorageError, match="has schema version 2"):
        Warehouse(second)

    assert migrate(second) == (2, 0)
    assert contents(second) == contents(today)


def test_what_is_up_to_date_stays_as_it_is(today: Path) -> None:
    before = (today / "s3gym.json").stat().st_mtime_ns

    assert migrate(today) == (storage.SCHEMA_VERSION, 0)
    assert (today / "s3gym.json").stat().st_mtime_ns == before


@pytest.mark.parametrize(("version", "told"), [(1, "use the s3gym that wrote it"), (5, "a newer s3gym wrote it")])
def test_a_version_out_of_reach_is_told(third: Path, version: int, told: str) -> None:
    marked(third, version)

    with pytest.raises(StorageError, match=told):
        migrate(third)


def test_a_file_of_something_else_is_named(third: Path) -> None:
    path = next((third / "tables" / "steps").rglob("*.parquet"))
    pq.write_table(pq.read_table(path, partitioning=None).drop_columns(["observation"]), path)

    with pytest.raises(StorageError, match="is no file of table steps"):
        migrate(third)
    assert storage.version_of(third) == 3


def test_a_running_writer_keeps_migration_out(third: Path) -> None:
    with storage.exclusive(third), pytest.raises(FolderInUse):
        migrate(third)


def test_every_version_since_the_oldest_says_what_it_brought() -> None:
    assert list(migration.BROUGHT) == list(range(storage.OLDEST_VERSION + 1, storage.SCHEMA_VERSION + 1))
