from dataclasses import replace
from typing import Any

import pytest

from s3gym.registry import GAMES, load
from tests.sql.lab import CELL, EPISODE, STEP, Lab, Play, Turn, row

TRAINED: dict[str, Any] = {"pathway": "training", "training": "{}"}
TURNS = [Turn(1.0, 1.0), Turn(1.0, 0.0), Turn(None, 0.0)]
MARTS = ("improvement", "improvement_curve", "control_gain", "action_validity", "judge_reliability", "training_study")


def moved(lab: Lab, before: list[Play], after: list[Play], game: str = "tetris", **settings: Any) -> dict[str, Any]:
    """The row of a snake cell in another game, which it played before and after three episodes of snake."""
    lab.add(**{"curve": {0: [1.0], 3: [1.0]}, **TRAINED, **settings})
    lab.transfer(0, game, before)
    lab.transfer(3, game, after)
    return row(lab.open(), "transfer", f"target_game = '{game}'")


def test_the_same_instances_are_compared_with_and_without_the_experience(lab: Lab) -> None:
    found = moved(lab, [4.0, 5.0, 6.0], [1.0, 1.0, 1.0])

    assert (found["game"], found["target_game"], found["checkpoint"]) == ("snake", "tetris", 3)
    assert (found["initial_score"], found["score"]) == (5.0, 1.0)
    # differences -3, -4, -5: mean -4, residuals 1, 0, -1: sqrt(3/2 * 2) / 3 = 0.57735; t(2) = 4.303: -4 -+ 2.48434
    assert (found["pair_count"], found["cluster_count"], found["stratum_count"]) == (3, 3, 1)
    assert found["mean_difference"] == pytest.approx(-4)
    assert found["difference_low"] == pytest.approx(-6.48434, abs=1e-5)
    assert found["difference_high"] == pytest.approx(-1.51566, abs=1e-5)
    assert (found["is_beyond_noise"], found["is_negative"], found["is_own_game"]) == (True, True, False)


def test_an_interval_that_holds_zero_is_not_negative(lab: Lab) -> None:
    found = moved(lab, [0.0, 0.0], [-3.0, 1.0])

    # mean -1, residuals -2, 2: sqrt(2/1 * 8) / 2 = 2; t(1) = 12.706
    assert found["difference_high"] == pytest.approx(-1 + 25.412)
    assert (found["mean_difference"], found["is_negative"]) == (-1.0, False)


def test_a_gain_is_beyond_noise_and_not_negative(lab: Lab) -> None:
    found = moved(lab, [0.0, 0.0, 0.0], [4.0, 5.0, 6.0])

    assert (found["is_beyond_noise"], found["is_negative"]) == (True, False)


@pytest.mark.parametrize("after", [1.0, -1.0])
def test_of_one_pair_nothing_can_be_said(lab: Lab, after: float) -> None:
    found = moved(lab, [0.0], [after])

    assert (found["mean_difference"], found["pair_count"]) == (after, 1)
    assert (found["difference_low"], found["is_beyond_noise"], found["is_negative"]) == (None, None, None)


def test_its_own_game_stands_among_the_targets(lab: Lab) -> None:
    lab.anchors(random=0.0, expert=8.0)
    lab.add(curve={0: [0.0, 1.0], 3: [1.0, 2.0], 6: [2.0, 5.0]}, **TRAINED)
    for checkpoint in (0, 6):
        lab.transfer(checkpoint, "tetris", [0.0, 0.0])
    warehouse = lab.open()

    own = row(warehouse, "transfer", "is_own_game")

    # at the checkpoints of the transfer alone: 2 - 0 and 5 - 1; the scores are those of the curve
    assert (own["target_game"], own["checkpoint"], own["mean_difference"]) == ("snake", 6, 3.0)
    curve = warehouse.sql("select score from improvement_curve where checkpoint in (0, 6) order by checkpoint").rows()
    assert [(own["initial_score"],), (own["score"],)] == curve
    assert own["normalised_difference"] == 0.375


def test_a_cell_that_moved_nowhere_has_no_row(lab: Lab) -> None:
    lab.add(curve={0: [0.0], 3: [1.0]}, **TRAINED)

    assert lab.open().sql("from transfer").rows() == []


