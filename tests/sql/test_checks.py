from dataclasses import replace
from typing import Any

import pytest

from tests.sql.lab import CELL, EPISODE, JUDGMENT, STEP, Lab, Turn


def offences(lab: Lab) -> set[str]:
    return {name for name, count in lab.open().checks().items() if count}


def test_sound_folder_passes_every_check(lab: Lab) -> None:
    lab.add(curve={0: [1.0, None], 3: [[Turn(1.0, 2.0), Turn(0.0, 1.0)]]}, explored={0: [2.0, 3.0]})
    mean = {"score_aggregation": "mean", "game": "latent_chess"}
    lab.add("mean", curve={0: [[Turn(None, 0.0), Turn(None, 1.0)]]}, **mean)
    lab.link("evaluate", "to come", 6)
    lab.part("judged", {"judgments": [replace(JUDGMENT, episode_id="cell-explore-0/0", success_belief=1.0)]})
    assert offences(lab) == set()


@pytest.mark.parametrize(
    ("change", "check"),
    [
        ({"final_score": 7.0}, "reward_sum"),
        ({"final_score": None}, "invalid_has_score"),
        ({"status": "invalid"}, "invalid_has_score"),
        ({"status": "lost"}, "invalid_has_score"),
        ({"step_count": 2}, "step_gaps"),
    ],
)
def test_episode_that_contradicts_itself_is_found(lab: Lab, change: dict[str, Any], check: str) -> None:
    lab.add()
    lab.link("evaluate", "s", 0)
    place = {"stage_key": "s", "phase": "evaluation", "episode_id": "e"}
    whole = {"final_score": 1.0, "is_success": True, "step_count": 1}
    episode = replace(EPISODE, **place, **(whole | change))
    lab.part("p", {"episodes": [episode], "steps": [replace(STEP, **place, verifier_reward=1.0)]})
    assert check in offences(lab)


@pytest.mark.parametrize(
    ("indices", "found"),
    [
        ([0, 1, 2], set()),
        ([0, 2, 3], {"step_gaps"}),
        ([1, 2, 3], {"step_gaps"}),
        ([0, 1, 2, 2], {"duplicate_steps"}),
        ([0, 0, 3, 3], {"duplicate_steps", "step_gaps"}),
        ([], {"step_gaps"}),
    ],
)
def test_steps_run_from_zero_once_each(lab: Lab, indices: list[int], found: set[str]) -> None:
    place = {"stage_key": "s", "phase": "evaluation", "episode_id": "e"}
    steps = [replace(STEP, **place, step_index=index) for index in indices]
    lab.part("p", {"episodes": [replace(EPISODE, **place, step_count=3)], "steps": steps})
    assert offences(lab) == found


def test_episode_written_twice_is_found(lab: Lab) -> None:
    episode = replace(EPISODE, stage_key="s", episode_id="e")
    lab.part("p", {"episodes": [episode, episode]})
    assert offences(lab) == {"duplicate_episodes"}


def test_rows_that_point_at_nothing_are_found(lab: Lab) -> None:
    lab.add()
    lab.link("evaluate", "s", 0, cell_id="nobody")
    lab.part("p", {"steps": [replace(STEP, stage_key="s", episode_id="e")] * 2})
    lab.part("judged", {"judgments": [replace(JUDGMENT, episode_id="gone")]})
    found = lab.open().sql("from orphans order by offence").rows()
    assert found == [
        ("judgment without its episode", "judged", "gone"),
        ("stage link without its cell", "run-1", "nobody"),
        ("step without its episode", "s", "e"),
    ]


@pytest.mark.parametrize(
    ("seed", "instance", "found"), [(5, "x", "seed_overlap"), (9, "shared", "instance_overlap")]
)
@pytest.mark.parametrize("is_shared", [True, False])
def test_what_serves_both_phases_is_found(
    lab: Lab, seed: int, instance: str, found: str, is_shared: bool
) -> None:
    lab.add(is_instances_shared=is_shared)
    lab.link("evaluate", "held out", 0)
    lab.link("explore", "explored", 0)
    held_out = replace(EPISODE, stage_key="held out", phase="evaluation", seed=5, instance_id="shared")
    explored = replace(EPISODE, stage_key="explored", phase="exploration", seed=seed, instance_id=instance)
    lab.part("p", {"episodes": [held_out, explored]})
    # a game may declare that it has too few instances, never that it reuses seeds
    allowed = {"instance_overlap"} if is_shared else set()
    assert offences(lab) == {found} - allowed


@pytest.mark.parametrize(
    ("reward", "found"), [(3.0, set()), (-1.0, set()), (3.5, {"score_range"}), (-2.0, {"score_range"})]
)
def test_evaluation_rewards_stay_in_the_declared_range(lab: Lab, reward: float, found: set[str]) -> None:
    assert (CELL.reward_min, CELL.reward_max) == (-1.0, 3.0)
    lab.add(curve={0: [reward]}, explored={0: [99.0]})
    assert offences(lab) == found


def test_belief_above_one_is_found(lab: Lab) -> None:
    lab.add(explored={0: [1.0]})
    lab.part("judged", {"judgments": [replace(JUDGMENT, episode_id="cell-explore-0/0", success_belief=80.0)]})
    assert offences(lab) == {"score_range"}
