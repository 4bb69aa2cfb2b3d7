from dataclasses import replace

from tests.sql.lab import STEP, Lab, Turn, row


def test_episodes_are_requested_valid_invalid_or_missing(lab: Lab) -> None:
    lab.add(
        curve={0: [1.0, 1.0, 1.0], 3: [1.0, None]},
        explored={0: [1.0, None, 1.0]},
        budget=3,
        is_instances_shared=True,
    )
    quality = row(lab.open(), "data_quality")
    evaluation = [quality[f"evaluation_{name}_count"] for name in ("requested", "valid", "invalid", "missing")]
    assert evaluation == [6, 4, 1, 1]
    exploration = [quality[f"exploration_{name}_count"] for name in ("requested", "valid", "invalid")]
    assert exploration == [6, 2, 1]
    assert (quality["failed_call_count"], quality["is_instances_shared"]) == (2, True)


def test_unscored_and_cut_steps_are_counted(lab: Lab) -> None:
    lab.add(explored={0: [[Turn(1.0, 1.0), Turn(None, 1.0)]]})
    place = {"stage_key": "cell-explore-0", "phase": "exploration", "episode_id": "cell-explore-0/0"}
    late = replace(STEP, **place, step_index=2, verifier_reward=0.0, action_status="ok", history_tokens_dropped=7)
    lab.part("more", {"steps": [late]})
    quality = row(lab.open(), "data_quality")
    assert (quality["step_count"], quality["unscored_step_count"], quality["history_cut_step_count"]) == (
        3,
        2,
        1,
    )


def test_cell_with_nothing_played_is_there_with_counts_of_zero(lab: Lab) -> None:
    lab.add()
    quality = row(lab.open(), "data_quality")
    assert (quality["evaluation_requested_count"], quality["step_count"], quality["failed_call_count"]) == (
        0,
        0,
        0,
    )


def test_episodes_in_other_games_are_counted_apart(lab: Lab) -> None:
    lab.add(curve={0: [1.0]})
    lab.transfer(0, "tetris", [1.0, None, 1.0])
    lab.link("transfer", "not there", 3)  # asks for 3 episodes
    quality = row(lab.open(), "data_quality")
    transfer = [quality[f"transfer_{name}_count"] for name in ("requested", "valid", "invalid", "missing")]
    assert transfer == [6, 2, 1, 3]
    assert (quality["evaluation_requested_count"], quality["step_count"], quality["failed_call_count"]) == (1, 1, 0)
