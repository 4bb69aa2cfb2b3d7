from collections.abc import Mapping
from typing import Any

import pytest

from s3gym.derived import InterventionTest
from s3gym.resampling import refresh
from s3gym.warehouse import Warehouse
from tests.sql.lab import Lab, row

HELPS, HURTS, NOT, OPEN = [6.0, 7.0, 8.0], [-6.0, -7.0, -8.0], [0.5, 0.0, -0.5], [9.0, -9.0, 6.0]
"""Differences on three instances; an improvement of 5 matters. Intervals with t(2) = 4.303, error sd / sqrt(3):
7 -+ 2.48, -7 -+ 2.48, 0 -+ 1.24, 2 -+ 24.0."""
NONE: dict[str, Any] = {"pathway": "none", "exploration_episode_count": 0}
NOTHING_HELPS = {"own": NOT, "oracle_judge": NOT, "expert_exploration": NOT, "reference_memory": NOT}


def chain(lab: Lab, effects: Mapping[str, list[float]], model: str = "m", **settings: Any) -> None:
    """A cell, its control, and its interventions, with these differences; reference_over_placebo is made of two."""
    given = {"model_id": model, **settings}
    relaxed = {"intervention": "relaxed_evaluation", "evaluation_config_id": "relaxed"}
    own = effects.get("own", [0.0] * 3)
    lab.add(f"{model} main", {3: own}, **given)
    if "own" in effects:
        lab.add(f"{model} none", {3: [0.0] * 3}, **(given | NONE))
    for name, differences in effects.items():
        if name == "relaxed_evaluation":
            lab.add(f"{model} {name}", {3: differences}, **(given | relaxed))
            lab.add(f"{model} relaxed none", {3: [0.0] * 3}, **(given | relaxed | NONE))
        elif name != "own":
            scores = [score + difference for score, difference in zip(own, differences, strict=True)]
            lab.add(f"{model} {name}", {3: scores}, **(given | {"intervention": name}))


def with_p(warehouse: Warehouse, p: float = 0.0001, **told: float) -> Warehouse:
    """With a clear p wherever the differences do not cancel, or as told by contrast."""
    effects = warehouse.sql("select chain_id, contrast, mean_difference from intervention_effect").rows()
    warehouse.fill(
        "intervention_tests",
        [
            InterventionTest(
                difference_id=f"intervention|{chain_id}|{contrast}",
                p_value=told.get(contrast, p if abs(mean) > 5 else 1.0),
                permutation_count=9_999,
            )
            for chain_id, contrast, mean in effects
        ],
    )
    return warehouse


def verdicts(lab: Lab, cases: Mapping[str, Mapping[str, list[float]]]) -> dict[str, tuple[str | None, str | None]]:
    """(verdict, not_asked) of a model for each of the cases."""
    lab.anchors(random=0.0, expert=10.0)
    for model, effects in cases.items():
        chain(lab, effects, model=model)
    rows = with_p(lab.open()).sql("select model_id, verdict, not_asked from break_location").rows()
    return {model: (verdict, asked) for model, verdict, asked in rows}


# --- effects ---------------------------------------------------------------------------------------------------


def test_a_difference_is_that_of_pairs_on_the_same_instances_with_its_interval(lab: Lab) -> None:
    lab.anchors(random=0.0, expert=10.0)
    chain(lab, {"own": NOT, "oracle_judge": HELPS})
    found = row(with_p(lab.open(), oracle_judge=0.02), "intervention_effect", "contrast = 'oracle_judge'")
    assert (found["pair_count"], found["mean_difference"], found["normalised_difference"]) == (3, 7.0, 0.7)
    # residuals -1, 0, 1: sqrt(3/2 * 2) / 3 = 0.57735; t(2) = 4.303
    assert found["difference_low"] == pytest.approx(7 - 2.48434, abs=1e-5)
    assert (found["relevant_difference"], found["gained_count"], found["lost_count"]) == (5.0, 3, 0)
    assert (found["p_holm"], found["compared_count"], found["effect"]) == (0.02, 1, "helps")


def test_each_word_is_what_p_and_interval_support(lab: Lab) -> None:
    lab.anchors(random=0.0, expert=10.0)
    words = {"helps": HELPS, "hurts": HURTS, "not": NOT, "open": OPEN}
    for word, differences in words.items():
        chain(lab, {"oracle_judge": differences}, model=word)
    warehouse = with_p(lab.open(materialize=True))
    found = dict(warehouse.sql("select model_id, effect from intervention_effect").rows())
    assert found == {word: word for word in words}


def test_gains_on_some_instances_and_losses_on_none_help_whatever_the_interval(lab: Lab) -> None:
    lab.anchors(random=0.0, expert=10.0)
    chain(lab, {"oracle_judge": [0.0, 0.0, 18.0]}, model="none lost")
    chain(lab, {"oracle_judge": [-0.5, 0.0, 18.5]}, model="one lost")
    warehouse = with_p(lab.open(materialize=True))
    found = {effect["model_id"]: effect for effect in warehouse.sql("from intervention_effect").to_dicts()}
    # mean 6, error sqrt(3/2 * 216) / 3 = 6
    assert found["none lost"]["difference_low"] == pytest.approx(6 - 4.303 * 6)
    assert (found["none lost"]["effect"], found["one lost"]["effect"]) == ("helps", "open")
    assert (found["one lost"]["gained_count"], found["one lost"]["lost_count"]) == (1, 1)


