import pytest

from tests.sql.lab import Lab, row


def test_segment_that_crosses_the_start_counts_its_triangle(lab: Lab) -> None:
    # Thirds, y_0 = 2/3, as deviations from it: 0, -1/3, +1/3, -2/3, checkpoints 3 apart.
    #   0 to 3: nothing above
    #   3 to 6: up through y_0; 3 * (1/3)^2 / (2 * 2/3) = 1/4
    #   6 to 9: down through y_0; 3 * (1/3)^2 / (2 * 1) = 1/6
    # AUC+ = 5/12 = 0.417, a published value; trapezoids of clipped end points give multiples of 1/2 only.
    lab.add(curve={0: [1, 1, 0], 3: [1, 0, 0], 6: [1, 1, 1], 9: [0, 0, 0]})
    cell = row(lab.open(), "improvement")
    assert cell["auc_plus"] == pytest.approx(5 / 12)
    # net: 3 * (-1/3)/2 + 0 + 3 * (1/3 - 2/3)/2 = -1
    assert cell["net_area"] == pytest.approx(-1)
    assert cell["auc_minus"] == pytest.approx(17 / 12)
    # NABA: 5/12 / (2/3) = 5/8
    assert cell["naba"] == pytest.approx(0.625)
    assert (cell["naba_status"], cell["last_checkpoint"]) == ("ok", 9)


def test_scores_of_a_curve(lab: Lab) -> None:
    lab.anchors(random=1.0, expert=5.0)
    lab.add(curve={0: [2.0], 3: [4.0], 6: [3.0]}, evaluation_episode_count=1)
    cell = row(lab.open(), "improvement")
    assert [cell[name] for name in ("initial_score", "last_score", "avg_score", "max_score")] == [2, 3, 3, 4]
    assert cell["score_delta"] == 1
    # area above 2: 3 * (0 + 2)/2 + 3 * (2 + 1)/2 = 7.5; over 6 episodes and a range of 4: 7.5 / 24
    assert (cell["auc_plus"], cell["auc_minus"], cell["net_area"]) == (7.5, 0, 7.5)
    assert cell["normalised_net_area"] == pytest.approx(0.3125)
    # (score - 1) / 4
    normalised = [cell[f"normalised_{name}"] for name in ("initial", "last", "avg")]
    assert normalised == [0.25, 0.5, 0.5]


def test_invalid_checkpoint_joins_its_neighbours(lab: Lab) -> None:
    lab.add(curve={0: [1.0, 1.0], 3: [9.0, None], 6: [3.0, 3.0]})
    cell = row(lab.open(), "improvement")
    # one segment from 0 to 6: 6 * (0 + 2)/2; Avg and Max without the invalid one
    assert (cell["auc_plus"], cell["avg_score"], cell["max_score"]) == (6.0, 2.0, 3.0)
    assert (cell["checkpoint_count"], cell["valid_checkpoint_count"]) == (3, 2)
    assert (cell["episode_count"], cell["invalid_episode_count"]) == (5, 1)


def test_invalid_last_checkpoint_leaves_the_one_before_as_last(lab: Lab) -> None:
    lab.add(curve={0: [1.0], 3: [2.0], 6: [None]})
    cell = row(lab.open(), "improvement")
    assert (cell["last_score"], cell["last_checkpoint"], cell["score_delta"]) == (2.0, 3, 1.0)


def test_start_of_zero_divides_by_the_smallest_positive_mean(lab: Lab) -> None:
    lab.add(curve={0: [0.0, 0.0], 3: [1.0, 1.0]}, smallest_positive_score=0.5, evaluation_episode_count=2)
    # AUC+ = 3 * 1/2 = 1.5; eps = 0.5 / 2 = 0.25
    assert row(lab.open(), "improvement")["naba"] == pytest.approx(6.0)


def test_negative_start_has_areas_and_no_naba(lab: Lab) -> None:
    lab.anchors(random=0.0, expert=2.0)
    lab.add(curve={0: [-1.0], 3: [1.0]})
    cell = row(lab.open(), "improvement")
    assert (cell["naba"], cell["naba_status"]) == (None, "negative_start")
    # 3 * 2/2 = 3; over 3 episodes and a range of 2
    assert (cell["auc_plus"], cell["normalised_net_area"]) == (3.0, 0.5)


def test_no_area_without_a_valid_start_and_a_second_checkpoint(lab: Lab) -> None:
    curves = [{0: [1.0]}, {0: [None], 3: [1.0], 6: [2.0]}, {0: [1.0], 3: [None]}, {}]
    for number, curve in enumerate(curves):
        lab.add(f"cell {number}", curve)
    names = ("score_delta", "auc_plus", "auc_minus", "net_area", "naba", "normalised_net_area")
    cells = lab.open().sql("from improvement order by cell_id").to_dicts()
    assert [cell["checkpoint_count"] for cell in cells] == [1, 3, 2, 0]
    assert [[cell[name] for name in names] for cell in cells] == [[None] * 6] * 4
    assert [cell["naba_status"] for cell in cells] == ["undefined"] * 4


def test_curve_that_never_moves_has_area_zero(lab: Lab) -> None:
    lab.add(curve={0: [2.0], 3: [2.0]})
    cell = row(lab.open(), "improvement")
    assert (cell["auc_plus"], cell["auc_minus"], cell["naba"], cell["naba_status"]) == (0, 0, 0, "ok")
