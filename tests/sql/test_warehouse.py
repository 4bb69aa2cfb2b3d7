import math
import os
import shutil
import subprocess
import sys
import threading
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
        "call pragma_version()",
        "load json",
        "export database 'x'",
        "update extensions",
        "with gone as (delete from raw.shipped_anchors returning *) select * from gone",
        "with more as (insert into raw.shipped_anchors from raw.shipped_anchors returning *) from more",
        "with other as (update raw.shipped_anchors set mean = 0 returning *) from other",
    ],
)
def test_only_one_select_passes(shared: Warehouse, query: str) -> None:
    with pytest.raises(WarehouseError, match="expected one SELECT"):
        shared.sql(query)
    assert shared.sql("select 1 as one").rows() == [(1,)]


@pytest.mark.parametrize(
    "query",
    [
        "copy (select 1) to '{0}'",
        "with written as (copy (select 1 as a) to '{0}') from written",
        "with written as (copy (select 1 as a) to '{0}' (use_tmp_file false)) select 1",
        "from (with written as (copy (select 1 as a) to '{0}') from written)",
        "from query('with written as (copy (select 1 as a) to ''{0}'') from written')",
        "from query('copy (select 1) to ''{0}''')",
        "from enable_logging(storage = 'file', storage_path = '{0}')",
        "from enable_profiling(save_location = '{0}')",
    ],
)
@pytest.mark.parametrize("place", ["x.csv", "data/x.csv", "data/tables/x.csv"])
def test_no_query_writes_a_file(shared: Warehouse, query: str, place: str) -> None:
    around = shared.data.parent
    before = sorted(around.rglob("*"))

    with pytest.raises(WarehouseError):
        shared.sql(query.format(around / place))

    assert sorted(around.rglob("*")) == before


def test_a_table_cannot_be_written_over(shared: Warehouse) -> None:
    (file,) = shared.files["episodes"]
    before = file.read_bytes()

    with pytest.raises(WarehouseError):
        shared.sql(f"with w as (copy (select 1) to '{file}' (format csv, use_tmp_file false)) from w")

    assert file.read_bytes() == before


def test_a_pivot_without_values_is_told_the_way(shared: Warehouse) -> None:
    with pytest.raises(WarehouseError, match="a PIVOT names its values"):
        shared.sql("pivot improvement on game using avg(last_score)")
    assert shared.sql("pivot improvement on game in ('snake') using avg(last_score)").height == 1


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