def test_no_difference_at_all_is_not_and_needs_no_anchors(lab: Lab) -> None:
    chain(lab, {"oracle_judge": [0.0] * 3}, model="alike")
    chain(lab, {"oracle_judge": NOT}, model="varied")
    warehouse = with_p(lab.open(materialize=True))
    found = warehouse.sql("select model_id, effect, decisive_episodes from intervention_effect order by all").rows()
    assert found == [("alike", "not", None), ("varied", "open", None)]


def test_holm_counts_own_gains_deciding_and_refuting_tests_apart(lab: Lab) -> None:
    chain(
        lab,
        {
            "own": NOT,
            "oracle_judge": HELPS,
            "expert_exploration": HELPS,
            "reference_memory": HELPS,
            "placebo_memory": NOT,
            "shuffled_scores": NOT,
            "relaxed_evaluation": NOT,
        },
    )
    p = {
        "own": 0.03,
        "oracle_judge": 0.01,
        "expert_exploration": 0.02,
        "reference_memory": 0.04,
        "shuffled_scores": 0.02,
    }
    warehouse = with_p(lab.open(materialize=True), **p)
    found = {
        contrast: (p_holm, count)
        for contrast, p_holm, count in warehouse.sql(
            "select contrast, p_holm, compared_count from intervention_effect"
        ).rows()
    }
    # deciding: 4 * 0.01, 3 * 0.02, 2 * 0.04, 1; refuting: 0.0001 * 3 of reference over placebo, 2 * 0.02, 1
    assert found == {
        "own": (0.03, 1),
        "oracle_judge": (pytest.approx(0.04), 4),
        "expert_exploration": (pytest.approx(0.06), 4),
        "reference_memory": (pytest.approx(0.08), 4),
        "relaxed_evaluation": (1.0, 4),
        "reference_over_placebo": (pytest.approx(0.0003), 3),
        "shuffled_scores": (pytest.approx(0.04), 3),
        "placebo_memory": (1.0, 3),
    }


def test_relaxed_evaluation_is_compared_with_the_control_under_the_same_rules(lab: Lab) -> None:
    lab.anchors(random=0.0, expert=40.0, config_id="relaxed")
    chain(lab, {"own": NOT, "relaxed_evaluation": HELPS})
    found = row(with_p(lab.open()), "intervention_effect", "contrast = 'relaxed_evaluation'")
    assert (found["mean_difference"], found["relevant_difference"]) == (7.0, 20.0)


def test_text_pathways_of_a_model_and_game_are_also_one_chain(lab: Lab) -> None:
    lab.anchors(random=0.0, expert=10.0)
    for pathway, differences in {"history": [1.0, 2.0, 3.0], "memory": [5.0, 6.0, 7.0]}.items():
        lab.add(f"{pathway} main", {3: [0.0] * 3}, pathway=pathway)
        lab.add(f"{pathway} oracle", {3: differences}, pathway=pathway, intervention="oracle_judge")
    lab.add("trained", {3: [0.0] * 3}, pathway="training", training="{}")
    warehouse = with_p(lab.open(materialize=True))
    found = row(warehouse, "intervention_effect", "pathway = '*'")
    # sums of the instances 6, 8, 10, mean 4; residuals -2, 0, 2: error sqrt(3/2 * 8) / 6 = 0.57735
    assert (found["pair_count"], found["cluster_count"], found["mean_difference"]) == (6, 3, 4.0)
    assert found["standard_error"] == pytest.approx(0.57735, abs=1e-5)
    chains = warehouse.sql("select pathway, cell_count from break_location order by pathway").rows()
    assert chains == [("*", 2), ("history", 1), ("memory", 1), ("training", 1)]


def test_another_explorer_is_an_intervention_only_where_it_is_asked_for(lab: Lab) -> None:
    lab.add("main", {3: [0.0] * 3})
    lab.add("expert", {3: HELPS}, intervention="expert_exploration", explorer_id="player:expert")
    lab.add("other", {3: HELPS}, intervention="oracle_judge", explorer_id="player:steady")
    found = lab.open().sql("select contrast, treated_cell_id from int_intervention_contrasts").rows()
    assert found == [("expert_exploration", "expert")]


def test_the_tables_of_tests_are_made_of_the_pairs(lab: Lab) -> None:
    chain(lab, {"oracle_judge": HELPS})
    warehouse = lab.open()
    refresh(warehouse)
    # each of three instances: 0 and its gain change places or not; two of eight ways are as clear, in either direction
    assert row(warehouse, "stg_intervention_tests")["p_value"] == pytest.approx(2 / 8, abs=0.02)


# --- verdicts --------------------------------------------------------------------------------------------------


