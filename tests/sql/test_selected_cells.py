from datetime import UTC, datetime

import pytest

from s3gym.registry import UnknownName
from s3gym.resampling import refresh
from s3gym.warehouse import Selection, Warehouse, WarehouseError
from tests.sql.lab import Lab, row


def two_runs(lab: Lab) -> None:
    lab.add("old", {0: [1.0]}, run="run-1")
    lab.add("both", {0: [2.0]}, run="run-1")
    lab.add("both", {0: [2.0]}, run="run-2")
    lab.add("new", {0: [3.0]}, run="run-2")


@pytest.mark.parametrize(
    ("run_id", "cells"),
    [
        (None, [("both", "run-2"), ("new", "run-2")]),
        ("run-1", [("both", "run-1"), ("old", "run-1")]),
        ("all", [("both", "run-2"), ("new", "run-2"), ("old", "run-1")]),
    ],
)
def test_marts_show_the_selected_run(lab: Lab, run_id: str | None, cells: list[tuple[str, str]]) -> None:
    two_runs(lab)
    warehouse = lab.open(run_id)
    assert warehouse.sql("select cell_id, run_id from int_selected_cells order by cell_id").rows() == cells
    assert warehouse.sql("select cell_id from improvement order by cell_id").rows() == [(c,) for c, _ in cells]


def test_stg_runs_has_every_run_whatever_is_selected(lab: Lab) -> None:
    two_runs(lab)
    assert lab.open("run-1").sql("select run_id from stg_runs order by run_id").rows() == [
        ("run-1",),
        ("run-2",),
    ]


def test_unknown_run_is_refused_with_those_there_are(lab: Lab) -> None:
    two_runs(lab)
    with pytest.raises(WarehouseError, match="no run 'run-9'; expected one of: all, run-2, run-1"):
        lab.open("run-9")


def test_cell_that_two_runs_share_counts_its_episodes_once(lab: Lab) -> None:
    two_runs(lab)
    assert row(lab.open("all"), "improvement", "cell_id = 'both'")["episode_count"] == 1


def chosen(lab: Lab, run_id: str | None = None, **selection: object) -> list[str]:
    lab.open()
    warehouse = Warehouse(lab.data, run_id, selection=Selection(**selection))  # type: ignore[arg-type]
    return warehouse.sql("select cell_id from improvement order by 1").to_series().to_list()


def test_models_and_games_narrow_a_run_down(lab: Lab) -> None:
    for model in "ab":
        for game in ("snake", "trust", "pvz"):
            lab.add(f"{model} {game}", {0: [1.0]}, model_id=model, game=game)
    assert chosen(lab, models=("a",)) == ["a pvz", "a snake", "a trust"]
    assert chosen(lab, games=("trust", "pvz")) == ["a pvz", "a trust", "b pvz", "b trust"]
    assert chosen(lab, models=("b",), games=("snake",)) == ["b snake"]


def test_since_shows_all_runs_from_then_on(lab: Lab) -> None:
    two_runs(lab)
    # runs of the lab are requested on 1 January 2026 at 0 and 1 o'clock
    assert chosen(lab, since=datetime(2026, 1, 1, tzinfo=UTC)) == ["both", "new", "old"]
    assert chosen(lab, since=datetime(2026, 1, 1, 1, tzinfo=UTC)) == ["both", "new"]
    with pytest.raises(WarehouseError, match="no run since 2026-01-02: the latest was requested at 2026-01-01 01:00"):
        chosen(lab, since=datetime(2026, 1, 2, tzinfo=UTC))


def test_a_name_that_is_not_there_is_refused_with_the_nearest(lab: Lab) -> None:
    lab.add("cell", {0: [1.0]}, model_id="player:learner")
    lab.add("other", {0: [1.0]}, model_id="b", game="trust")
    with pytest.raises(UnknownName, match="player:learner"):
        chosen(lab, models=("player:lerner",))
    with pytest.raises(UnknownName, match="snake"):
        chosen(lab, games=("snakes",))
    with pytest.raises(WarehouseError, match="no cell of the runs that are looked at"):
        chosen(lab, models=("b",), games=("snake",))


def test_verdicts_of_a_part_are_corrected_for_that_part_and_kept_beside_those_of_the_whole(lab: Lab) -> None:
    for model in "ab":
        lab.add(model, {k: [1.0, 2.0, 0.0] for k in (0, 3)}, model_id=model)
    lab.open()
    counts = {}
    for selection in (Selection(), Selection(models=("a",)), Selection()):
        warehouse = Warehouse(lab.data, materialize=True, selection=selection)
        refresh(warehouse)
        counts[selection] = warehouse.sql("select compared_count from improvement_verdict").to_series().to_list()
    assert counts == {Selection(): [2, 2], Selection(models=("a",)): [1]}
    assert len(list((lab.data / "derived" / "noise_floors").iterdir())) == 2
