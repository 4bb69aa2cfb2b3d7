import pytest

from tests.sql.lab import Lab, Turn, row

MEASURES = ("kappa", "mcc", "auroc", "nmae_robust")


def test_five_scored_steps(lab: Lab) -> None:
    turns = [
        Turn(2.0, 1.0),
        Turn(1.0, 1.0),
        Turn(1.0, 0.0),
        Turn(0.0, 0.0),
        Turn(-1.0, 0.0),
        Turn(None, 1.0),  # in no number
    ]
    lab.add(explored={0: [turns]})
    judge = row(lab.open(), "judge_discrimination")
    counts = ("scored_count", "positive_count", "claimed_count", "both_count")
    assert [judge[name] for name in counts] == [5, 2, 3, 2]
    # agreement 4/5; by chance 2/5 * 3/5 + 3/5 * 2/5 = 12/25; (20/25 - 12/25) / (13/25)
    assert judge["kappa"] == pytest.approx(8 / 13)
    # (2/5 - 2/5 * 3/5) / sqrt(2/5 * 3/5 * 3/5 * 2/5) = (4/25) / (6/25)
    assert judge["mcc"] == pytest.approx(2 / 3)
    # 2 is above 1, 0 and -1; 1 is level with 1 and above 0 and -1: 3 + 2.5 of 6 pairs
    assert judge["auroc"] == pytest.approx(5.5 / 6)


def test_a_judge_that_is_always_wrong_is_at_the_other_end(lab: Lab) -> None:
    lab.add(explored={0: [[Turn(1.0, 0.0), Turn(0.0, 1.0)]]})
    judge = row(lab.open(), "judge_discrimination")
    assert [judge[name] for name in MEASURES] == [-1.0, -1.0, 0.0, 1.0]


def test_one_self_score_for_all_is_a_coin(lab: Lab) -> None:
    lab.add(explored={0: [[Turn(1.0, 0.0), Turn(1.0, 1.0), Turn(1.0, 1.0)]]})
    judge = row(lab.open(), "judge_discrimination")
    # it agrees in 2 of 3, and so would chance: 2/3 * 1 + 1/3 * 0
    assert [judge[name] for name in MEASURES] == [0.0, None, 0.5, None]


def test_rewards_of_one_kind_leave_nothing_to_tell_apart(lab: Lab) -> None:
    lab.add("divided", explored={0: [[Turn(1.0, 1.0), Turn(0.0, 1.0)]]})
    lab.add("content", explored={0: [[Turn(1.0, 1.0)] * 2]})
    rows = lab.open().sql("select kappa, mcc, auroc from judge_discrimination order by cell_id desc").rows()
    # divided: agreement 1/2, by chance 1 * 1/2; content: by chance 1, so that nothing can be beyond it
    assert rows == [(0.0, None, None), (None, None, None)]


def test_phases_are_rows(lab: Lab) -> None:
    lab.add(curve={0: [[Turn(1.0, 1.0), Turn(0.0, 0.0)]]}, explored={0: [[Turn(1.0, 0.0), Turn(0.0, 1.0)]]})
    rows = lab.open().sql("select phase, kappa, auroc from judge_discrimination order by phase").rows()
    assert rows == [("evaluation", 1.0, 1.0), ("exploration", -1.0, 0.0)]


@pytest.mark.parametrize("play", [[Turn(None, 1.0), Turn(None, 0.0)], None])
def test_without_scored_steps_there_are_counts_of_zero_and_nulls(lab: Lab, play: list[Turn] | None) -> None:
    lab.add(explored={0: [play]})
    judge = row(lab.open(), "judge_discrimination")
    assert (judge["scored_count"], judge["positive_count"], judge["both_count"]) == (0, 0, 0)
    assert [judge[name] for name in MEASURES] == [None] * 4


def test_nothing_played_is_no_row(lab: Lab) -> None:
    lab.add()
    assert lab.open().sql("from judge_discrimination").height == 0


def test_robust_error_is_on_the_scale_of_the_percentiles(lab: Lab) -> None:
    turns = [Turn(0.0, 0.0), Turn(25.0, 0.0), Turn(50.0, 0.0), Turn(75.0, 1.0), Turn(100.0, 1.0)]
    lab.add(explored={0: [turns]})
    # of self-scores, 4 % of the way between neighbours from either end: 1 and 99; of rewards 0 and 1. So 0 and 100 are
    # clipped to 0 and 1, the others are 24/98, 49/98 and 74/98: errors 0, 24/98, 49/98, 24/98, 0
    assert row(lab.open(), "judge_discrimination")["nmae_robust"] == pytest.approx(97 / 98 / 5)


def test_robust_scale_is_pooled_over_the_cells_of_a_game(lab: Lab) -> None:
    lab.add("a", explored={0: [[Turn(0.0, 0.0)]]})
    lab.add("b", explored={0: [[Turn(1.0, 0.0)]]}, pathway="memory")
    lab.add("c", explored={0: [[Turn(2.0, 2.0)]]}, pathway="training")
    lab.add("alone", explored={0: [[Turn(2.0, 2.0)]]}, game="tetris")
    rows = lab.open().sql("select cell_id, nmae_robust from judge_discrimination order by cell_id").rows()
    # self-scores 0, 1, 2 go from 0.02 to 1.98, so 1 is in the middle; rewards from 0 to 1.96
    assert rows == [("a", 0.0), ("alone", None), ("b", pytest.approx(0.5)), ("c", 0.0)]