def test_the_link_that_had_to_be_replaced_is_named(lab: Lab) -> None:
    guided = NOTHING_HELPS | {"reference_memory": HELPS}
    cases = {
        "none": {"own": HELPS},
        "judging": {"own": NOT, "oracle_judge": HELPS, "shuffled_scores": NOT, "expert_exploration": HELPS},
        "testing": {"own": NOT, "oracle_judge": NOT, "expert_exploration": HELPS},
        "consolidation": guided | {"placebo_memory": NOT},
        "transfer": NOTHING_HELPS | {"relaxed_evaluation": HELPS},
        "execution_or_transfer": NOTHING_HELPS | {"relaxed_evaluation": NOT},
    }
    assert verdicts(lab, cases) == {told: (told, None) for told in cases}


def test_what_could_have_another_cause_is_not_named(lab: Lab) -> None:
    cases = {
        "scores that are worth something": NOTHING_HELPS | {"oracle_judge": HELPS, "shuffled_scores": HURTS},
        "testing that may be judging": NOTHING_HELPS | {"oracle_judge": OPEN, "expert_exploration": HELPS},
        "any text helps": NOTHING_HELPS | {"reference_memory": HELPS, "placebo_memory": HELPS},
        **{f"{name} may help": NOTHING_HELPS | {name: OPEN} for name in NOTHING_HELPS},
    }
    assert set(verdicts(lab, cases).values()) == {("not_enough_evidence", None)}


def test_without_an_intervention_the_verdict_is_null_and_says_which_would_decide(lab: Lab) -> None:
    cases = {
        "none": {"oracle_judge": HELPS},
        "oracle_judge": {"own": NOT},
        "shuffled_scores": {"own": NOT, "oracle_judge": HELPS},
        "expert_exploration": {"own": NOT, "oracle_judge": NOT},
        "reference_memory": {"own": NOT, "oracle_judge": NOT, "expert_exploration": NOT},
        "placebo_memory": NOTHING_HELPS | {"reference_memory": HELPS},
    }
    assert verdicts(lab, cases) == {asked: (None, asked) for asked in cases}


def test_before_the_tests_are_made_nothing_is_said(lab: Lab) -> None:
    chain(lab, NOTHING_HELPS)
    found = row(lab.open(), "break_location")
    assert (found["verdict"], found["not_asked"], found["own_effect"], found["own_gain"]) == (None, None, None, 0.0)


def test_it_says_how_many_episodes_would_decide(lab: Lab) -> None:
    lab.anchors(random=0.0, expert=10.0)
    chain(lab, NOTHING_HELPS | {"own": OPEN, "reference_memory": [-9.0, 9.0, 0.0]})
    found = row(with_p(lab.open()), "break_location")
    assert (found["verdict"], found["undecided"]) == ("not_enough_evidence", "own, reference_memory")
    # own: residuals 7, -11, 4: error sqrt(3/2 * 186) / 3 = 5.5678; 3 (2.802 * 5.5678 / 5)^2 = 29.2
    assert found["decisive_episodes"] == 30


def test_a_clear_interval_with_an_unclear_p_is_open_and_asks_for_more_than_was_played(lab: Lab) -> None:
    lab.anchors(random=0.0, expert=10.0)
    curve: dict[int, list[float | None]] = {3: [6.0, 8.0], 6: [7.0, 7.0]}
    for model, shared in {"drawn": False, "all there is": True}.items():
        settings: dict[str, Any] = {"model_id": model, "is_instances_shared": shared}
        lab.add(model, curve, **settings)
        lab.add(f"{model} none", dict.fromkeys(curve, [0.0] * 2), **settings, **NONE)
    rows = with_p(lab.open(), own=0.06).sql("from intervention_effect").to_dicts()
    found = {effect["model_id"]: effect for effect in rows}
    assert {effect["effect"] for effect in rows} == {"open"}
    # instances 6.5 and 7.5: error sqrt(2/1 * 2) / 4 = 0.5, which asks for less than the 3 that were played;
    # strata 6.5 and 7.5 of two: residuals -0.5, 0.5 twice, error sqrt(4/2 * 1) / 4 = 0.354; in pairs
    assert found["drawn"]["decisive_episodes"] == 4
    assert found["all there is"]["standard_error"] == pytest.approx(0.35355, abs=1e-5)
    assert found["all there is"]["decisive_episodes"] == 4


def test_the_episodes_shown_are_the_pair_nearest_to_the_mean_at_the_last_checkpoint(lab: Lab) -> None:
    lab.anchors(random=0.0, expert=10.0)
    lab.add("main", {3: [0.0] * 3, 6: [0.0] * 3})
    lab.add("none", {3: [0.0] * 3, 6: [0.0] * 3}, **NONE)
    lab.add("oracle", {3: [7.0] * 3, 6: [9.0, 7.5, 4.5]}, intervention="oracle_judge")
    lab.add("shuffled", {3: [0.0] * 3, 6: [0.0] * 3}, intervention="shuffled_scores")
    found = row(with_p(lab.open()), "break_location")
    assert (found["verdict"], found["shown_contrast"]) == ("judging", "oracle_judge")
    assert (found["treated_episode_id"], found["reference_episode_id"]) == ("oracle-evaluate-6/1", "main-evaluate-6/1")
