import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import s3gym
from s3gym import storage, warehouse
from s3gym.records import TABLES
from s3gym.registry import UnknownName
from s3gym.warehouse import Warehouse, WarehouseError
from tests.sql.lab import Lab, Turn, row


def test_empty_folder_gives_empty_typed_marts(lab: Lab) -> None:
    opened = lab.open()
    filled = Lab(lab.data.parent / "filled")
    filled.add(curve={0: [1.0, 2.0]}, explored={0: [[Turn(1.0, 1.0)]]})
    other = filled.open()
    marts = [name for layer, name in opened.views() if layer == "marts"]
    assert "improvement" in marts
    for name in marts:
        frame = opened.sql(f"from {name}")
        assert frame.height == 0
        assert frame.schema == other.sql(f"from {name}").schema
    assert set(opened.checks().values()) == {0}


def test_raw_tables_have_the_columns_of_their_records_with_or_without_rows(lab: Lab) -> None:
    lab.add(curve={0: [1.0]})
    opened = lab.open()
    for table in TABLES:
        assert opened.sql(f"from raw.{table}").columns == storage.schema(table).names


def test_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(storage.StorageError, match="no s3gym data"):
        Warehouse(tmp_path)


def test_rows_without_a_manifest_are_not_there(lab: Lab) -> None:
    lab.add(curve={0: [1.0], 3: [2.0]})
    storage.manifest_path(lab.data, "cell-evaluate-3").unlink()
    assert lab.open().sql("select checkpoint, score from improvement_curve order by 1").rows() == [
        (0, 1.0),
        (3, None),
    ]


def test_load_answers_sql_with_a_frame(lab: Lab) -> None:
    lab.add(curve={0: [1.0]})
    lab.open()
    frame = s3gym.load(str(lab.data)).sql("select score from improvement_curve")
    assert isinstance(frame, pl.DataFrame)
    assert frame.rows() == [(1.0,)]


def test_folder_may_have_an_odd_name(tmp_path: Path) -> None:
    lab = Lab(tmp_path / 'it\'s 50% {a} "q" é ;--')
    lab.add(curve={0: [1.0]})
    assert row(lab.open(), "improvement_curve")["score"] == 1.0


def test_folder_named_like_a_pattern_is_refused(tmp_path: Path) -> None:
    with pytest.raises(storage.StorageError, match="pattern"):
        storage.open_folder(tmp_path / "p[1]")  # DuckDB would read p1 as well


