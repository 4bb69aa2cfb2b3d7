"""Every file of ``sql/`` keeps what its header says, on one folder with a bit of everything."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from s3gym.resampling import refresh
from s3gym.warehouse import LAYERS, Warehouse, dictionary, read_views
from tests.sql.lab import EXPERIENCE, JUDGMENT, SFT_ROW, TRAINING_STEP, Lab, Turn

VIEWS = read_views()
KEYED = sorted(view.name for view in VIEWS.values() if view.layer != "checks")


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    lab = Lab(tmp_path_factory.mktemp("headers") / "data")
    lab.anchors(random=0.0, expert=3.0)
    lab.add("history as it was", {3: [0.0, 1.0, 2.0]}, run="run-0", game_version=0)
    lab.refresh("run-0", 0)
    lab.refresh("run-1", 1, reasons='{"game VERSION 0 -> 1": 3}')
    explored = {0: [[Turn(1.0, 2.0), Turn(None, 0.0)], None], 3: [[Turn(1.0, 1.0)] * 3]}
    for replicate in range(2):
        for number, pathway in enumerate(("none", "history", "memory")):
            curve = {0: [0.0, 1.0, -1.0], 3: [1.0, 1.0 + number, 2.0], 6: [None, 1.0, 1.0]}
            lab.add(
                f"{pathway} {replicate}",
                curve,
                {} if pathway == "none" else explored,
                start=f"y0 {replicate}",
                pathway=pathway,
                replicate=replicate,
            )
    lab.link("build_experience", "built", 3, cell_id="history 0")
    judged = [replace(JUDGMENT, episode_id=f"history 0-explore-0/{index}") for index in range(2)]
    memory = {"kind": "memory", "text": "- Eat [episode 1]"}
    lab.part("built", {"experiences": [replace(EXPERIENCE, stage_key="built", failed_attempts=0, **memory)]})
    lab.link("self_judge", "judged", 0, cell_id="history 0")
    lab.part("judged", {"judgments": judged})
    trained = {"pathway": "training", "training": "{}"}
    lab.add("training 0", {0: [0.0, 1.0, -1.0], 3: [1.0]}, {0: [[Turn(1.0, 2.0)]]}, start="y0 0", **trained)
    lab.train(3, [replace(SFT_ROW, episode_id="training 0-explore-0/0")], [TRAINING_STEP], "training 0")
    for checkpoint in (0, 3):
        lab.transfer(checkpoint, "trust", [1.0, 2.0], "training 0")
    warehouse = lab.open()
    refresh(warehouse)
    return warehouse


def section(view: str, name: str) -> str:
    found = re.search(rf"^{name}: ?(.*?)(?=^\S|\Z)", VIEWS[view].header, re.MULTILINE | re.DOTALL)
    assert found, f"{view} has no {name}:"
    return found[1]


@pytest.mark.parametrize("view", sorted(VIEWS))
def test_documented_columns_are_the_columns(warehouse: Warehouse, view: str) -> None:
    lines = [line for line in section(view, "columns").splitlines() if re.match(r"  \S", line)]
    documented = [line.split()[0] for line in lines]
    assert documented == warehouse.sql(f"from {view} limit 0").columns
    assert all(len(line.split()) > 1 for line in lines), "a column without a word"


@pytest.mark.parametrize("view", KEYED)
def test_key_is_unique_and_never_null(warehouse: Warehouse, view: str) -> None:
    key = section(view, "key").strip()
    nulls = " or ".join(f"{column.strip()} is null" for column in key.split(","))
    assert warehouse.sql(f"from {view}").height > 0, "the fixture leaves this view empty"
    assert warehouse.sql(f"select {key} from {view} group by {key} having count(*) > 1 or {nulls}").rows() == []


@pytest.mark.parametrize("view", sorted(VIEWS))
def test_header_begins_with_a_purpose_and_names_the_grain(view: str) -> None:
    assert VIEWS[view].header.split("\n\n")[0].endswith(".")
    assert section(view, "grain").strip()


def test_there_is_no_nan_anywhere(warehouse: Warehouse) -> None:
    for view in VIEWS:
        frame = warehouse.sql(f"from {view}")
        floats = [name for name, kind in frame.schema.items() if kind.is_float()]
        assert not any(frame[name].is_nan().any() for name in floats), view


def test_checks_find_nothing_on_sound_rows(warehouse: Warehouse) -> None:
    found = warehouse.checks()
    assert sorted(found) == sorted(view.name for view in VIEWS.values() if view.layer == "checks")
    assert set(found.values()) == {0}


def test_dictionary_is_the_committed_page() -> None:
    page = Path(__file__).parents[2] / "sql" / "README.md"
    assert page.read_text(encoding="utf-8") == dictionary()


def test_every_view_comes_after_what_it_reads_and_stays_in_its_layer() -> None:
    order = list(VIEWS)
    for view in VIEWS.values():
        for source in (VIEWS[name] for name in view.reads if name in VIEWS):
            assert order.index(source.name) < order.index(view.name)
            assert LAYERS.index(source.layer) <= LAYERS.index(view.layer)
