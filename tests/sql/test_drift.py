from math import sqrt
from typing import Any

import pytest

from tests.sql.lab import Lab, row


def drift(lab: Lab, cell_id: str, **options: Any) -> dict[str, Any]:
    return row(lab.open(**options), "drift", f"cell_id = '{cell_id}'")


def test_pairs_of_the_same_seed_are_tested_and_corrected_for_the_cells_compared(lab: Lab) -> None:
    lab.add("a old", {3: [1.0, 2.0, 3.0, 4.0]}, run="before", model_id="a")
    lab.add("b old", {3: [1.0, 1.0, 1.0]}, run="before", model_id="b")
    lab.add("a", {3: [2.0, 4.0, 4.0, 6.0]}, run="after", model_id="a")
    lab.add("b", {3: [2.0, 3.0, 4.0]}, run="after", model_id="b")
    lab.refresh("before", 1)
    lab.refresh("after", 2)

    a, b = drift(lab, "a"), drift(lab, "b")

    # differences 1, 2, 1, 2: mean 1.5, standard error sqrt(4 / 3 * 4 * 0.25) / 4; t = 3 sqrt(3) with 3 degrees of
    # freedom has p = 1 - 2 / pi (atan 3 + 3 / 10) = 0.01385
    assert (a["status"], a["pair_count"], a["score"], a["previous_score"]) == ("remeasured", 4, 4.0, 2.5)
    error = sqrt(4 / 3) / 4
    assert (a["difference"], a["difference_low"]) == pytest.approx((1.5, 1.5 - 3.182 * error))
    assert a["p_value"] == pytest.approx(0.01385, abs=5e-6)
    # differences 1, 2, 3: t = 2 sqrt(3) with 2 degrees of freedom has p = 1 - sqrt(6 / 7)
    assert b["p_value"] == pytest.approx(1 - sqrt(6 / 7))
    assert (a["p_holm"], b["p_holm"]) == pytest.approx((2 * a["p_value"], b["p_value"]))
    assert (a["outcome"], b["outcome"], b["compared_count"]) == ("higher", "none_shown", 2)


def test_the_same_difference_everywhere_is_told_by_the_sign_test(lab: Lab) -> None:
    lab.add("a old", {3: [1.0] * 6}, run="before", model_id="a")
    lab.add("b old", {3: [1.0] * 6}, run="before", model_id="b")
    lab.add("a", {3: [0.0] * 6}, run="after", model_id="a")
    lab.add("b", {3: [1.0] * 6}, run="after", model_id="b")
    lab.refresh("before", 1)
    lab.refresh("after", 2)

    a, b = drift(lab, "a"), drift(lab, "b")

    assert (a["p_value"], a["difference_low"]) == (2**-5, None)
    assert (b["p_value"], b["outcome"]) == (1.0, "none_shown")
    assert a["outcome"] == "none_shown"  # 2 * 2^-5 = 0.0625


def test_without_a_common_seed_the_means_are_compared(lab: Lab) -> None:
    lab.add("old", {3: [None, None, 1.0, 3.0]}, run="before")
    lab.add("new", {3: [5.0, 7.0, None, None]}, run="after")
    lab.refresh("before", 1)
    lab.refresh("after", 2)

    found = drift(lab, "new")

    # each mean has standard error sqrt(2 / 1 * (1 + 1)) / 2 = 1; together sqrt(2), 1 degree of freedom
    assert (found["pair_count"], found["episode_count"]) == (0, 2)
    assert (found["previous_score"], found["score"], found["difference"]) == (2.0, 6.0, 4.0)
    assert found["difference_high"] == pytest.approx(4 + 12.706 * sqrt(2))
    # 1 - 2 / pi atan(4 / sqrt(2))
    assert found["p_value"] == pytest.approx(0.21635, abs=5e-6)


def test_one_pair_is_too_few_to_tell(lab: Lab) -> None:
    lab.add("old", {3: [1.0]}, run="before")
    lab.add("new", {3: [9.0]}, run="after")
    lab.refresh("before", 1)
    lab.refresh("after", 2)

    found = drift(lab, "new")

    assert (found["difference"], found["p_value"], found["outcome"]) == (8.0, None, "too_few_episodes")


def test_what_a_cell_is_beside_the_refresh_before(lab: Lab) -> None:
    lab.add("same", {3: [1.0]}, run="before", model_id="a")
    lab.add("short", {0: [1.0]}, run="before", model_id="b", start="y0")
    lab.add("same", {3: [1.0]}, run="after", model_id="a")
    lab.add("long", {0: [1.0], 3: [2.0]}, run="after", model_id="b", start="y0", exploration_episode_count=9)
    lab.add("fresh", {3: [1.0]}, run="after", model_id="c")
    lab.refresh("before", 1)
    lab.refresh("after", 2)

    rows = {found["cell_id"]: found for found in lab.open().sql("from drift").to_dicts()}

    assert {name: found["status"] for name, found in rows.items()} == {
        "same": "unchanged",
        "long": "extended",
        "fresh": "new",
    }
    assert rows["long"]["cause"] == "exploration_episodes 6 -> 9"
    assert {found["outcome"] for found in rows.values()} == {None}


def test_the_cause_and_other_versions_are_told_with_old_and_new_values(lab: Lab) -> None:
    lab.add("old", {3: [1.0, 2.0]}, run="before", game_version=1)
    lab.add("new", {3: [1.0, 2.0]}, run="after", game_version=2, model_revision="as of 2026-12")
    lab.refresh("before", 1, versions='{"s3gym": "0.1.0", "python": "3.11"}', verdicts='{"old": "worse"}')
    lab.refresh("after", 2, versions='{"s3gym": "0.2.0", "python": "3.11"}')

    found = drift(lab, "new")

    assert found["cause"] == "game VERSION 1 -> 2; model_revision none -> as of 2026-12"
    assert found["other_versions"] == "s3gym 0.1.0 -> 0.2.0"
    assert found["previous_verdict"] == "worse"


def test_neither_the_same_run_again_nor_a_run_of_other_games_hides_what_changed(lab: Lab) -> None:
    lab.add("old", {3: [1.0]}, run="before")
    lab.add("aside", {3: [1.0]}, run="aside", game="trust")
    lab.add("new", {3: [2.0]}, run="after")
    for hour, run in enumerate(("before", "aside", "after", "after")):
        lab.refresh(run, hour)

    assert drift(lab, "new")["previous_cell_id"] == "old"
    assert drift(lab, "old", run_id="before")["status"] == "new"


def test_a_run_that_is_in_no_log_has_nothing_before_it(lab: Lab) -> None:
    lab.add("cell", {3: [1.0]})

    assert drift(lab, "cell")["status"] == "new"


def test_reasons_are_told_most_stages_first(lab: Lab) -> None:
    lab.add("cell", {3: [1.0]})
    lab.refresh("run-1", 1, reasons='{"never made before": 3, "game VERSION 1 -> 2": 12}', paid_usd=None)

    found = row(lab.open(), "refreshes")

    assert found["reasons"] == "game VERSION 1 -> 2 (12); never made before (3)"
    assert (found["is_selected"], found["paid_usd"], found["seconds"]) == (True, None, 0.0)
