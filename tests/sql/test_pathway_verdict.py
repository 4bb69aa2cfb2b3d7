from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from s3gym.derived import Interval
from tests.sql.lab import Lab, row
from tests.sql.test_improvement_verdict import FLOOR, NONE

SEVERAL = Interval(
    cell_id="a 0",
    scope="replicates",
    contrast="own",
    metric="gain",
    reference_cell_id=None,
    estimate=2.0,
    bias=0.0,
    standard_error=0.5,
    low=0.5,
    high=3.5,
    status="ok",
    replicate_count=3,
    unit_count=3,
    resample_count=2000,
)


def test_one_cell_gives_its_own_verdict_with_its_gain(lab: Lab) -> None:
    # differences 4, 5 and 6, as in test_improvement_verdict: 5 -+ 4.303 / sqrt(3)
    lab.add("a", {0: [0.0] * 3, 3: [4.0, 5.0, 6.0]}, start="y0")
    lab.add("b", {0: [0.0] * 3, 3: [0.0] * 3}, start="y0", **NONE)
    warehouse = lab.open()
    warehouse.fill("noise_floors", [replace(FLOOR, cell_id="a", null_kind="control", observed=5.0)])
    found = row(warehouse, "pathway_verdict")
    assert (found["verdict"], found["evidence"]) == ("improves_beyond_noise", "control")
    assert (found["gain"], found["gain_low"]) == (5.0, pytest.approx(5 - 4.303 / 3**0.5))
    # two sides of 0.01, one cell
    assert (found["p_holm"], found["compared_count"], found["pair_count"]) == (0.02, 1, 3)


def test_replicates_count_by_majority_and_by_the_interval_of_their_mean(lab: Lab) -> None:
    models = {
        "two of three": (("up", "up", "still"), 0.5, "improves_beyond_noise"),
        "one of three": (("up", "still", "still"), 0.5, "no_improvement_shown"),
        "two of three whose mean may be none": (("up", "up", "still"), -0.5, "no_improvement_shown"),
        "two of three too few": (("up", "few", "few"), 0.5, "too_few_episodes"),
    }
    floors = []
    for model, (kinds, _, _) in models.items():
        for replicate, kind in enumerate(kinds):
            lab.add(f"{model} {replicate}", {0: [1.0], 3: [1.0]}, model_id=model, replicate=replicate)
            # corrected for twelve cells: 12 * 2 * 0.001
            above, smallest = {"up": (0.001, 0.0001), "still": (0.5, 0.0001), "few": (0.5, 0.4)}[kind]
            floors.append(replace(FLOOR, cell_id=f"{model} {replicate}", p_above=above, smallest_p=smallest))
    warehouse = lab.open(materialize=True)
    warehouse.fill("noise_floors", floors)
    warehouse.fill(
        "intervals", [replace(SEVERAL, cell_id=f"{model} 0", low=low) for model, (_, low, _) in models.items()]
    )
    found = {verdict["model_id"]: verdict for verdict in warehouse.sql("from pathway_verdict").to_dicts()}
    assert {model: found[model]["verdict"] for model in models} == {
        model: told for model, (_, _, told) in models.items()
    }
    one = found["two of three"]
    assert (one["replicate_count"], one["judged_count"], one["improved_count"], one["p_holm"]) == (3, 3, 2, None)
    assert (one["gain"], one["gain_low"], one["gain_high"]) == (2.0, 0.5, 3.5)


def test_without_noise_floors_nothing_is_judged(lab: Lab) -> None:
    lab.add(curve={0: [1.0], 3: [2.0]})
    found = row(lab.open(), "pathway_verdict")
    assert (found["verdict"], found["judged_count"], found["gain"], found["exploration"]) == (None, 0, None, None)


def test_of_several_settings_the_latest_counts_and_interventions_do_not(lab: Lab) -> None:
    lab.add("old", {0: [1.0]}, run="run-1", history_token_limit=10)
    lab.add("new", {0: [1.0]}, run="run-2", history_token_limit=20)
    lab.add("changed", {0: [1.0]}, run="run-2", intervention="oracle_judge")
    warehouse = lab.open("all")
    (series,) = warehouse.sql("select series_id from int_replicate_series where cell_id = 'new'").row(0)
    assert row(warehouse, "pathway_verdict")["series_id"] == series


def explored(lab: Lab, blocks: Mapping[str, tuple[list[Any], list[Any]]]) -> dict[str, dict[str, Any]]:
    """A model for each first and last block, by name."""
    for name, (first, last) in blocks.items():
        lab.add(name, explored={0: first, 3: [None], 6: last}, model_id=name)
    return {found["model_id"]: found for found in lab.open(materialize=True).sql("from pathway_verdict").to_dicts()}


def test_exploration_is_called_what_its_interval_supports(lab: Lab) -> None:
    first = [0.0, 1.0, 2.0]
    blocks = {
        "rises": (first, [10.0, 11.0, 12.0]),
        "not_told": (first, [1.0, 2.0, 3.0]),
        "falls": (first, [-10.0, -11.0, -12.0]),
    }
    found = explored(lab, blocks)
    # variances 1 and 1 of three each: error sqrt(2 / 3) = 0.8165; t(2) = 4.303: 10 -+ 3.513
    rising = found["rises"]
    assert rising["exploration_gain"] == 10.0
    assert (rising["exploration_low"], rising["exploration_high"]) == pytest.approx((6.487, 13.513), abs=1e-3)
    assert {name: found[name]["exploration"] for name in blocks} == {name: name for name in blocks}


def test_without_spread_or_a_block_nothing_is_said_of_exploration(lab: Lab) -> None:
    blocks: dict[str, tuple[list[Any], list[Any]]] = {
        "alike": ([0.0, 0.0], [5.0, 5.0]),
        "one each": ([0.0], [5.0]),
        "no first": ([None], [5.0, 6.0]),
        "no last": ([0.0, 1.0], [None]),
    }
    found = explored(lab, blocks)
    gains = {"alike": 5.0, "one each": 5.0, "no first": None, "no last": None}
    assert {name: found[name]["exploration_gain"] for name in blocks} == gains
    assert {(verdict["exploration_low"], verdict["exploration"]) for verdict in found.values()} == {(None, None)}


def test_what_another_agent_explored_is_not_the_models(lab: Lab) -> None:
    lab.add(explored={0: [0.0, 1.0], 3: [10.0, 11.0]}, explorer_id="player:expert")
    assert row(lab.open(), "pathway_verdict")["exploration_gain"] is None


def test_replicates_are_means_of_their_own_blocks(lab: Lab) -> None:
    for replicate, shift in enumerate((0.0, 100.0)):
        lab.add(
            f"a {replicate}",
            explored={0: [shift, shift + 2.0], 3: [shift + 10.0, shift + 12.0]},
            replicate=replicate,
        )
    found = row(lab.open(), "pathway_verdict")
    # each block: squares 2 in each replicate, 4 over two degrees of freedom, times 1/2 + 1/2: 2; error sqrt(4) / 2 = 1
    assert (found["exploration_gain"], found["exploration_low"]) == (10.0, pytest.approx(10 - 4.303))
