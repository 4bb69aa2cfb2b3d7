import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from s3gym import resampling
from s3gym.warehouse import Warehouse
from tests.sql.lab import JUDGMENT, Lab, row
from tests.sql.test_improvement_verdict import FLOOR, NONE
from tests.sql.test_pathway_verdict import SEVERAL

UP, STILL, DOWN, FEW = (
    {"p_above": 0.001},
    {"p_above": 0.5, "p_below": 0.6},
    {"observed": -1.0, "p_below": 0.001},
    {"p_above": 0.5, "smallest_p": 0.4},
)


def judged(lab: Lab, models: Mapping[str, Mapping[str, dict[str, Any]]]) -> Warehouse:
    """A cell a model and pathway in one game, with what its noise floor says."""
    floors = []
    for model, outcomes in models.items():
        for pathway, outcome in outcomes.items():
            name = f"{model} {pathway}"
            lab.add(name, {0: [1.0], 3: [1.0]}, model_id=model, pathway=pathway)
            floors.append(replace(FLOOR, cell_id=name, **outcome))
    warehouse = lab.open(materialize=True)
    warehouse.fill("noise_floors", floors)
    return warehouse


def told(warehouse: Warehouse, *columns: str) -> dict[str, Any]:
    """Columns of ``verdict`` by model; a single one alone."""
    rows = warehouse.sql(f"select model_id, {', '.join(columns)} from verdict").rows()
    return {model: values[0] if len(columns) == 1 else values for model, *values in rows}


def test_the_verdict_is_that_of_the_pathways_together(lab: Lab) -> None:
    # two-sided and corrected for ten cells: 10 * 2 * 0.001 = 0.02
    outcomes: dict[str, dict[str, dict[str, Any]]] = {
        "improves": {"history": UP, "memory": STILL},
        "mixed": {"history": UP, "memory": DOWN},
        "worse": {"history": STILL, "memory": DOWN},
        "not_shown": {"history": STILL, "memory": FEW},
        "too_few": {"history": FEW, "memory": FEW},
    }
    assert told(judged(lab, outcomes), "verdict") == {name: name for name in outcomes}


def test_pathways_are_named_by_what_became_of_them(lab: Lab) -> None:
    found = row(judged(lab, {"m": {"history": UP, "memory": UP, "training": STILL}}), "verdict")
    assert (found["improved_pathways"], found["unshown_pathways"]) == ("history, memory", "training")
    assert (found["worse_pathways"], found["too_few_pathways"], found["compared_count"]) == (None, None, 3)


def test_a_control_alone_and_a_cell_without_floors_have_no_verdict(lab: Lab) -> None:
    lab.add("control", {0: [1.0]}, model_id="a", **NONE)
    lab.add("cell", {0: [1.0], 3: [2.0]}, model_id="b")
    found = lab.open().sql("select model_id, verdict, belief, ahead from verdict order by 1").rows()
    assert found == [("a", "control_only", None, None), ("b", None, None, None)]


def test_memory_or_history_is_ahead_where_their_difference_leaves_out_zero(lab: Lab) -> None:
    ends = {"memory": (0.5, 2.0), "history": (-2.0, -0.5), "not_told": (-1.0, 2.0), "no interval": (None, None)}
    warehouse = judged(lab, {model: {"history": UP, "memory": UP} for model in ends})
    contrast = replace(SEVERAL, scope="cell", contrast="over_history", estimate=1.0)
    found = [replace(contrast, cell_id=f"{model} memory", low=low, high=high) for model, (low, high) in ends.items()]
    warehouse.fill("intervals", found)
    assert told(warehouse, "memory_over_history", "ahead") == {
        model: [1.0, None if model == "no interval" else model] for model in ends
    }


