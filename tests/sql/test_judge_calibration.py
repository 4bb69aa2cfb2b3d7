import pytest

from tests.sql.lab import Lab, Turn, row
from tests.sql.test_judge_reliability import wilson


def test_bins_are_of_the_game_and_shares_of_the_cell(lab: Lab) -> None:
    lab.add("a", explored={0: [[Turn(0.0, 0.0), Turn(0.0, 1.0), Turn(1.0, 1.0), Turn(1.0, 2.0), Turn(None, 1.0)]]})
    lab.add("b", explored={0: [[Turn(1.0, 0.0), Turn(5.0, 1.0)]]}, pathway="memory")
    lab.add("other", explored={0: [[Turn(9.0, 0.0)]]}, game="tetris")
    columns = "cell_id, bin, self_score_min, self_score_max, step_count, positive_count, positive_share"
    rows = lab.open().sql(f"select {columns} from judge_calibration order by cell_id, bin").rows()
    # six scored steps of snake: 0 twice, so 10 * (0 + 1) / 6 = 1.7; 1 three times, 10 * (2 + 1.5) / 6 = 5.8;
    # 5 once, 10 * (5 + 0.5) / 6 = 9.2. A value alone is in the middle: 10 * 0.5 / 1 = 5
    assert rows == [
        ("a", 1, 0.0, 0.0, 2, 1, 0.5),
        ("a", 5, 1.0, 1.0, 2, 2, 1.0),
        ("b", 5, 1.0, 1.0, 1, 0, 0.0),
        ("b", 9, 5.0, 5.0, 1, 1, 1.0),
        ("other", 5, 9.0, 9.0, 1, 0, 0.0),
    ]


def test_shares_have_wilson_intervals_and_the_share_of_the_game_beside_them(lab: Lab) -> None:
    lab.add("a", explored={0: [[Turn(0.0, 0.0), Turn(0.0, 1.0), Turn(1.0, 1.0), Turn(1.0, 2.0)]]})
    lab.add("b", explored={0: [[Turn(1.0, 0.0), Turn(5.0, 1.0)]]}, pathway="memory")
    opened = lab.open()
    half = row(opened, "judge_calibration", "cell_id = 'a' and positive_count = 1")
    assert (half["positive_share_low"], half["positive_share_high"]) == pytest.approx(wilson(1, 2))
    whole = row(opened, "judge_calibration", "cell_id = 'a' and positive_count = 2")
    assert (whole["positive_share_low"], whole["positive_share_high"]) == (pytest.approx(2 / (2 + 1.96**2)), 1.0)
    assert opened.sql("select distinct game_positive_share from judge_calibration").item() == pytest.approx(4 / 6)


def test_rare_self_scores_share_a_bin(lab: Lab) -> None:
    lab.add(explored={0: [[Turn(1.0, 0.0)] * 18 + [Turn(2.0, 0.0), Turn(5.0, 1.0)]]})
    # of 20 steps, 2 is at 10 * 18.5 / 20 = 9.25 and 5 at 10 * 19.5 / 20 = 9.75
    last = row(lab.open(), "judge_calibration", "bin = 9")
    assert (last["self_score_min"], last["mean_self_score"], last["self_score_max"]) == (2.0, 3.5, 5.0)
    assert (last["step_count"], last["positive_share"]) == (2, 0.5)


def test_phases_have_bins_of_their_own(lab: Lab) -> None:
    lab.add(curve={0: [[Turn(1.0, 1.0)]]}, explored={0: [[Turn(1.0, 0.0), Turn(2.0, 0.0)]]})
    rows = lab.open().sql("select phase, bin, game_positive_share from judge_calibration order by all").rows()
    # two values: 10 * 0.5 / 2 and 10 * 1.5 / 2
    assert rows == [("evaluation", 5, 1.0), ("exploration", 2, 0.0), ("exploration", 7, 0.0)]


@pytest.mark.parametrize("plays", [[], [None], [[Turn(None, 1.0)]]])
def test_nothing_scored_is_no_row(lab: Lab, plays: list[list[Turn] | None]) -> None:
    lab.add(explored={0: plays})
    assert lab.open().sql("from judge_calibration").height == 0
