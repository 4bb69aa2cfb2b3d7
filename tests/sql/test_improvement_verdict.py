import random
from dataclasses import replace
from typing import Any

import pytest

from s3gym import resampling
from s3gym.derived import NoiseFloor
from tests.sql.lab import Lab, row

FLOOR = NoiseFloor(
    cell_id="",
    null_kind="checkpoints",
    metric="gain",
    control_cell_id=None,
    observed=1.0,
    null_mean=0.0,
    null_high=0.5,
    p_above=0.01,
    p_below=1.0,
    p_randomised=0.01,
    smallest_p=0.0001,
    permutation_count=9_999,
)
NONE: dict[str, Any] = {"pathway": "none", "exploration_episode_count": 0}


def judged(lab: Lab, *floors: NoiseFloor, run_id: str | None = None) -> dict[str, dict[str, Any]]:
    warehouse = lab.open(run_id, materialize=True)
    warehouse.fill("noise_floors", floors)
    return {found["cell_id"]: found for found in warehouse.sql("from improvement_verdict").to_dicts()}


def test_p_is_two_sided_and_corrected_for_the_cells_of_the_run(lab: Lab) -> None:
    for name in ("a", "b", "c", "d"):
        lab.add(name, {0: [1.0], 3: [1.0]}, model_id=name)
    lab.add("other", {0: [1.0], 3: [1.0]}, model_id="e", run="run-2")
    p = {"a": (0.005, 1.0), "b": (1.0, 0.01), "c": (0.02, 1.0), "d": (0.6, 0.5), "other": (0.02, 1.0)}
    floors = [replace(FLOOR, cell_id=name, p_above=above, p_below=below) for name, (above, below) in p.items()]
    floors[1] = replace(floors[1], observed=-1.0)
    found = judged(lab, *floors, run_id="all")
    # two-sided 0.01, 0.02, 0.04, 1; times 4, 3, 2, 1, never falling: 0.04, 0.06, 0.08, 1; the other run has one cell
    assert [found[name]["p_value"] for name in p] == pytest.approx([0.01, 0.02, 0.04, 1.0, 0.04])
    assert [found[name]["p_holm"] for name in p] == pytest.approx([0.04, 0.06, 0.08, 1.0, 0.04])
    assert [found[name]["compared_count"] for name in p] == [4, 4, 4, 4, 1]
    improves, unshown = "improves_beyond_noise", "no_improvement_shown"
    assert [found[name]["verdict"] for name in p] == [improves, unshown, unshown, unshown, improves]
    assert {found[name]["evidence"] for name in p} == {"checkpoints"}


def test_cells_with_an_intervention_are_corrected_apart(lab: Lab) -> None:
    for name, intervention in (("a", "main"), ("b", "main"), ("c", "oracle_judge"), ("d", "shuffled_scores")):
        lab.add(name, {0: [1.0], 3: [1.0]}, model_id=name, intervention=intervention)
    lab.add("e", {0: [1.0], 3: [1.0]}, intervention="oracle_judge")

    found = judged(lab, *(replace(FLOOR, cell_id=name) for name in "abcde"))

    # two-sided 0.02 each; times 2 without an intervention, times 3 with one
    assert [found[name]["compared_count"] for name in "abcde"] == [2, 2, 3, 3, 3]
    assert [found[name]["p_holm"] for name in "abcde"] == pytest.approx([0.04, 0.04, 0.06, 0.06, 0.06])


def test_too_few_is_what_even_the_clearest_outcome_could_not_show(lab: Lab) -> None:
    for name in ("a", "b"):
        lab.add(name, {0: [1.0], 3: [1.0]}, model_id=name)
    found = judged(lab, replace(FLOOR, cell_id="a", smallest_p=0.013, p_above=0.5), replace(FLOOR, cell_id="b"))
    # 2 sides * 2 cells * 0.013 = 0.052
    assert (found["a"]["smallest_p"], found["a"]["verdict"]) == (pytest.approx(0.052), "too_few_episodes")
    assert found["b"]["verdict"] == "improves_beyond_noise"


