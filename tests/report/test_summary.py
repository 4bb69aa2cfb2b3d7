"""The sentences of the summary: each says what its row supports, and no more."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from s3gym import resampling
from s3gym.report import fragments
from s3gym.report.sections import noise_floor, summary
from tests.report.test_training import datasets, words
from tests.sql.lab import Lab
from tests.sql.test_improvement_verdict import FLOOR, NONE

VERDICT: dict[str, Any] = {
    "improved_pathways": None,
    "ahead": None,
    "memory_over_history": None,
    "memory_over_history_low": None,
    "memory_over_history_high": None,
    "belief": None,
    "belief_count": 0,
    "over_claim_count": 0,
    "over_claiming": None,
    "over_claiming_low": None,
    "over_claiming_high": None,
}
PATHWAY: dict[str, Any] = {
    "model_id": "m",
    "explorer_id": "m",
    "pathway": "history",
    "verdict": "improves_beyond_noise",
    "evidence": "control",
    "replicate_count": 1,
    "judged_count": 1,
    "improved_count": 1,
    "worse_count": 0,
    "gain": 3.2,
    "gain_low": 1.0,
    "gain_high": 5.4,
    "p_holm": 0.01,
    "pair_count": 21,
    "exploration": None,
    "exploration_gain": None,
    "exploration_low": None,
    "exploration_high": None,
}


def said(verdict: Mapping[str, Any] | None = None, *pathways: Mapping[str, Any]) -> str:
    told = summary.sentence({**VERDICT, **(verdict or {})}, [{**PATHWAY, **pathway} for pathway in pathways])
    return words(told).replace("\N{NO-BREAK SPACE}", " ").strip()


def test_an_improvement_is_told_with_its_pathway_and_interval() -> None:
    assert said(None, {}) == "▲ improves under history (+3.20 [+1.00, +5.40] )"


def test_pathways_of_one_verdict_stand_together() -> None:
    told = said(None, {}, {"pathway": "memory"}, {"pathway": "training", "verdict": "worse", "gain": -1.0})

    assert told.startswith("▲ improves under history (+3.20 [+1.00, +5.40] ) and memory (+3.20")
    assert "; ▼ gets worse under training (-1.00" in told


def test_a_clear_interval_that_correction_undoes_says_so() -> None:
    told = said(None, {"verdict": "no_improvement_shown", "p_holm": 0.19})

    assert told == "● no improvement shown under history (+3.20 [+1.00, +5.40] , p 0.19 after correction)"


def test_an_interval_with_zero_in_it_needs_no_more_words() -> None:
    assert "p " not in said(None, {"verdict": "no_improvement_shown", "gain_low": -1.0, "p_holm": 0.6}).split("(")[1]


def test_too_few_episodes_are_no_verdict_on_the_agent() -> None:
    few = {"verdict": "too_few_episodes", "gain": None, "gain_low": None, "gain_high": None}

    assert said(None, few) == "● too few episodes to say under history"


def test_a_gain_without_spread_is_told_by_its_number_of_pairs() -> None:
    still = {"verdict": "no_improvement_shown", "gain": 0.0, "gain_low": None, "gain_high": None}

    assert said(None, still) == "● no improvement shown under history (0.00 (no spread in 21 pairs) )"


def test_what_a_verdict_rests_on_is_named_where_it_is_unusual() -> None:
    unusual = {"evidence": "checkpoints", "replicate_count": 4, "judged_count": 4, "improved_count": 3}

    told = said(None, unusual | {"explorer_id": "player:expert"})

    assert "against its own start, 3 of 4 replicates better, explored by player:expert" in told


@pytest.mark.parametrize(
    ("ahead", "told"),
    [
        ("memory", "memory is ahead of history (+1.00 [+0.50, +1.50] )"),
        ("history", "memory is behind history (+1.00 [+0.50, +1.50] )"),
        ("not_told", "memory and history cannot be told apart (+1.00 [+0.50, +1.50] )"),
    ],
)
def test_which_pathway_is_ahead_is_said_as_far_as_it_is_known(ahead: str, told: str) -> None:
    difference = {"memory_over_history": 1.0, "memory_over_history_low": 0.5, "memory_over_history_high": 1.5}

    assert said(difference | {"ahead": ahead, "improved_pathways": "memory"}, {}).endswith(told)


def test_pathways_that_do_not_help_are_not_compared() -> None:
    assert "apart" not in said({"ahead": "not_told"}, {"verdict": "no_improvement_shown"})


@pytest.mark.parametrize(
    ("belief", "told"),
    [
        ("over_claims", "believes in success where there is none (8 of 10 looks back, 80 % [49, 94] )"),
        ("sound", "seldom believes in success where there is none (8 of 10 looks back, 80 % [49, 94] )"),
        ("not_told", "whether it believes in success where there is none cannot be told (8 of 10 looks back, 80 % [49"),
    ],
)
def test_whether_the_agent_fools_itself_is_told_with_its_share(belief: str, told: str) -> None:
    share = {"over_claiming": 0.8, "over_claiming_low": 0.49, "over_claiming_high": 0.94}

    assert told in said(share | {"belief": belief, "belief_count": 10, "over_claim_count": 8}, {})


def test_a_rise_in_exploration_that_is_not_shown_held_out_is_told() -> None:
    rising = {"exploration": "rises", "exploration_gain": 9.0, "exploration_low": 4.0, "exploration_high": 14.0}

    told = said(None, rising | {"verdict": "no_improvement_shown"})

    assert told.endswith(
        "scores in exploration rise under history (+9.00 [+4.00, +14.00] ), which is not shown to transfer to held-out "
        "episodes"
    )
    assert "exploration" not in said(None, rising), "what improves held-out has transferred"


def test_tiles_points_and_words_rest_on_the_same_verdicts(tmp_path: Path) -> None:
    # the interval of one comparison leaves out zero, and p does not stay below 5 %
    lab = Lab(tmp_path / "data")
    lab.add("cell", {0: [0.0] * 3, 3: [3.0, 4.0, 3.5]}, start="y0")
    lab.add("control", {0: [0.0] * 3, 3: [0.0] * 3}, start="y0", **NONE)
    warehouse = lab.open()
    warehouse.fill("noise_floors", [replace(FLOOR, cell_id="cell", null_kind="control", p_above=0.03)])

    built = summary.build(warehouse)

    assert warehouse.sql("select is_beyond_noise from control_gain").item() is True
    told = words(built)
    assert "1 cells judged 0 improve beyond noise 0 get worse beyond noise 1 no improvement shown" in told
    assert ", p 0.06 after correction)" in told and "▲" not in told
    (points,) = [chart["gains"] for chart in datasets(built)]
    assert [point["verdict"] for point in points] == ["no_improvement_shown"]


def test_noise_floors_stand_beside_what_was_published(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "data")
    # AUC+ of history: 3 * 1 / 2 + 3 * 1; instances alike in all, so that dealing can change it
    lab.add("a", {0: [0.0, 1.0], 3: [1.0, 2.0], 6: [1.0, 2.0]})
    lab.add("still", {0: [1.0, 1.0], 3: [1.0, 1.0]}, model_id="n")
    warehouse = lab.open(materialize=True)
    resampling.refresh(warehouse)
    floor = warehouse.sql("from noise_floor where cell_id = 'a' and metric = 'auc_plus'").to_dicts()[0]

    told = words(noise_floor.build(warehouse))

    assert floor["observed"] == 4.5
    assert f"AUC+ 4.50 {floor['null_mean']:.2f} {floor['null_high']:.2f} {floor['p_value']:.3f} one policy" in told
    assert "AUC+ is above zero in 1 of 2 cells; in" in told
    assert "AUC+ 0.00 – (all scores are alike: dealing them anew changes nothing)" in told


def test_words_are_joined_as_in_a_sentence() -> None:
    assert [fragments.listed("abc"[:n]) for n in (1, 2, 3)] == ["a", "a and b", "a, b and c"]
    assert [fragments.counted(n, "pair") for n in (0, 1, 2_000)] == ["0 pairs", "1 pair", "2,000 pairs"]
