"""The numbers of ``exploration_quality``, worked by hand on episodes of a few steps."""

from pathlib import Path

import pytest

from tests.sql.lab import Lab, Turn, row

# rewards range from -1 to 3 in the lab, so that a self-score is surprising when it is off by more than 1
FIRST = [
    Turn(0.0, 0.0, observation="Step 1 of 9. A", action="left"),
    Turn(2.0, 0.0, observation="Step 2 of 9. A", action="left"),  # repeated, and surprising
    Turn(1.0, 1.0, observation="Step 3 of 9. B", action="left"),  # positive
    Turn(None, 0.0, observation="Step 4 of 9. C", action="up"),
]
SECOND = [
    Turn(1.0, 0.0, observation="Round 1 of 9. A", action="left"),  # repeated; off by 1 and no more
    Turn(3.0, 1.0, observation="Round 2 of 9. D", action="up"),  # positive and surprising counts once
]


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path / "data")


def test_two_episodes_by_hand(lab: Lab) -> None:
    lab.add(explored={0: [FIRST], 3: [SECOND]})
    lab.anchors(random=0.0, expert=2.0, config_id="relaxed")
    found = row(lab.open(), "exploration_quality")

    assert (found["episode_count"], found["step_count"]) == (2, 6)
    # states A, B, C and D, whatever the number of the step; actions left and up
    assert (found["state_count"], found["new_state_share"]) == (4, pytest.approx(4 / 6))
    assert (found["action_count"], found["action_share"]) == (2, pytest.approx(2 / 6))
    # (A, left) twice in the first episode and once more in the second
    assert found["repetition"] == pytest.approx(2 / 6)
    assert (found["positive_count"], found["surprising_count"]) == (2, 2)
    # informative: two steps of the first episode, one of the second
    assert (found["rewarded_count"], found["informative_rate"]) == (6, pytest.approx(3 / 6))
    # left 3/4 and up 1/4, then half each: 1 - (1/2 + 1/4)
    assert (found["pair_count"], found["strategy_change"]) == (1, pytest.approx(0.25))
    # scores 1 and 1, on a scale from 0 to 2
    assert (found["valid_count"], found["best_score"], found["mean_score"]) == (2, 1.0, 1.0)
    assert (found["normalised_best"], found["normalised_mean"]) == (0.5, 0.5)
    assert found["mean_score_low"] is None  # equal scores show no spread


def test_an_interval_varies_whole_episodes(lab: Lab) -> None:
    lab.add(explored={0: [FIRST], 3: [SECOND]})
    found = row(lab.open(), "int_exploration_rates", "rate_name = 'repeated'")

    # 1 of 4 and 1 of 2, rate 1/3: residuals 1 - 4/3 = -1/3 and 1 - 2/3 = 1/3; standard error^2 = 2 (1/9 + 1/9) / 36
    # = 1/81, trials = (1/3 2/3) 81 = 18, at most the 6 there are; t(1) = 12.706: t^2 / n = 26.907
    z2_over_n = 12.706**2 / 6
    reach = (z2_over_n * (2 / 9 + z2_over_n / 4)) ** 0.5 / (1 + z2_over_n)
    centre = (1 / 3 + z2_over_n / 2) / (1 + z2_over_n)
    assert found["episode_count"] == 2
    assert found["rate_low"] == pytest.approx(centre - reach, abs=1e-4)
    assert found["rate_high"] == pytest.approx(centre + reach, abs=1e-4)


def test_a_score_interval_is_of_student(lab: Lab) -> None:
    lab.add(explored={0: [1.0, 3.0]})
    found = row(lab.open(), "exploration_quality")

    # standard error = sqrt(2) / sqrt(2) = 1, t(1) = 12.706
    assert found["mean_score_low"] == pytest.approx(2 - 12.706, abs=1e-3)
    assert found["mean_score_high"] == pytest.approx(2 + 12.706, abs=1e-3)


def test_answers_that_cannot_be_used_are_one_action(lab: Lab) -> None:
    lost = [Turn(0.0, 0.0, "unparsable", "A"), Turn(0.0, 0.0, "illegal", "A")]
    lab.add(explored={0: [lost]})
    found = row(lab.open(), "exploration_quality")

    assert (found["action_count"], found["repetition"]) == (1, 0.5)


def test_failed_calls_are_no_steps_and_a_single_episode_has_no_interval(lab: Lab) -> None:
    lab.add(explored={0: [[FIRST[0], Turn(None, None, None)]]})
    found = row(lab.open(), "exploration_quality")

    assert (found["step_count"], found["valid_count"], found["best_score"]) == (1, 0, None)
    assert (found["new_state_share"], found["new_state_share_low"], found["strategy_change"]) == (1.0, None, None)
    assert found["pair_count"] == 0


def test_what_was_not_explored_is_null_and_the_control_has_no_row(lab: Lab) -> None:
    lab.add(curve={0: [1.0]})
    lab.add("control", {0: [1.0]}, pathway="none", exploration_episode_count=0)
    found = row(lab.open(), "exploration_quality")

    assert (found["cell_id"], found["episode_count"], found["state_count"]) == ("cell", 0, 0)
    assert found["new_state_share"] is found["informative_rate"] is found["mean_score"] is None


def test_without_rewards_nothing_is_informative_or_not(lab: Lab) -> None:
    lab.add(explored={0: [[Turn(1.0, None, "ok", "A", "left")]]})
    found = row(lab.open(), "exploration_quality")

    assert (found["step_count"], found["rewarded_count"], found["informative_rate"]) == (1, 0, None)
