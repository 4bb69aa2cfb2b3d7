from dataclasses import replace

import pytest

from s3gym.curves import FLOOR_METRICS
from s3gym.derived import NoiseFloor
from s3gym.resampling import refresh
from s3gym.warehouse import Warehouse
from tests.sql.lab import Lab, row

FLOOR = NoiseFloor(
    cell_id="cell",
    null_kind="checkpoints",
    metric="auc_plus",
    control_cell_id=None,
    observed=5.0,
    null_mean=3.5,
    null_high=11.0,
    p_above=0.3,
    p_below=0.8,
    p_randomised=0.25,
    smallest_p=None,
    permutation_count=99,
)


def resampled(lab: Lab) -> Warehouse:
    warehouse = lab.open(materialize=True)
    refresh(warehouse)
    return warehouse


def test_excess_is_what_is_above_the_mean_of_chance(lab: Lab) -> None:
    lab.add(curve={0: [1.0]})
    lab.add("unknown", {0: [1.0]}, run="earlier run")
    opened = lab.open("run-1", materialize=True)
    opened.fill("noise_floors", [FLOOR, replace(FLOOR, metric="naba", observed=None, null_mean=None)])
    found = row(opened, "noise_floor", "metric = 'auc_plus'")
    assert (found["excess"], found["p_value"], found["p_randomised"]) == (1.5, 0.3, 0.25)
    assert (found["model_id"], found["null_high"], found["permutation_count"]) == ("m", 11.0, 99)
    assert row(opened, "noise_floor", "metric = 'naba'")["excess"] is None


def test_each_curve_has_its_own_floor(lab: Lab) -> None:
    lab.add("steep", {0: [0.0, 0.0], 3: [9.0, 9.0], 6: [9.0, 9.0]})
    lab.add("flat", {0: [2.0, 2.0], 3: [2.0, 2.0]}, model_id="flat")
    lab.add("negative", {0: [-3.0, -3.0], 3: [-1.0, -3.0]}, model_id="negative")
    lab.add("joined", {0: [0.0, 0.0], 3: [None, 9.0], 6: [2.0, 2.0]}, model_id="joined")
    lab.add("single", {0: [2.0, 4.0]}, model_id="single")
    lab.add("lost", {0: [None], 3: [1.0]}, model_id="lost")
    lab.add("none", {0: [None]}, model_id="none", pathway="none")
    warehouse = resampled(lab)
    found = {(r["cell_id"], r["metric"]): r for r in warehouse.sql("from noise_floor").to_dicts()}
    assert len(found) == 7 * len(FLOOR_METRICS), "of every cell, if only to say that nothing is defined"

    # steep: each instance has 0, 9, 9; both starts are 0 in 1 of 9 deals, and then the area is 3 * 4.5 + 3 * 9 = 40.5
    steep = found["steep", "auc_plus"]
    assert (steep["observed"], steep["null_high"]) == (40.5, 40.5)
    assert steep["p_value"] == pytest.approx(1 / 9, abs=0.01)
    # one start 0, the other 9 (4 of 9): from 4.5, the other 0 is at checkpoint 3 or 6 and so is a 9: y is 4.5, 4.5, 9
    # or 4.5, 9, 4.5: 6.75 or 13.5. Both starts 9: none. Mean 40.5 / 9 + (2 * 6.75 + 2 * 13.5) / 9 = 9
    assert steep["null_mean"] == pytest.approx(9, abs=0.4)
    assert steep["excess"] == pytest.approx(31.5, abs=0.4)

    assert (found["flat", "auc_plus"]["p_value"], found["flat", "auc_plus"]["null_high"]) == (1.0, 0.0)
    # from -3 to -2: 3 * 1 / 2; the one that rose may also have started high
    assert found["negative", "auc_plus"]["observed"] == 1.5
    assert found["negative", "auc_plus"]["p_value"] == pytest.approx(0.5, abs=0.02)
    assert found["negative", "naba"]["observed"] is None
    # neighbours of the invalid checkpoint are joined: 6 * 2 / 2, and its 9 is no maximum
    assert found["joined", "auc_plus"]["observed"] == 6.0
    assert found["joined", "max"]["observed"] == 2.0
    # alone there is a maximum and nothing else
    assert [found["single", name]["observed"] for name in FLOOR_METRICS] == [None, 3.0, None, None]
    assert found["single", "max"]["p_value"] == 1.0
    assert [found["lost", name]["observed"] for name in FLOOR_METRICS] == [None, 1.0, None, None]
    assert {found["none", name]["p_value"] for name in FLOOR_METRICS} == {None}


def test_control_of_the_same_seeds_is_a_floor(lab: Lab) -> None:
    lab.add("none", {0: [1.0, 1.0], 3: [1.0, 1.0]}, start="y0", pathway="none")
    lab.add("history", {0: [1.0, 1.0], 3: [5.0, 1.0]}, start="y0")
    area = row(resampled(lab), "noise_floor", "null_kind = 'control' and metric = 'auc_plus'")
    # of instance 0 the 5 is at checkpoint 3 of the cell, of its control, or at the start: 3 * 2 / 2, else nothing
    assert (area["cell_id"], area["control_cell_id"], area["observed"]) == ("history", "none", 3.0)
    assert area["p_value"] == pytest.approx(1 / 3, abs=0.02)
    assert area["excess"] == pytest.approx(2.0, abs=0.1)