def test_without_floors_there_is_no_verdict(lab: Lab) -> None:
    lab.add(curve={0: [1.0], 3: [1.0]})
    lab.add("control", {0: [1.0]}, **NONE)
    found = judged(lab)
    assert list(found) == ["cell"], "the control is not judged"
    assert (found["cell"]["verdict"], found["cell"]["p_holm"], found["cell"]["evidence"]) == (None, None, None)


def test_worse_and_better_need_an_interval_that_agrees(lab: Lab) -> None:
    # on three instances at four checkpoints, against a control of zeros
    cells = {
        "better": ([4.0, 5.0, 6.0], "improves_beyond_noise"),
        "worse": ([-4.0, -5.0, -6.0], "worse"),
        "same": ([0.0, 0.0, 0.0], "no_improvement_shown"),
        # clear by coins, but three instances so unlike say little of others: mean 2.9, error 2.18: 2.9 -+ 9.4
        "one instance": ([7.2, 1.4, 0.1], "no_improvement_shown"),
        "one seed": ([5.0], "too_few_episodes"),
    }
    for name, (scores, _) in cells.items():
        start = [0.0] * len(scores)
        lab.add(name, dict.fromkeys((3, 6, 9, 12), scores) | {0: start}, start=name, model_id=name)
        lab.add(f"no {name}", dict.fromkeys((0, 3, 6, 9, 12), start), start=name, model_id=name, **NONE)
    warehouse = lab.open(materialize=True)
    resampling.refresh(warehouse)
    found = {verdict["cell_id"]: verdict for verdict in warehouse.sql("from improvement_verdict").to_dicts()}
    assert {name: found[name]["verdict"] for name in cells} == {name: verdict for name, (_, verdict) in cells.items()}
    assert {verdict["evidence"] for verdict in found.values()} == {"control"}
    better = found["better"]
    # differences of the instances 4, 5, 6: error 1 / sqrt(3), t(2) = 4.303: 5 -+ 2.484
    assert (better["gain"], better["gain_low"]) == (5.0, pytest.approx(2.516, abs=1e-3))
    # four scores, four of the control and the start of each instance: 9! / (4! 4! 1!) = 630 ways; two sides, five cells
    assert better["smallest_p"] == pytest.approx(2 * 5 / 630**3)
    assert found["one instance"]["p_holm"] < 0.05
    # not for want of a small p, but as one instance shows no spread
    assert (found["one seed"]["smallest_p"], found["one seed"]["gain_low"]) == (pytest.approx(2 * 5 / 630), None)


def test_without_a_control_its_own_start_is_the_measure(lab: Lab) -> None:
    rising = {3: [5.0, 6.0, 7.0], 6: [5.0, 6.0, 8.0], 9: [6.0, 6.0, 7.0], 12: [5.0, 7.0, 7.0]}
    lab.add(curve={0: [1.0, 1.0, 2.0], **rising})
    warehouse = lab.open(materialize=True)
    resampling.refresh(warehouse)
    found = row(warehouse, "improvement_verdict")
    assert (found["evidence"], found["verdict"]) == ("checkpoints", "improves_beyond_noise")
    # 75 points in 12 later episodes, 4 in 3 at the start
    assert found["gain"] == pytest.approx(75 / 12 - 4 / 3)
    # 5^3 choices of the three starts
    assert found["smallest_p"] == pytest.approx(2 / 125)
    assert found["gain_low"] > 0


def test_agents_that_never_change_are_hardly_ever_called_improved(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resampling, "PERMUTATIONS", 499)
    dice = random.Random(11)
    for run in range(3):
        for model in range(4):
            name = f"{run} {model}"
            for pathway in ("none", "history") if model % 2 else ("history",):
                curve = {k: [float(dice.random() < 0.3) for _ in range(3)] for k in range(0, 10, 3)}
                lab.add(f"{name} {pathway}", curve, start=name, model_id=name, pathway=pathway, run=f"run-{run}")
    warehouse = lab.open("all", materialize=True)
    resampling.refresh(warehouse)
    verdicts = warehouse.sql("select verdict from improvement_verdict").to_series().to_list()
    assert len(verdicts) == 12
    assert set(verdicts) <= {"no_improvement_shown", "too_few_episodes"}
