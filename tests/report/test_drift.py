from pathlib import Path

import pytest

from s3gym.report.sections import drift
from tests.sql.lab import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path / "data")


def test_with_one_refresh_there_is_no_section(lab: Lab) -> None:
    lab.add("cell", {3: [1.0]})
    lab.refresh("run-1", 1)

    assert drift.build(lab.open()) == ""


def test_cells_measured_anew_stand_beside_what_they_were_with_the_cause(lab: Lab) -> None:
    lab.add("old", {3: [1.0, 2.0, 3.0, 4.0]}, run="before", game_version=1)
    lab.add("new", {3: [2.0, 4.0, 4.0, 6.0]}, run="after", game_version=2)
    lab.refresh("before", 1, verdicts='{"old": "no_improvement_shown"}')
    lab.refresh("after", 2, reasons='{"game VERSION 1 -> 2": 4}', trigger="schedule")

    shown = drift.build(lab.open())

    assert "game VERSION 1 -&gt; 2" in shown
    assert "2.50 → 4.00" in shown
    assert "+1.50" in shown
    assert "▲</span> higher" in shown
    assert "no improvement shown → " in shown
    assert "game VERSION 1 -&gt; 2 (4)" in shown and "schedule" in shown
    assert "No input changed" not in shown


def test_without_a_change_the_section_says_that_nothing_can_have_changed(lab: Lab) -> None:
    lab.add("cell", {3: [1.0]}, run="before")
    lab.add("cell", {3: [1.0]}, run="after")
    lab.refresh("before", 1)
    lab.refresh("after", 2, failure="<b>a cell</b> failed", status="failed")

    shown = drift.build(lab.open())

    assert "No input changed" in shown
    assert "&lt;b&gt;a cell&lt;/b&gt; failed" in shown