@pytest.mark.parametrize(
    "source",
    [
        *("read_text('{0}')", "'{0}'", "read_csv('{1}/../secret.txt')", "read_csv('{1}/tables/../../secret.txt')"),
        *("read_blob('{0}')", "sniff_csv('{0}')", "glob('/*')", "glob('{1}/*')", "read_json('{1}/s3gym.json')"),
        *("'{1}/s3gym.json'", "read_blob('{1}/journal.sqlite')", "read_duckdb('{1}/journal.sqlite')"),
        *("sqlite_scan('{1}/journal.sqlite', 'calls')", "read_text('{1}/manifests/cell-evaluate-0.json')"),
        *("'https://example.com/x.csv'", "read_parquet('s3://bucket/x.parquet')", "read_text('.tmp/secret.txt')"),
        *("duckdb_secrets()", "query('from read_text(''{0}'')')", "read_text('file://{0}')"),
    ],
)
def test_files_that_are_no_tables_are_closed(shared: Warehouse, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    around = shared.data.parent
    (around / ".tmp").mkdir(exist_ok=True)
    for place in ("secret.txt", ".tmp/secret.txt", "data/journal.sqlite"):
        (around / place).write_text("a,b\n1,2\n")
    monkeypatch.chdir(around)
    with pytest.raises(WarehouseError, match="Permission Error|does not exist|not in the catalog"):
        shared.sql(f"select * from {source.format(around / 'secret.txt', shared.data)}")


def test_a_closed_file_is_told_with_what_can_be_read(shared: Warehouse) -> None:
    with pytest.raises(WarehouseError, match="a query reads the tables here by their names"):
        shared.sql("from read_csv('/etc/passwd')")


@pytest.mark.parametrize(
    "change", ["set enable_external_access = true", "set lock_configuration = false", "reset allowed_directories"]
)
def test_what_is_closed_stays_closed(shared: Warehouse, change: str) -> None:
    with pytest.raises(WarehouseError, match="got SET"):
        shared.sql(change)
    with pytest.raises(WarehouseError, match="Permission Error"):
        shared.sql("from glob('/*')")


def test_a_folder_is_read_whole_while_another_process_writes(lab: Lab) -> None:
    lab.add("c0", {0: [1.0]})
    lab.open()
    writing = (
        "import pathlib, sys, time\n"
        "from tests.sql.lab import Lab\n"
        "lab, end, number = Lab(pathlib.Path(sys.argv[1])), time.monotonic() + 60, 0\n"
        "while time.monotonic() < end:\n"
        "    number += 1\n"
        "    lab.add(f'c{number}', {0: [1.0, 2.0]})\n"
        "    lab.open()\n"
    )
    writer = subprocess.Popen([sys.executable, "-c", writing, str(lab.data)], cwd=Path(__file__).parents[2])
    try:
        seen: list[int] = []
        while len(set(seen)) < 4 and writer.poll() is None:
            opened = Warehouse(lab.data, "all")
            for _ in range(2):  # an opened folder does not change
                stages, steps, scores = opened.sql(
                    "select (select count(distinct stage_key) from stg_episodes), "
                    "(select count(*) from stg_steps), (select count(*) from stg_episodes)"
                ).row(0)
                assert steps == scores == 2 * stages - 1  # two episodes of one step a part, but for the first
            seen.append(stages)
        assert writer.poll() is None, "the writer has failed"
        assert seen == sorted(seen)
    finally:
        writer.kill()
        writer.wait()


def test_python_variables_are_no_tables(shared: Warehouse) -> None:
    frame = pl.DataFrame({"a": [1]})
    with pytest.raises(WarehouseError, match="frame does not exist"):
        shared.sql("from frame")
    assert frame.height == 1


@pytest.mark.parametrize(
    ("query", "told"),
    [
        (
            "select scoer from improvement_curve",
            r'"scoer" not found(.|\n)*Candidate bindings: "score"(.|\n)*\^\^\^\^\^',
        ),
        ("select i.scor\nfrom improvement_curve as i", r"LINE 1: select i\.scor(.|\n)*Candidate columns: score"),
        ("select 1\nfrom improvment", r'Did you mean "improvement"(.|\n)*LINE 2: from improvment\n +\^{10}'),
        ("from steps", r'Did you mean "raw.steps"'),
        ("selct 1", r"LINE 1: selct 1\n +\^{5}"),
    ],
)
def test_an_error_points_at_the_word(shared: Warehouse, query: str, told: str) -> None:
    with pytest.raises(WarehouseError, match=told):
        shared.sql(query)


def test_a_view_is_made_when_it_is_asked_for_however_that_is_said(lab: Lab) -> None:
    lab.add(curve={0: [1.0]})
    names = {name for _, name in lab.open().views()}
    assert names <= {name for (name,) in lab.open().sql("select table_name from information_schema.tables").rows()}
    assert names <= {name for (name,) in lab.open().sql("show tables").rows()}
    assert lab.open().sql("from query_table('improve' || 'ment_curve')").height == 1
    assert lab.open().sql('select count(*) from "Improvement_Curve"').item() == 1


def test_columns_are_told_of_views_and_raw_tables(shared: Warehouse) -> None:
    columns = shared.columns()
    for name in ("improvement", "stg_steps", "raw.steps", "raw.shipped_anchors"):
        assert sorted(columns[name]) == sorted(shared.sql(f"from {name} limit 0").columns)
    assert {f"raw.{table}" for table in TABLES} <= set(columns)


def test_a_query_is_cancelled_from_another_thread(shared: Warehouse) -> None:
    threading.Timer(0.3, shared.cancel).start()
    with pytest.raises(KeyboardInterrupt):
        shared.sql("select sum(a.range * b.range) from range(1000000) as a, range(3000000) as b")
    assert shared.sql("select 1 as one").rows() == [(1,)]


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
    finite = "select degrees_of_freedom, t_quantile from int_t_quantiles where isfinite(degrees_of_freedom)"
    for df, quantile in shared.sql(finite).rows():
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
