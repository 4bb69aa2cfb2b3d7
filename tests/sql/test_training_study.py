from typing import Any

import pytest

from tests.sql.lab import SFT_ROW, TRAINING_STEP, Lab, Play, row

COUNTS = ("checkpoint_count", "updated_checkpoint_count", "compared_count", "above_count")


def study(
    lab: Lab, curve: dict[int, list[Play]], updated: tuple[int, ...], unchanged: tuple[int, ...] = ()
) -> dict[str, Any]:
    """A trained cell with this curve, and updates that changed the weights or not."""
    lab.add(curve=curve, pathway="training", training="{}", evaluation_interval=3)
    for checkpoint in updated:
        lab.train(checkpoint, [SFT_ROW], [TRAINING_STEP])
    for checkpoint in unchanged:
        lab.train(checkpoint, [SFT_ROW])
    return row(lab.open(), "training_study")


def test_figures_of_the_published_study(lab: Lab) -> None:
    found = study(lab, {0: [2.0], 3: [4.0], 6: [1.0], 9: [3.0]}, (3, 6, 9))

    # (4 + 1 + 3) / 3
    assert found["trained_avg_score"] == pytest.approx(8 / 3)
    assert (found["initial_score"], found["trained_max_score"]) == (2.0, 4.0)
    assert (found["last_score"], found["score_delta"]) == (3.0, 1.0)
    # above 2: 0 to 3: 3 * 2/2 = 3; 3 to 6, from +2 to -1: 3 * 2^2 / (2 * 3) = 2; 6 to 9, from -1 to +1: 3 * 1 / 4
    assert found["auc_plus"] == pytest.approx(5.75)
    assert found["auc_plus_updates"] == pytest.approx(5.75 / 3)
    assert [found[name] for name in COUNTS] == [4, 3, 3, 2]
    assert (found["update_count"], found["unchanged_count"]) == (3, 0)
    # Wilson, 2 of 3: z^2 = 3.8416; centre (2/3 + 3.8416/6) / (1 + 3.8416/3) = 1.30693 / 2.28053 = 0.57308
    #   half sqrt(3.8416/3 * (2/9 + 3.8416/12)) / 2.28053 = sqrt(1.28053 * 0.54236) / 2.28053 = 0.36543
    assert found["above_rate"] == pytest.approx(2 / 3)
    assert found["above_rate_low"] == pytest.approx(0.20765, abs=1e-4)
    assert found["above_rate_high"] == pytest.approx(0.93851, abs=1e-4)


def test_the_published_area_has_updates_along_its_axis(lab: Lab) -> None:
    # 0, then 18 times 9, then 3: mean of 19 is 165 / 19 = 8.684; area 9/2 + 17 * 9 + (9 + 3)/2 = 163.5
    curve: dict[int, list[Play]] = {0: [0.0], **{3 * k: [9.0] for k in range(1, 19)}, 57: [3.0]}

    found = study(lab, curve, (3,))

    assert found["trained_avg_score"] == pytest.approx(8.684, abs=5e-4)
    assert found["auc_plus_updates"] == pytest.approx(163.5)
    assert [found[name] for name in COUNTS] == [20, 19, 19, 19]


def test_checkpoints_before_the_first_change_of_weights_are_not_updated_ones(lab: Lab) -> None:
    found = study(lab, {0: [1.0], 3: [1.0], 6: [5.0], 9: [5.0]}, (6,), unchanged=(3, 9))

    assert (found["trained_avg_score"], found["trained_max_score"]) == (5.0, 5.0)
    # after 9 episodes the weights are still those of the update after 6
    assert [found[name] for name in COUNTS] == [4, 2, 2, 2]
    assert (found["update_count"], found["unchanged_count"]) == (1, 2)


def test_without_a_change_of_weights_nothing_was_trained(lab: Lab) -> None:
    found = study(lab, {0: [1.0], 3: [1.0]}, (), unchanged=(3,))

    assert [found[name] for name in COUNTS] == [2, 0, 0, 0]
    trained = ("trained_avg_score", "trained_max_score", "above_rate", "above_rate_low", "above_rate_high")
    assert {found[name] for name in trained} == {None}
    assert (found["initial_score"], found["auc_plus"]) == (1.0, 0.0)


def test_start_of_zero_is_not_above_itself(lab: Lab) -> None:
    found = study(lab, {0: [0.0], 3: [0.0], 6: [0.0]}, (3, 6))

    assert [found[name] for name in COUNTS] == [3, 2, 2, 0]
    assert (found["above_rate"], found["above_rate_low"]) == (0.0, 0.0)
    assert (found["trained_max_score"], found["auc_plus_updates"]) == (0.0, 0.0)


def test_negative_scores_compare_like_others(lab: Lab) -> None:
    found = study(lab, {0: [-2.0], 3: [-1.0], 6: [-3.0]}, (3, 6))

    # -1 is above -2; area 3 * 1/2, then from +1 to -1: 3 * 1 / 4
    assert (found["trained_avg_score"], found["trained_max_score"], found["score_delta"]) == (-2.0, -1.0, -1.0)
    assert found["auc_plus"] == pytest.approx(2.25)
    assert [found[name] for name in COUNTS] == [3, 2, 2, 1]


def test_invalid_checkpoints_are_compared_with_nothing(lab: Lab) -> None:
    found = study(lab, {0: [1.0], 3: [None], 6: [2.0]}, (3, 6))

    assert found["trained_avg_score"] == 2.0
    assert [found[name] for name in COUNTS] == [3, 2, 1, 1]


@pytest.mark.parametrize("curve", [{0: [None], 3: [1.0]}, {0: [None], 3: [None]}])
def test_without_a_valid_start_nothing_is_above_it(lab: Lab, curve: dict[int, list[Play]]) -> None:
    found = study(lab, curve, (3,))

    assert [found[name] for name in COUNTS] == [2, 1, 0, 0]
    assert (found["initial_score"], found["above_rate"], found["auc_plus"]) == (None, None, None)


def test_a_cell_asked_for_and_not_begun_has_a_row_and_others_have_none(lab: Lab) -> None:
    lab.add("trained", pathway="training", training="{}")
    lab.add("read", {0: [1.0], 3: [2.0]})

    found = row(lab.open(), "training_study")

    assert found["cell_id"] == "trained"
    assert [found[name] for name in COUNTS] == [0, 0, 0, 0]
