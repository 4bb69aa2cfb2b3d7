import random
import statistics

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


def test_errors_are_those_of_whole_episodes(lab: Lab) -> None:
    right, wrong = [Turn(1.0, 1.0), Turn(0.0, 0.0)], [Turn(0.0, 1.0), Turn(1.0, 0.0)]
    lab.add(explored={0: [right, right, wrong]})
    opened = lab.open()
    errors = dict(opened.sql("select measure, standard_error from int_judge_intervals").rows())
    # kappa and mcc are 1/3, and without each episode 0, 0, 1: error^2 = 2/3 * (1 + 1 + 4)/9 = 4/9
    assert (errors["kappa"], errors["mcc"]) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    # auroc: rewarded steps have 1, 1, 0, the others 0, 0, 1: (2.5 + 2.5 + 1) of 9 pairs, 2/3. A rewarded step with 1
    # has 5/6 of the others below it, one with 0 has 1/3; likewise the other steps. So the first two episodes add
    # 2 * (5/6 - 2/3)/3 = 1/9 each, the last 2 * (1/3 - 2/3)/3 = -2/9: error^2 = 3/2 * (1 + 1 + 4)/81 = 1/9
    assert errors["auroc"] == pytest.approx(1 / 3)
    judge = row(opened, "judge_discrimination")
    # 1/3 -+ 4.303 * 2/3, and 2/3 -+ 4.303/3, cut off at what they can be
    assert (judge["kappa_low"], judge["kappa_high"], judge["mcc_low"], judge["mcc_high"]) == (-1.0, 1.0, -1.0, 1.0)
    assert (judge["auroc"], judge["auroc_low"], judge["auroc_high"]) == (pytest.approx(2 / 3), 0.0, 1.0)


def test_the_area_moves_as_it_does_without_an_episode(lab: Lab) -> None:
    dice = random.Random(3)
    plays = [
        [Turn(round(reward + dice.gauss(luck, 1), 1), reward) for reward in dice.choices([0.0, 1.0], k=8)]
        for luck in (dice.gauss(0, 0.5) for _ in range(12))
    ]
    for number in range(12):
        lab.add(f"without {number}", explored={0: plays[:number] + plays[number + 1 :]})
    lab.add("all", explored={0: plays}, pathway="memory")
    opened = lab.open()
    areas = [value for (value,) in opened.sql("select auroc from judge_discrimination where cell_id != 'all'").rows()]
    judge = row(opened, "judge_discrimination", "cell_id = 'all'")
    # the jackknife itself: 11/12 of the sum of squares; t(11) = 2.201; to first order they are the same
    reach = 2.201 * (11 * statistics.pvariance(areas)) ** 0.5
    assert judge["auroc_high"] - judge["auroc"] == pytest.approx(reach, rel=0.1)
    assert judge["auroc_low"] == pytest.approx(2 * judge["auroc"] - judge["auroc_high"])


def test_a_measure_that_is_not_defined_without_some_episode_has_no_interval(lab: Lab) -> None:
    lab.add(explored={0: [[Turn(1.0, 1.0), Turn(0.0, 1.0)], [Turn(1.0, 0.0)], [Turn(1.0, 1.0)]]})
    judge = row(lab.open(), "judge_discrimination")
    # without the first no step is claimed to earn nothing
    assert judge["mcc"] is not None and (judge["mcc_low"], judge["mcc_high"]) == (None, None)
    assert judge["instance_count"] == 3


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