def test_relative_folder_is_read_after_a_change_of_directory(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.add(curve={0: [1.0]})
    lab.open()
    monkeypatch.chdir(lab.data.parent)
    opened = Warehouse(Path(lab.data.name))
    monkeypatch.chdir("/")
    assert row(opened, "improvement_curve")["score"] == 1.0


def test_text_ids_survive(lab: Lab) -> None:
    ids = ["007", "7", "a=b", "openai/gpt-4o", "null", "'; drop table x"]
    for number, model_id in enumerate(ids):
        lab.add(f"c{number}", {0: [1.0]}, model_id=model_id)
    found = lab.open().sql("select model_id from improvement order by cell_id").to_series().to_list()
    assert found == ids


def test_materialized_views_hold_the_same_rows(lab: Lab) -> None:
    lab.add(curve={0: [1.0, 2.0], 3: [2.0, 4.0]}, explored={0: [[Turn(1.0, 1.0)]]})
    views, tables = lab.open(), lab.open(materialize=True)
    for layer, name in views.views():
        if layer == "marts":
            assert views.sql(f"from {name} order by all").equals(tables.sql(f"from {name} order by all"))
    shutil.rmtree(lab.data / "tables")
    assert row(tables, "improvement")["last_score"] == 3.0


@pytest.mark.parametrize(
    "query",
    [
        "copy (select 1) to 'x.parquet'",
        "create table x as select 1",
        "drop view improvement",
        "set variable run_id = 'x'",
        "attach 'x.db'",
        "install httpfs",
        "pragma database_list",
        "explain analyze select 1",
        "select 1; select 2",
        "",
        "-- nothing",
        "with gone as (delete from raw.shipped_anchors returning *) select * from gone",
    ],
)
def test_only_one_select_passes(shared: Warehouse, query: str) -> None:
    with pytest.raises(WarehouseError, match="expected one SELECT|read-only"):
        shared.sql(query)
    assert shared.sql("select 1 as one").rows() == [(1,)]


@pytest.mark.parametrize(
    "query",
    [
        "from values (1) t(a)",
        "with a as (select 1) from a",
        "describe improvement",
        "show tables",
        "values (1)",
    ],
)
def test_other_ways_to_select_pass(shared: Warehouse, query: str) -> None:
    assert shared.sql(query).height > 0


@pytest.mark.parametrize("source", ["read_text('{0}')", "'{0}'", "read_csv('{1}/../secret.txt')", "glob('/*')"])
def test_files_outside_the_folder_are_closed(lab: Lab, source: str) -> None:
    secret = lab.data.parent / "secret.txt"
    secret.write_text("a,b\n1,2\n")
    with pytest.raises(WarehouseError, match="Permission Error|does not exist"):
        lab.open().sql(f"select * from {source.format(secret, lab.data)}")


def test_python_variables_are_no_tables(shared: Warehouse) -> None:
    frame = pl.DataFrame({"a": [1]})
    with pytest.raises(WarehouseError, match="frame does not exist"):
        shared.sql("from frame")
    assert frame.height == 1


def test_error_of_a_query_is_duckdbs_own(shared: Warehouse) -> None:
    with pytest.raises(WarehouseError, match='"scoer" not found(.|\n)*Candidate bindings: "score"'):
        shared.sql("select scoer from improvement_curve")


def test_damaged_file_is_named_with_a_remedy(lab: Lab) -> None:
    lab.add(curve={0: [1.0], 3: [2.0]})
    opened = lab.open()
    file = lab.data / "tables" / "episodes" / "snake" / "cell-evaluate-3.parquet"
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(WarehouseError, match=r"cell-evaluate-3\.parquet cannot be read.*delete it and run again"):
        opened.sql("from improvement")
    with pytest.raises(WarehouseError, match=r"cell-evaluate-3\.parquet cannot be read"):
        Warehouse(lab.data).sql("from improvement")


def test_file_damaged_before_opening_is_named(lab: Lab) -> None:
    lab.add(curve={0: [1.0]})
    lab.open()
    file = lab.data / "tables" / "cells" / "run-1.parquet"
    file.write_bytes(b"PAR1")
    with pytest.raises(WarehouseError, match=r"run-1\.parquet cannot be read"):
        Warehouse(lab.data)


def test_shipped_anchors_are_read_by_type_and_come_after_the_folders_own(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = lab.data.parent / "anchors.csv"
    names = storage.schema("anchors").names
    shipped.write_text(
        f"{','.join(names)}\n"
        "snake,007,evaluation,random,1,0,0,0,1\n"
        "snake,007,evaluation,expert,3,0.5,0.1,25,1\n"
        "snake,strict,evaluation,random,99,0,0,0,1\n"
    )
    monkeypatch.setattr(warehouse, "SHIPPED_ANCHORS", shipped)
    lab.anchors(random=0.0, expert=8.0)
    found = lab.open().sql("select config_id, random_mean, expert_mean, anchor_range from int_anchors order by 1")
    assert found.rows() == [("007", 1.0, 3.0, 2.0), ("strict", 0.0, 8.0, 8.0)]


def test_anchors_without_a_column_are_refused(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = lab.data.parent / "anchors.csv"
    shipped.write_text("game,player\nsnake,random\n")
    monkeypatch.setattr(warehouse, "SHIPPED_ANCHORS", shipped)
    with pytest.raises(WarehouseError, match=r"anchors\.csv cannot be read"):
        lab.open()


def test_describe_gives_the_header_and_suggests_near_names(shared: Warehouse) -> None:
    assert shared.describe("improvement").startswith("Improvement of a cell over its own start.\n\ngrain: cell\n")
    with pytest.raises(UnknownName, match="Did you mean improvement"):
        shared.describe("improvment")


def test_layer_that_reads_a_later_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warehouse, "_sql_folder", lambda: tmp_path)
    write(tmp_path / "staging" / "stg_a.sql", "select * from gain")
    write(tmp_path / "marts" / "gain.sql", "select 1 as a")
    with pytest.raises(WarehouseError, match="stg_a in staging reads gain of the later layer marts"):
        warehouse.read_views()


def test_circle_of_views_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warehouse, "_sql_folder", lambda: tmp_path)
    write(tmp_path / "marts" / "a.sql", "select * from b")
    write(tmp_path / "marts" / "b.sql", "-- from a in a comment only\nselect * from c")
    write(tmp_path / "marts" / "c.sql", "select 1 from b join a on true")
    with pytest.raises(WarehouseError, match="circle"):
        warehouse.read_views()


def test_sql_inside_the_package_works_from_any_folder(lab: Lab) -> None:
    lab.add(curve={0: [4.0]})
    lab.open()
    here = Path(s3gym.__file__).parent
    installed = lab.data.parent / "site"
    shutil.copytree(here, installed / "s3gym", ignore=shutil.ignore_patterns("__pycache__", "games", "models"))
    shutil.copytree(here.parent / "sql", installed / "s3gym" / "_sql")
    code = (
        "import sys, s3gym, s3gym.warehouse as w\n"
        "assert w._sql_folder().name == '_sql' and 'polars' not in sys.modules\n"
        f"score = s3gym.load({str(lab.data)!r}).sql('select score from improvement_curve').item()\n"
        "print(score, s3gym.__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=lab.data.parent,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["4.0", str(installed / "s3gym" / "__init__.py")]


def test_t_quantiles_leave_one_in_twenty_outside(shared: Warehouse) -> None:
    for df, quantile in shared.sql("from int_t_quantiles where isfinite(degrees_of_freedom)").rows():
        # density of t by Simpson's rule from -q to q
        scale = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(df * math.pi)
        width = 2 * quantile / 400
        heights = [scale * (1 + (-quantile + i * width) ** 2 / df) ** (-(df + 1) / 2) for i in range(401)]
        inside = width / 3 * (heights[0] + heights[-1] + 4 * sum(heights[1:-1:2]) + 2 * sum(heights[2:-1:2]))
        assert inside == pytest.approx(0.95, abs=2e-4), df


def test_degrees_of_freedom_between_two_rows_take_the_wider_interval(lab: Lab) -> None:
    # 36 scores, 35 degrees of freedom: t(30) = 2.042; eighteen 0 and eighteen 2: sd sqrt(36/35)
    lab.add(curve={0: [0.0, 2.0] * 18})
    point = row(lab.open(), "improvement_curve")
    assert point["score_high"] - 1 == pytest.approx(2.042 * math.sqrt(36 / 35) / 6)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    lab = Lab(tmp_path_factory.mktemp("shared") / "data")
    lab.add(curve={0: [1.0, 2.0]})
    return lab.open()


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