def believing(lab: Lab, models: Mapping[str, Sequence[float | None]]) -> Warehouse:
    """Two pathways a model whose explored episodes all fail, the beliefs about them being given in turn."""
    for model, beliefs in models.items():
        for place, pathway in enumerate(("history", "memory")):
            name, own = f"{model} {pathway}", beliefs[place::2]
            lab.add(name, explored={0: [0.0] * len(own)}, model_id=model, pathway=pathway)
            rows = [
                replace(JUDGMENT, stage_key=f"judge {name}", episode_id=f"{name}-explore-0/{i}", success_belief=belief)
                for i, belief in enumerate(own)
            ]
            lab.part(f"judge {name}", {"judgments": rows})
            lab.link("self_judge", f"judge {name}", 0, cell_id=name)
    return lab.open(materialize=True)


def test_belief_is_pooled_over_pathways_with_wilsons_interval(lab: Lab) -> None:
    found = row(believing(lab, {"m": [0.9] * 8 + [0.1] * 2}), "verdict")
    # 8 of 10: z^2 / n = 0.38416; centre (0.8 + 0.19208) / 1.38416 = 0.7167; half 0.2266
    assert (found["over_claim_count"], found["belief_count"], found["over_claiming"]) == (8, 10, 0.8)
    assert (found["over_claiming_low"], found["over_claiming_high"]) == pytest.approx((0.490, 0.943), abs=1e-3)
    assert found["belief"] == "over_claims"


def test_a_belief_is_called_what_its_interval_supports(lab: Lab) -> None:
    # 3 of 3: 0.44 to 1; 2 of 4: 0.15 to 0.85; 0 of 11: 0 to 0.259; 0 of 12: 0 to 0.243
    beliefs: dict[str, Sequence[float | None]] = {
        "3 of 3": [0.9] * 3,
        "2 of 4": [0.9] * 2 + [0.1] * 2,
        "0 of 11": [0.0] * 11,
        "0 of 12": [0.0] * 12,
        "one half is no belief in success": [0.5] * 12,
        "unread": [None] * 4,
    }
    expected = ["over_claims", "not_told", "not_told", "sound", "sound", None]
    assert told(believing(lab, beliefs), "belief") == dict(zip(beliefs, expected, strict=True))


def test_a_rise_in_exploration_is_told_where_no_held_out_gain_is_shown(lab: Lab) -> None:
    outcomes: dict[str, dict[str, Any]] = {"up": UP, "still": STILL, "down": DOWN, "few": FEW}
    for name in outcomes:
        lab.add(name, {0: [1.0], 3: [1.0]}, {0: [0.0, 1.0, 2.0], 3: [10.0, 11.0, 12.0]}, model_id=name)
    warehouse = lab.open(materialize=True)
    warehouse.fill("noise_floors", [replace(FLOOR, cell_id=name, **found) for name, found in outcomes.items()])
    assert told(warehouse, "untransferred_pathways") == {"up": None, "still": "history", "down": "history", "few": None}


@pytest.mark.parametrize(("runs", "most"), [(10, 1), pytest.param(200, 10, marks=pytest.mark.long)])
def test_on_null_data_no_more_than_one_in_twenty_is_called_improved(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, runs: int, most: int
) -> None:
    # runs of one game each, in which nothing changes: two-sided at 5 %, so that 2.5 % may be called improved
    monkeypatch.setattr(resampling, "PERMUTATIONS", 399)
    monkeypatch.setattr(resampling, "RESAMPLES", 200)
    dice = random.Random(5)
    for run in range(runs):
        for pathway in ("none", "history"):
            curve = {k: [float(dice.random() < 0.3) for _ in range(4)] for k in range(0, 10, 3)}
            place: dict[str, Any] = {"model_id": f"m{run}", "start": f"{run} y0", "run": f"run-{run}"}
            lab.add(f"{run} {pathway}", curve, pathway=pathway, **place)
    warehouse = lab.open("all", materialize=True)
    resampling.refresh(warehouse)
    verdicts = warehouse.sql("select verdict from verdict").to_series().to_list()
    assert len(verdicts) == runs
    assert verdicts.count("improves") <= most
    assert set(verdicts) <= {"improves", "worse", "not_shown", "too_few"}
