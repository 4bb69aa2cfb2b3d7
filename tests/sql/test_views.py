"""The views in plain DuckDB: from another working directory, after the folder has moved, and in Polars."""

import shutil
from pathlib import Path

import duckdb
import polars as pl
import pytest

from s3gym.export.files import ExportError
from s3gym.export.views import write_views
from s3gym.warehouse import Warehouse, quoted
from tests.sql.lab import Lab, Turn

ROWS = "select cell_id, pathway, initial_score, last_score from improvement order by cell_id"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with its views in it; read only."""
    lab = Lab(tmp_path_factory.mktemp("views") / "it's data")
    lab.add("old", {0: [1.0], 3: [5.0]}, run="run-0")
    lab.add("none", {0: [1.0, 2.0], 3: [2.0, 2.0]}, start="y0", pathway="none")
    lab.add("history", {0: [1.0, 2.0], 3: [3.0, 4.0]}, {0: [[Turn(1.0, 2.0)]]}, start="y0")
    write_views(lab.open(), None, lab.data)
    return lab.data


def connected(data: Path) -> duckdb.DuckDBPyConnection:
    plain = duckdb.connect(data / "views.duckdb", read_only=True, config={"file_search_path": str(data)})
    plain.execute("set TimeZone = 'UTC'")
    return plain


def test_every_view_is_there_with_its_columns_and_types(folder: Path) -> None:
    listed = (
        "select schema_name, table_name, column_name, data_type from duckdb_columns() where not internal order by all"
    )
    with connected(folder) as plain:
        assert plain.sql(listed).fetchall() == Warehouse(folder).sql(listed).rows()


def test_tables_and_marts_hold_the_rows_they_hold_here(folder: Path) -> None:
    warehouse = Warehouse(folder)
    raw = [name for name in warehouse.columns() if name.startswith("raw.")]
    with connected(folder) as plain:
        for name in (*raw, "improvement", "improvement_curve", "judge_reliability", "control_gain"):
            rows = f"from {name} order by all"
            assert plain.sql(rows).pl().equals(warehouse.sql(rows)), name


def test_a_moved_folder_opens_from_any_directory(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = Warehouse(folder).sql(ROWS).rows()
    moved = Path(shutil.copytree(folder, tmp_path / "moved"))
    monkeypatch.chdir(tmp_path)  # a relative search path is enough
    shutil.move(moved, "again")

    with connected(Path("again")) as plain:
        assert plain.sql(ROWS).fetchall() == expected
    monkeypatch.chdir("again")
    with duckdb.connect("views.duckdb", read_only=True) as plain:
        assert plain.sql(ROWS).fetchall() == expected


def test_the_script_makes_the_views_in_a_database_of_ones_own_and_may_be_run_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    script = (folder / "views.sql").read_text()
    assert str(folder) not in script
    with duckdb.connect() as plain:
        plain.execute(f"set file_search_path = {quoted(str(folder))}")
        plain.execute(script)
        tables, _, _ = script.partition("create or replace view stg_")
        plain.execute(tables)
        assert plain.sql(ROWS).fetchall() == Warehouse(folder).sql(ROWS).rows()


def test_polars_reads_a_mart_in_one_line(folder: Path) -> None:
    with connected(folder) as plain:
        assert pl.read_database(ROWS, plain).equals(Warehouse(folder).sql(ROWS))


def test_the_run_of_an_export_is_fixed_and_the_latest_is_not(folder: Path, tmp_path: Path) -> None:
    old = tmp_path / "old.duckdb"
    assert write_views(Warehouse(folder, "run-0"), "run-0", old) == [old]
    with duckdb.connect(old, config={"file_search_path": str(folder)}) as plain:
        assert [row[0] for row in plain.sql(ROWS).fetchall()] == ["old"]
    with connected(folder) as plain:
        assert len(plain.sql(ROWS).fetchall()) == 2
        plain.execute("set variable run_id = 'all'")
        assert len(plain.sql(ROWS).fetchall()) == 3


def test_a_folder_that_duckdb_cannot_search_is_told(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "a, b")  # the search path is a list with commas
    lab.add(curve={0: [1.0]})
    with pytest.raises(ExportError, match="cannot make the views of"):
        write_views(lab.open(), None, tmp_path / "views.duckdb")
