import pytest

from s3gym.warehouse import WarehouseError
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
