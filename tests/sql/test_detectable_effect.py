from math import isfinite
from typing import Any

import pytest

from s3gym.power import detection_factor
from tests.sql.lab import Lab, row
from tests.sql.test_control_gain import pair


def test_smallest_gain_is_a_multiple_of_the_standard_error(lab: Lab) -> None:
    lab.anchors(random=0.0, expert=5.0)
    pair(lab, {3: [4.0, 5.0, 6.0]}, {3: [0.0, 0.0, 0.0]})
    found = row(lab.open(), "detectable_effect")
    # mean 5, error sqrt(3/2 * 2) / 3 = 0.57735; two degrees of freedom: 4.303 + 1.061 = 5.363; 5.363 * 0.57735 = 3.0965
    assert (found["pair_count"], found["degrees_of_freedom"], found["mean_difference"]) == (3, 2, 5.0)
    assert found["standard_error"] == pytest.approx(0.57735, abs=1e-5)
    assert found["detectable_gain"] == pytest.approx(3.0965, abs=1e-3)
    assert found["normalised_detectable_gain"] == pytest.approx(3.0965 / 5, abs=1e-3)
    assert found["is_found_larger"] is True


def test_a_loss_counts_by_its_size_and_a_small_one_is_not_found(lab: Lab) -> None:
    pair(lab, {3: [1.0, 0.0], 6: [3.0, 2.0]}, {3: [0.0, 0.0], 6: [0.0, 0.0]})
    found = row(lab.open(), "detectable_effect")
    # error 0.5 with one degree of freedom: 14.083 / 2
    assert found["detectable_gain"] == pytest.approx(7.0415)
    assert (found["mean_difference"], found["is_found_larger"]) == (1.5, False)
    assert found["normalised_detectable_gain"] is None


@pytest.mark.parametrize(
    ("scores", "degrees"),
    [([4.0, 4.0, 4.0], 2), ([4.0], 0), ([None, None], None)],
    ids=["no spread", "one pair", "all invalid"],
)
def test_without_spread_or_pairs_there_is_no_such_gain(lab: Lab, scores: list[Any], degrees: int | None) -> None:
    pair(lab, {3: scores}, {3: [0.0] * len(scores)})
    found = row(lab.open(), "detectable_effect")
    assert (found["degrees_of_freedom"], found["standard_error"]) == (degrees, None)
    assert (found["detectable_gain"], found["is_found_larger"]) == (None, None)


def test_a_cell_without_a_control_has_its_row_and_a_control_has_none(lab: Lab) -> None:
    lab.add("cell", {0: [1.0], 3: [2.0]})
    lab.add("control of another", {0: [1.0], 3: [2.0]}, pathway="none", model_id="other")
    found = row(lab.open(), "detectable_effect")
    assert (found["cell_id"], found["pair_count"], found["degrees_of_freedom"]) == ("cell", 0, None)
    assert found["detectable_gain"] is None


def test_an_empty_folder_has_no_rows(lab: Lab) -> None:
    assert lab.open().sql("from detectable_effect").rows() == []


def test_factors_are_those_of_the_plan(lab: Lab) -> None:
    rows = lab.open().sql("select degrees_of_freedom, detection_factor from int_t_quantiles").rows()
    assert len(rows) == 34
    for degrees, factor in rows:
        exact = detection_factor(int(degrees) if isfinite(degrees) else 10**6, alpha=0.05, power=0.8)
        assert factor == pytest.approx(exact, abs=6e-4)