def test_invalid_episodes_leave_no_score_and_the_other_pairs(lab: Lab) -> None:
    found = moved(lab, [1.0, None, 3.0], [2.0, 2.0, 3.0])

    assert (found["initial_score"], found["score"]) == (None, pytest.approx(7 / 3))
    assert (found["requested_count"], found["episode_count"], found["invalid_count"]) == (3, 3, 0)
    # 2 - 1 and 3 - 3
    assert (found["pair_count"], found["mean_difference"]) == (2, 0.5)


def test_where_all_is_invalid_there_is_a_row_and_no_number(lab: Lab) -> None:
    found = moved(lab, [1.0, 1.0], [None, None])

    assert (found["episode_count"], found["invalid_count"], found["pair_count"]) == (0, 2, 0)
    numbers = ("score", "mean_difference", "difference_low", "difference_high", "is_beyond_noise", "is_negative")
    assert {found[name] for name in numbers} == {None}


def test_without_the_start_there_is_no_difference(lab: Lab) -> None:
    lab.add(curve={3: [1.0]}, **TRAINED)
    lab.transfer(3, "tetris", [2.0])

    found = row(lab.open(), "transfer", "not is_own_game")

    assert (found["initial_score"], found["score"], found["mean_difference"]) == (None, 2.0, None)


def test_episodes_beyond_the_budget_are_of_no_pair(lab: Lab) -> None:
    lab.add(curve={0: [0.0], 3: [0.0]}, **TRAINED)
    for checkpoint in (0, 3):
        lab.stage(f"big {checkpoint}", "evaluation", checkpoint, [float(checkpoint)] * 5, replace(CELL, game="tetris"))
        lab.link("transfer", f"big {checkpoint}", checkpoint)  # asks for 3 episodes

    found = row(lab.open(), "transfer", "not is_own_game")

    assert (found["requested_count"], found["episode_count"], found["pair_count"]) == (3, 3, 3)


def test_strata_are_the_targets_when_a_cell_says_so(lab: Lab) -> None:
    lab.add("of trust", {0: [0.0]}, game="trust", is_instances_shared=True)

    found = moved(lab, [0.0, 0.0], [1.0, 9.0], "trust")

    # each instance once: nothing is left to vary; as a draw the two would give a (very wide) interval
    assert (found["cluster_count"], found["stratum_count"]) == (2, 2)
    assert (found["mean_difference"], found["standard_error"]) == (5.0, None)


def test_anchors_of_the_target_are_found_by_what_was_played(lab: Lab) -> None:
    tetris = load(GAMES, "tetris", "game").GAME
    played = replace(tetris.evaluation, horizon=7)
    lab.anchors(random=1.0, expert=5.0, config_id=tetris.config_id(played))
    lab.add(**TRAINED)
    facts = {"game": "tetris", "game_version": tetris.VERSION, "config": played.to_json(), "phase": "evaluation"}
    for checkpoint in (0, 3):
        key = f"moved {checkpoint}"
        place = {"stage_key": key, "episode_id": key, "checkpoint": checkpoint}
        episode = replace(EPISODE, **facts, **place, final_score=float(checkpoint), step_count=1)
        step = replace(STEP, game="tetris", phase="evaluation", **place, verifier_reward=float(checkpoint))
        lab.part(key, {"episodes": [episode], "steps": [step]}, "tetris")
        lab.link("transfer", key, checkpoint)

    # 3 of a range of 4
    assert row(lab.open(), "transfer")["normalised_difference"] == 0.75


def test_nothing_of_another_game_gets_into_the_numbers_of_the_source(lab: Lab) -> None:
    other = Lab(lab.data.parent / "without")
    for each in (lab, other):
        explored = {0: [TURNS]}
        each.add(curve={0: [1.0, 2.0], 3: [2.0, 3.0]}, explored=explored, **TRAINED)
        each.add("control", {0: [1.0, 2.0], 3: [1.0, 2.0]}, pathway="none")
    for checkpoint in (0, 3):
        lab.transfer(checkpoint, "tetris", [50.0, None, [TURNS[0]] * 3])

    # given the same cells with and without evaluations in another game
    moved, stayed = lab.open(), other.open()

    for mart in MARTS:
        assert moved.sql(f"from {mart} order by all").equals(stayed.sql(f"from {mart} order by all")), mart
    quality = row(moved, "data_quality", "pathway = 'training'")
    before = row(stayed, "data_quality", "pathway = 'training'")
    assert {name for name in quality if quality[name] != before[name]} == {
        "transfer_requested_count",
        "transfer_valid_count",
        "transfer_invalid_count",
    }
    assert set(moved.checks().values()) == {0}
