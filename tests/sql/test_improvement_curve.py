import pytest

from tests.sql.lab import Lab, row


def test_interval_is_students_t_over_the_episodes(lab: Lab) -> None:
    lab.add(curve={0: [1.0, 2.0, 3.0]})
    point = row(lab.open(), "improvement_curve")
    # mean 2, sd 1, n 3, t(2) = 4.303: half-width 4.303 / sqrt(3) = 2.48434
    assert point["score"] == 2.0
    assert point["score_low"] == pytest.approx(-0.48434, abs=1e-5)
    assert point["score_high"] == pytest.approx(4.48434, abs=1e-5)
    assert (point["requested_count"], point["episode_count"], point["invalid_count"]) == (3, 3, 0)


def test_instances_that_are_all_there_is_are_strata(lab: Lab) -> None:
    lab.add("once", {0: [1.0, 9.0]}, is_instances_shared=True)
    points = lab.open().sql("select score, score_low from improvement_curve").rows()
    assert points == [(5.0, None)]  # once each: nothing left to vary


def test_scores_without_spread_have_no_interval(lab: Lab) -> None:
    lab.add("alone", {0: [2.0]})
    lab.add("equal", {0: [2.0, 2.0, 2.0]})
    points = lab.open().sql("select score, score_low, score_high from improvement_curve").rows()
    assert points == [(2.0, None, None)] * 2


def test_one_invalid_episode_leaves_the_checkpoint_without_a_score(lab: Lab) -> None:
    lab.add(curve={0: [1.0, 1.0], 3: [2.0, None]})
    point = row(lab.open(), "improvement_curve", "checkpoint = 3")
    assert (point["is_valid"], point["score"], point["score_delta"]) == (False, None, None)
    assert (point["requested_count"], point["episode_count"], point["invalid_count"]) == (2, 1, 1)


def test_checkpoint_not_played_yet_is_there_without_a_score(lab: Lab) -> None:
    lab.add(curve={0: [1.0]})
    lab.link("evaluate", "to come", 3)
    point = row(lab.open(), "improvement_curve", "checkpoint = 3")
    assert (point["is_valid"], point["score"]) == (False, None)
    assert (point["requested_count"], point["episode_count"], point["invalid_count"]) == (3, 0, 0)


def test_episodes_of_a_bigger_budget_are_not_the_cells(lab: Lab) -> None:
    lab.add(curve={0: [1.0, 2.0, 9.0, 9.0]}, budget=2)
    point = row(lab.open(), "improvement_curve")
    assert (point["score"], point["episode_count"], point["is_valid"]) == (1.5, 2, True)


def test_cells_share_the_evaluation_before_any_experience(lab: Lab) -> None:
    lab.add("a", {0: [1.0, 3.0], 3: [4.0, 4.0]}, start="y0", pathway="history")
    lab.add("b", {0: [1.0, 3.0], 3: [5.0, 5.0]}, start="y0", pathway="memory")
    points = lab.open().sql("from improvement_curve order by cell_id, checkpoint").to_dicts()
    assert [(p["cell_id"], p["score"], p["score_delta"]) for p in points] == [
        ("a", 2.0, 0.0),
        ("a", 4.0, 2.0),
        ("b", 2.0, 0.0),
        ("b", 5.0, 3.0),
    ]


def test_normalised_score_is_unclipped_between_random_and_expert(lab: Lab) -> None:
    lab.anchors(random=2.0, expert=10.0)
    lab.add(curve={0: [1.0], 3: [4.0], 6: [12.0]})
    points = lab.open().sql("from improvement_curve order by checkpoint").to_dicts()
    # (1 - 2) / 8, (4 - 2) / 8, (12 - 2) / 8
    assert [point["normalised_score"] for point in points] == [-0.125, 0.25, 1.25]


def test_no_normalised_score_without_two_different_anchors(lab: Lab) -> None:
    lab.anchors(3.0, 3.0, config_id="flat")
    lab.add("flat", {0: [4.0]}, evaluation_config_id="flat")
    lab.add("unmeasured", {0: [4.0]}, evaluation_config_id="unmeasured")
    assert lab.open().sql("select score, normalised_score from improvement_curve").rows() == [(4.0, None)] * 2
