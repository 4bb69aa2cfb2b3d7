from dataclasses import replace
from typing import Any

import pytest

from tests.sql.lab import CELL, EPISODE, JUDGMENT, SFT_ROW, STEP, Lab, Turn


def offences(lab: Lab) -> set[str]:
    return {name for name, count in lab.open().checks().items() if count}


def test_sound_folder_passes_every_check(lab: Lab) -> None:
    lab.add(curve={0: [1.0, None], 3: [[Turn(1.0, 2.0), Turn(0.0, 1.0)]]}, explored={0: [2.0, 3.0]})
    mean = {"score_aggregation": "mean", "game": "latent_chess"}
    lab.add("mean", curve={0: [[Turn(None, 0.0), Turn(None, 1.0)]]}, **mean)
    lab.link("evaluate", "to come", 6)
    lab.part("judged", {"judgments": [replace(JUDGMENT, episode_id="cell-explore-0/0", success_belief=1.0)]})
    assert offences(lab) == set()


def test_episodes_that_contradict_themselves_are_found(lab: Lab) -> None:
    cases: list[tuple[str, dict[str, Any]]] = [
        ("reward_sum", {"final_score": 7.0}),
        ("invalid_has_score", {"final_score": None}),
        ("invalid_has_score", {"status": "invalid"}),
        ("invalid_has_score", {"status": "lost"}),
        ("step_gaps", {"step_count": 2}),
    ]
    lab.add()
    for number, (_, change) in enumerate(cases):
        place = {"stage_key": f"s{number}", "phase": "evaluation", "episode_id": "e"}
        whole = {"final_score": 1.0, "is_success": True, "step_count": 1, "seed": number}
        episode = replace(EPISODE, **place, **(whole | change))
        lab.link("evaluate", f"s{number}", number)
        lab.part(f"s{number}", {"episodes": [episode], "steps": [replace(STEP, **place, verifier_reward=1.0)]})
    warehouse = lab.open()
    for number, (check, _) in enumerate(cases):
        found = warehouse.sql(f"select stage_key from {check}").to_series().to_list()
        assert f"s{number}" in found, (check, found)


def test_steps_run_from_zero_once_each(lab: Lab) -> None:
    cases: dict[str, list[int]] = {
        "whole": [0, 1, 2],
        "gap": [0, 2, 3],
        "no first": [1, 2, 3],
        "twice": [0, 1, 2, 2],
        "twice and gap": [0, 0, 3, 3],
        "none": [],
    }
    for key, indices in cases.items():
        place = {"stage_key": key, "phase": "evaluation", "episode_id": "e"}
        steps = [replace(STEP, **place, step_index=index) for index in indices]
        lab.part(key, {"episodes": [replace(EPISODE, **place, step_count=3)], "steps": steps})
    warehouse = lab.open()
    gaps = warehouse.sql("select stage_key from step_gaps order by all").to_series().to_list()
    doubles = warehouse.sql("select stage_key from duplicate_steps order by all").to_series().to_list()
    assert gaps == ["gap", "no first", "none", "twice and gap"]
    assert doubles == ["twice", "twice and gap"]


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


@pytest.mark.parametrize("is_shared", [True, False])
def test_what_serves_both_phases_is_found(lab: Lab, is_shared: bool) -> None:
    lab.add(is_instances_shared=is_shared)
    lab.link("evaluate", "held out", 0)
    lab.link("explore", "explored", 0)
    held_out = replace(EPISODE, stage_key="held out", phase="evaluation", seed=5, instance_id="same")
    explored = replace(EPISODE, stage_key="explored", phase="exploration", seed=5, instance_id="same")
    lab.part("p", {"episodes": [held_out, explored]})
    found = {name for name, count in lab.open().checks().items() if count and name.endswith("overlap")}
    # a game may declare that it has too few instances, never that it reuses seeds
    assert found == {"seed_overlap"} | (set() if is_shared else {"instance_overlap"})


def test_evaluation_rewards_stay_in_the_declared_range(lab: Lab) -> None:
    assert (CELL.reward_min, CELL.reward_max) == (-1.0, 3.0)
    lab.add(curve={0: [-2.0, -1.0, 3.0, 3.5]}, explored={0: [99.0]})
    assert lab.open().sql("select offence, found from score_range order by found").rows() == [
        ("reward", -2.0),
        ("reward", 3.5),
    ]


def test_belief_above_one_is_found(lab: Lab) -> None:
    lab.add(explored={0: [1.0]})
    lab.part("judged", {"judgments": [replace(JUDGMENT, episode_id="cell-explore-0/0", success_belief=80.0)]})
    assert offences(lab) == {"score_range"}


def test_only_steps_explored_before_an_update_are_trained_on(lab: Lab) -> None:
    two = [Turn(1.0, 1.0), Turn(1.0, 1.0)]
    lab.add(curve={0: [two]}, explored={0: [two], 3: [two]})
    lab.add("other", explored={0: [two]})
    # given the update after 3 episodes: the first is sound; held out, explored later, another cell's, and beyond the
    # episode's two steps are not
    sound = [replace(SFT_ROW, episode_id="cell-explore-0/0", step_index=index) for index in range(2)]
    bad = [
        replace(SFT_ROW, episode_id="cell-evaluate-0/0"),
        replace(SFT_ROW, episode_id="cell-explore-3/3"),
        replace(SFT_ROW, episode_id="other-explore-0/0"),
        replace(SFT_ROW, episode_id="cell-explore-0/0", step_index=2),
    ]
    lab.train(3, sound + bad)
    lab.train(6, [replace(SFT_ROW, episode_id="cell-explore-3/3")])

    found = lab.open().sql("select checkpoint, episode_id, row_count from sft_from_exploration order by all").rows()
    assert found == [
        (3, "cell-evaluate-0/0", 1),
        (3, "cell-explore-0/0", 1),
        (3, "cell-explore-3/3", 1),
        (3, "other-explore-0/0", 1),
    ]


def test_an_update_that_no_cell_asks_for_rests_on_nothing(lab: Lab) -> None:
    lab.add(explored={0: [1.0]})
    lab.part("stray", {"sft_rows": [replace(SFT_ROW, stage_key="stray", episode_id="cell-explore-0/0")]})

    assert offences(lab) == {"sft_from_exploration"}
