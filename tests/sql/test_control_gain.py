from typing import Any

import pytest

from tests.sql.lab import Lab, row


def pair(lab: Lab, cell: dict[int, list[Any]], control: dict[int, list[Any]], **settings: Any) -> None:
    lab.add("cell", {0: [0.0], **cell}, start="y0", pathway="history", **settings)
    lab.add("control", {0: [0.0], **control}, start="y0", pathway="none", exploration_episode_count=0)


def test_error_is_clustered_by_instance(lab: Lab) -> None:
    lab.anchors(random=0.0, expert=6.0)
    pair(lab, {3: [1.0, 0.0], 6: [3.0, 2.0]}, {3: [0.0, 0.0], 6: [0.0, 0.0]})
    gain = row(lab.open(), "control_gain")
    # differences: instance 0: 1, 3; instance 1: 0, 2; mean 1.5
    # residual sums: -0.5 + 1.5 = 1 and -1.5 + 0.5 = -1; error sqrt(2/1 * 2) / 4 = 0.5; t(1) = 12.706
    assert (gain["pair_count"], gain["cluster_count"], gain["mean_difference"]) == (4, 2, 1.5)
    assert gain["standard_error"] == pytest.approx(0.5)
    assert gain["difference_low"] == pytest.approx(1.5 - 6.353)
    assert gain["difference_high"] == pytest.approx(1.5 + 6.353)
    assert gain["normalised_difference"] == pytest.approx(0.25)
    assert (gain["is_beyond_noise"], gain["control_cell_id"]) == (False, "control")


def test_interval_that_excludes_zero_is_beyond_noise(lab: Lab) -> None:
    pair(lab, {3: [4.0, 5.0, 6.0]}, {3: [0.0, 0.0, 0.0]})
    gain = row(lab.open(), "control_gain")
    # mean 5, residuals -1, 0, 1: sqrt(3/2 * 2) / 3 = 0.57735; t(2) = 4.303: 5 -+ 2.48434
    assert gain["difference_low"] == pytest.approx(2.51566, abs=1e-5)
    assert gain["is_beyond_noise"] is True


def test_instances_that_are_all_there_is_do_not_vary(lab: Lab) -> None:
    pair(lab, {3: [1.0, 9.0], 6: [3.0, 7.0]}, {3: [0.0, 0.0], 6: [0.0, 0.0]}, is_instances_shared=True)
    gain = row(lab.open(), "control_gain")
    # mean 5; of the strata 2 and 8: residuals -1, 1 and 1, -1; error sqrt(4/2 * 4) / 4 = 0.70711; t(2) = 4.303
    assert (gain["cluster_count"], gain["stratum_count"], gain["mean_difference"]) == (4, 2, 5.0)
    assert gain["standard_error"] == pytest.approx(0.70711, abs=1e-5)
    assert gain["difference_low"] == pytest.approx(5 - 3.0427, abs=1e-4)


def test_checkpoint_zero_and_invalid_episodes_are_in_no_pair(lab: Lab) -> None:
    pair(lab, {3: [1.0, None, 3.0]}, {3: [0.0, 0.0, None]})
    gain = row(lab.open(), "control_gain")
    assert (gain["pair_count"], gain["mean_difference"]) == (1, 1.0)
    # one instance: no error can be told
    assert (gain["standard_error"], gain["difference_low"], gain["is_beyond_noise"]) == (None, None, None)


def test_one_and_the_same_difference_has_no_interval_but_a_sign(lab: Lab) -> None:
    cases = [
        (0.0, 2, False),
        (0.1, 5, None),  # sign test: 2^-4 = 0.0625
        (0.1, 6, True),  # 2^-5 = 0.03125
        (-0.1, 6, True),
    ]
    for replicate, (difference, instances, _) in enumerate(cases):
        curve = {3: [difference] * instances, 6: [difference] * instances}
        control = dict.fromkeys(curve, [0.0] * instances)
        lab.add(f"cell {replicate}", curve, replicate=replicate)
        lab.add(f"control {replicate}", control, replicate=replicate, pathway="none")
    gains = lab.open().sql("from control_gain order by replicate").to_dicts()
    assert [gain["mean_difference"] for gain in gains] == pytest.approx([case[0] for case in cases])
    assert [(gain["standard_error"], gain["difference_high"]) for gain in gains] == [(None, None)] * 4
    assert [gain["is_beyond_noise"] for gain in gains] == [case[2] for case in cases]


def test_cells_with_an_intervention_have_the_control_of_those_without_unless_its_rules_differ(lab: Lab) -> None:
    relaxed: dict[str, Any] = {"intervention": "relaxed_evaluation", "evaluation_config_id": "relaxed"}
    lab.add("control", {3: [1.0]}, pathway="none")
    lab.add("relaxed control", {3: [4.0]}, pathway="none", **relaxed)
    lab.add("a", {3: [3.0]})
    lab.add("b", {3: [6.0]}, intervention="oracle_judge")
    lab.add("c", {3: [9.0]}, **relaxed)

    gains = lab.open().sql("select cell_id, control_cell_id, mean_difference from control_gain order by cell_id").rows()

    # 3 - 1, 6 - 1, 9 - 4
    assert gains == [("a", "control", 2.0), ("b", "control", 5.0), ("c", "relaxed control", 5.0)]


def test_a_control_with_an_intervention_is_never_that_of_a_cell_without(lab: Lab) -> None:
    lab.add("a control", {3: [4.0]}, pathway="none", intervention="relaxed_evaluation")  # under equal rules
    lab.add("control", {3: [1.0]}, pathway="none")
    lab.add("cell", {3: [3.0]})

    assert lab.open().sql("select control_cell_id from control_gain").rows() == [("control",)]


def test_cell_without_a_control_of_its_settings_gains_null(lab: Lab) -> None:
    lab.add("control", {3: [0.0]}, pathway="none")
    others: list[dict[str, Any]] = [
        {"model_id": "other"},
        {"replicate": 1},
        {"base_seed": 7},
        {"temperature": 0.5},
        {"model_revision": "r2"},
        {"evaluation_config_id": "other"},
    ]
    for number, setting in enumerate(others):
        lab.add(f"cell {number}", {3: [1.0]}, **setting)
    gains = lab.open().sql("select pair_count, mean_difference, control_cell_id from control_gain").rows()
    assert gains == [(0, None, None)] * len(others)


def test_history_settings_do_not_part_a_cell_from_its_control(lab: Lab) -> None:
    pair(lab, {3: [1.0]}, {3: [0.0]}, history_token_limit=5, history_cut="oldest")
    assert row(lab.open(), "control_gain")["pair_count"] == 1


def test_control_with_most_pairs_counts(lab: Lab) -> None:
    pair(lab, {3: [2.0], 6: [2.0]}, {3: [1.0], 6: [1.0]})
    lab.add("a shorter control", {3: [0.0]}, pathway="none")
    gain = row(lab.open(), "control_gain")
    assert (gain["control_cell_id"], gain["pair_count"], gain["mean_difference"]) == ("control", 2, 1.0)
