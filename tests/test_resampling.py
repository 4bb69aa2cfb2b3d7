"""Intervals and noise floors of tiny curves by hand, and of drawn ones against what is known of them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from s3gym import storage
from s3gym.cli import main
from s3gym.curves import (
    METRICS,
    Curve,
    against_checkpoints,
    against_control,
    areas,
    draw,
    exchange_p,
    intervals,
    metrics,
    shuffled,
)
from s3gym.resampling import refresh
from s3gym.warehouse import Warehouse
from tests.sql.lab import Lab

EPISODES = np.arange(0.0, 31.0, 3.0)
TABLES = ("intervals", "noise_floors", "coupling_tests", "intervention_tests")
T = np.array([[1.0, 12.706], [2.0, 4.303], [10.0, 2.228], [np.inf, 1.96]])


def curve(scores: Sequence[Sequence[float]], width: float = 3.0, least: float = 1.0) -> Curve:
    """Scores by checkpoint and instance, of a fixed evaluation set."""
    count = len(scores[0])
    names = np.array([str(seed) for seed in range(count)] * len(scores))
    return Curve(
        np.arange(len(scores), dtype=np.float64) * width,
        np.repeat(np.arange(len(scores)), count),
        names,
        np.full(len(names), ""),
        names,
        np.array(scores, dtype=np.float64).ravel(),
        least,
    )


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


# --- curves ----------------------------------------------------------------------------------------------------


def test_a_segment_that_crosses_the_start_counts_as_its_triangles() -> None:
    # heights 0, 2, -2 at 0, 3, 6: 3 up to 2 is 3; down through 0 half-way: 1.5 above, 1.5 below
    plus, minus = areas(np.array([[5.0, 7.0, 3.0], [5.0, 5.0, 5.0]]), np.array([0.0, 3.0, 6.0]))
    assert plus.tolist() == [4.5, 0.0]
    assert minus.tolist() == [1.5, 0.0]


def test_the_published_area_is_reproduced() -> None:
    # thirds, from 2/3: nothing above; 3 * (1/3)^2 / (2 * 2/3) = 1/4; 3 * (1/3)^2 / (2 * 1) = 1/6: 5/12 = 0.417
    plus, _ = areas(np.array([[2.0, 1.0, 3.0, 0.0]]) / 3, EPISODES[:4])
    assert plus[0] == pytest.approx(5 / 12)


def test_missing_start_or_single_checkpoint_leaves_changes_undefined() -> None:
    for means, checkpoints in (([[2.0, 4.0]], [3.0, 6.0]), ([[2.0]], [0.0])):
        found = metrics(np.array(means), np.array(checkpoints), 1.0)
        assert found["avg"][0] == np.mean(means)
        assert all(np.isnan(found[name][0]) for name in ("delta", "gain", "auc_plus", "auc_minus", "net_area", "naba"))
    assert all(np.isnan(values).all() for values in metrics(np.empty((1, 0)), np.empty(0), 1.0).values())


def test_negative_start_has_no_naba() -> None:
    found = metrics(np.array([[-1.0, 2.0], [0.0, 2.0]]), np.array([0.0, 3.0]), 0.5)
    # area 3 * 3 / 2 = 4.5; from 0: 3 / 0.5
    assert found["auc_plus"].tolist() == [4.5, 3.0]
    assert np.isnan(found["naba"][0]) and found["naba"][1] == 6.0


# --- intervals -------------------------------------------------------------------------------------------------


def test_interval_of_a_mean_is_students() -> None:
    # mean 2, standard deviation 1, error 1 / sqrt(3) = 0.577, t(2) = 4.303: 2 -+ 2.484
    found = intervals([(curve([[1.0, 2.0, 3.0]]), None)], T, rng(), 20_000)["avg"]
    assert (found["estimate"], found["status"], found["unit_count"]) == (2.0, "ok", 3)
    assert found["standard_error"] == pytest.approx(0.577, rel=0.02)
    assert (found["low"], found["high"]) == (pytest.approx(-0.484, abs=0.06), pytest.approx(4.484, abs=0.06))


def test_an_instance_keeps_its_luck_over_checkpoints_and_on_both_sides() -> None:
    # instances differ by 100, but each gains exactly 1 at checkpoint 3, or 1 and 3
    rising = curve([[0.0, 100.0], [1.0, 101.0]])
    found = intervals([(rising, None)], T, rng(), 500)
    assert found["avg"]["standard_error"] > 10
    assert (found["delta"]["estimate"], found["delta"]["status"], found["delta"]["low"]) == (1.0, "no_spread", None)
    higher = curve([[0.0, 100.0], [1.0, 103.0]])
    difference = intervals([(higher, rising)], T, rng(), 2_000)["avg"]
    # differences of the instances: 0 and 1; drawn is one of them: mean 0.5, error 0.5
    assert difference["estimate"] == 0.5
    assert difference["standard_error"] == pytest.approx(0.5, abs=0.01)


def test_one_instance_gives_nothing_to_draw_from() -> None:
    found = intervals([(curve([[1.0], [2.0]]), None)], T, rng(), 50)
    assert {values["status"] for values in found.values()} == {"too_few"}
    assert found["delta"]["estimate"] == 1.0


def test_all_equal_scores_have_no_interval_of_width_zero() -> None:
    found = intervals([(curve([[0.0] * 3] * 2), None)], T, rng(), 50)
    assert {values["status"] for values in found.values()} == {"no_spread"}
    assert {values["low"] for values in found.values()} == {None}


def test_replicates_vary_as_well() -> None:
    # within each no spread at all; means 1 and 3: mean 2, one of two is drawn: error 1, t(1) = 12.706
    found = intervals([(curve([[score] * 3]), None) for score in (1.0, 3.0)], T, rng(), 4_000)["avg"]
    assert (found["estimate"], found["replicate_count"], found["unit_count"]) == (2.0, 2, 3)
    assert found["standard_error"] == pytest.approx(1.0, abs=0.01)
    assert found["high"] == pytest.approx(2 + 12.706, rel=0.03)


def test_a_number_undefined_in_some_resample_has_no_interval() -> None:
    # y_0 is 0 on average, but -1 where the first instance is drawn
    found = intervals([(curve([[-1.0, 1.0], [2.0, 2.0]]), None)], T, rng(), 50)
    assert (found["naba"]["status"], found["naba"]["low"]) == ("undefined", None)
    assert found["naba"]["estimate"] == 3.0
    assert found["auc_plus"]["status"] == "ok"


def test_area_is_never_below_zero_and_the_interval_holds_the_estimate() -> None:
    dice = rng(5)
    for _ in range(50):
        scores = (dice.random((11, 3)) < 0.3).astype(float)
        for name, found in intervals([(curve(scores.tolist(), least=1 / 3), None)], T, dice, 100).items():
            if found["status"] == "ok":
                assert found["low"] <= found["estimate"] <= found["high"]
                assert name not in ("auc_plus", "auc_minus", "naba") or found["low"] >= 0


def test_intervals_hold_the_truth_at_three_episodes_a_checkpoint() -> None:
    # a policy that goes from 0.2 to 0.8: true mean 0.5, true area 9
    chance = np.linspace(0.2, 0.8, 11)
    truth = {name: values[0] for name, values in metrics(chance[None], EPISODES, 1 / 3).items()}
    dice, held = rng(6), dict.fromkeys(("avg", "max", "delta", "auc_plus"), 0)
    for _ in range(200):
        found = intervals([(curve((dice.random((3, 11)) < chance).T.tolist(), least=1 / 3), None)], T, dice, 200)
        for name in held:
            low, high = found[name]["low"], found[name]["high"]
            held[name] += low is None or low - 1e-9 <= truth[name] <= high + 1e-9
    assert min(held.values()) >= 160, held


def test_draws_within_strata_and_by_unit() -> None:
    plain = curve([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    (weights,) = draw([plain], rng(), 300)
    assert np.allclose(weights[:, :3], weights[:, 3:])  # the same instances at both checkpoints
    assert np.allclose(weights[:, :3].sum(axis=1), 3)
    strata = np.array(["a", "a", "b"] * 2)
    (weights,) = draw([replace(plain, stratum=strata)], rng(), 300)
    assert np.allclose(weights[:, 2], 1)  # alone in its stratum
    assert np.allclose(weights[:, :2].sum(axis=1), 2)


# --- noise floors ----------------------------------------------------------------------------------------------


def test_shuffling_keeps_each_instance_its_scores() -> None:
    drawn = shuffled(curve([[0.0, 10.0], [2.0, 10.0]]), rng(), 400)
    # instance 0 has 0 and 2 in either order, instance 1 always 10
    assert set(map(tuple, drawn.tolist())) == {(5.0, 6.0), (6.0, 5.0)}
    assert drawn[:, 0].mean() == pytest.approx(5.5, abs=0.1)


def test_floor_of_a_control_by_hand() -> None:
    # one instance: start 0, then 4 against 1; any of the three may be at any of the three places
    floors = against_control(curve([[0.0], [4.0]]), curve([[0.0], [1.0]]), rng(), 9_999)
    gain, area = floors["gain"], floors["auc_plus"]
    # differences -4, -3, -1, 1, 3, 4: two are as high as 3, five as low; mean 0
    assert (gain["observed"], gain["smallest_p"]) == (3.0, 1 / 6)
    assert gain["p_above"] == pytest.approx(2 / 6, abs=0.02)
    assert gain["p_below"] == pytest.approx(5 / 6, abs=0.02)
    assert gain["null_mean"] == pytest.approx(0.0, abs=0.1)
    # areas 3/2 * (rise 4, 1, 3 or none): 6, 1.5, 4.5, 0, 0, 0: one is as high; mean 2
    assert (area["observed"], area["smallest_p"]) == (6.0, None)
    assert area["p_above"] == pytest.approx(1 / 6, abs=0.02)
    assert area["null_mean"] == pytest.approx(2.0, abs=0.1)


def test_sides_that_may_change_places_by_hand() -> None:
    treated, reference, block = np.array([4.0, 2.0]), np.array([1.0, 0.0]), np.array(["a", "a"])
    # of 0, 1, 2 and 4 two are the treated: 4 + 2 is the highest of six sums; two-sided 2 / 6
    assert exchange_p(treated, reference, block, rng(), 9_999) == pytest.approx(2 / 6, abs=0.02)
    # by pairs: signs of 3 and 2, the highest of four sums
    assert exchange_p(treated, reference, np.array(["a", "b"]), rng(), 9_999) == pytest.approx(2 / 4, abs=0.02)
    assert exchange_p(treated, treated, block, rng(), 99) == 1.0


def test_instances_that_are_not_repeated_change_places_with_their_partner_alone() -> None:
    units, block = np.array(["0/1", "3/2"]), np.full(2, "")
    own, control = (replace(curve([[0.0], [last]]), unit=units, block=block) for last in (4.0, 1.0))
    gain = against_control(own, control, rng(), 9_999)["gain"]
    # 3 or -3
    assert (gain["observed"], gain["smallest_p"], gain["p_below"]) == (3.0, 0.5, 1.0)
    assert gain["p_above"] == pytest.approx(0.5, abs=0.02)


def test_smallest_p_of_dealing_anew_counts_the_starts() -> None:
    # two instances, three checkpoints: 3 * 3 choices of the two starts
    gain = against_checkpoints(curve([[0.0, 0.0], [1.0, 1.0], [1.0, 1.0]]), rng(), 9_999)["gain"]
    assert (gain["observed"], gain["smallest_p"]) == (1.0, 1 / 9)
    assert gain["p_above"] == pytest.approx(1 / 9, abs=0.01)


def test_without_a_common_checkpoint_nothing_is_said() -> None:
    own, late = curve([[0.0], [1.0]]).only(np.array([0.0])), curve([[1.0], [1.0]]).only(np.array([3.0]))
    for floors in (against_control(own, late, rng(), 9), against_control(None, own, rng(), 9)):
        assert {values["observed"] for values in floors.values()} == {None}
    assert against_control(own, own, rng(), 9)["gain"]["observed"] is None
    assert {values["observed"] for values in against_checkpoints(None, rng(), 9).values()} == {None}


def test_checkpoint_invalid_in_the_control_counts_for_neither() -> None:
    full = curve([[0.0, 0.0], [9.0, 9.0], [1.0, 3.0]])
    floors = against_control(full, full.only(np.array([0.0, 6.0])), rng(), 99)
    assert (floors["max"]["observed"], floors["gain"]["observed"]) == (2.0, 0.0)


def test_all_equal_scores_have_a_p_of_one() -> None:
    floors = against_checkpoints(curve([[2.0, 2.0]] * 3), rng(), 99)
    assert {(values["p_above"], values["p_below"]) for values in floors.values()} == {(1.0, 1.0)}
    assert floors["auc_plus"]["null_high"] == 0.0
    assert 0 <= floors["auc_plus"]["p_randomised"] <= 1


def test_a_policy_that_never_changes_makes_the_areas_that_are_known() -> None:
    dice = rng(7)
    means = (dice.random((20_000, 11, 3)) < 0.3).mean(axis=2)
    plus, _ = areas(means, EPISODES)
    assert plus.mean() == pytest.approx(3.8, abs=0.1)
    assert np.quantile(plus, 0.95) == pytest.approx(11, abs=0.5)
    assert (plus > 0).mean() == pytest.approx(0.79, abs=0.01)


@pytest.mark.parametrize("null_kind", ["checkpoints", "control"])
def test_p_is_no_smaller_than_chance_when_nothing_is_learnt(null_kind: str) -> None:
    dice, runs = rng(8), 500
    p: dict[str, list[float]] = {}
    lots: dict[str, list[float]] = {}
    for _ in range(runs):
        own, other = (curve((dice.random((11, 3)) < 0.3).tolist(), least=1 / 3) for _ in range(2))
        if null_kind == "checkpoints":
            floors = against_checkpoints(own, dice, 99)
        else:
            start = np.where(own.position == 0, own.score, other.score)  # is both's
            floors = against_control(own, replace(own, score=start), dice, 99)
        for name, values in floors.items():
            p.setdefault(name, []).append(values["p_above"])
            lots.setdefault(name, []).append(values["p_randomised"])
    for name in p:
        for alpha in (0.01, 0.05, 0.1, 0.2, 0.5):
            slack = 3.5 * np.sqrt(alpha * (1 - alpha) / runs)
            assert np.mean(np.array(p[name]) <= alpha) <= alpha + slack, (name, alpha)
            assert np.mean(np.array(lots[name]) <= alpha) == pytest.approx(alpha, abs=slack), (name, alpha)


# --- tables ----------------------------------------------------------------------------------------------------


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path / "data")


def fresh(lab: Lab, run_id: str | None = None) -> Warehouse:
    warehouse = lab.open(run_id, materialize=True)
    refresh(warehouse)
    return warehouse


def fill(lab: Lab) -> None:
    """Two pathways and their control, three instances, a checkpoint lost in one of them."""
    start = [0.0, 1.0, 1.0]
    lab.add("none", {0: start, 3: [1.0, 1.0, 0.0], 6: [0.0, 1.0, 1.0]}, start="y0", pathway="none")
    lab.add("history", {0: start, 3: [1.0, 2.0, 1.0], 6: [0.0, -1.0, 1.0]}, start="y0", pathway="history")
    lab.add("memory", {0: start, 3: [None, 2.0, 1.0], 6: [3.0, 2.0, 1.0]}, start="y0", pathway="memory")


def test_estimates_are_the_marts_own_numbers(lab: Lab) -> None:
    fill(lab)
    warehouse = fresh(lab)
    names = {"avg": "avg_score", "max": "max_score", "last": "last_score", "delta": "score_delta"}
    improvement = {row["cell_id"]: row for row in warehouse.sql("from improvement").to_dicts()}
    found = warehouse.sql("from metric_intervals where contrast = 'own'").to_dicts()
    assert len(found) == 3 * len(METRICS)
    for row in found:
        if row["metric"] != "gain":
            own = improvement[row["cell_id"]][names.get(row["metric"], row["metric"])]
            assert row["estimate"] == pytest.approx(own, abs=1e-12), row
    (naba,) = warehouse.sql("select naba_difference from memory_vs_history").to_series()
    query = "select estimate, reference_cell_id from metric_intervals where contrast = 'over_history' and metric = "
    assert warehouse.sql(f"{query} 'naba'").rows() == [(pytest.approx(naba), "history")]
    gains = dict(warehouse.sql("select cell_id, mean_difference from control_gain").rows())
    judged = warehouse.sql("select cell_id, observed from noise_floor where null_kind = 'control' and metric = 'gain'")
    # of memory control_gain keeps the two pairs that are left of the lost checkpoint, too
    assert dict(judged.rows()) == pytest.approx({"history": gains["history"], "memory": 4 / 3})


def test_tables_are_made_once_for_the_same_rows(lab: Lab) -> None:
    fill(lab)
    before = lab.open()
    assert before.derived.missing == TABLES
    assert before.sql("from metric_intervals").height == 0
    assert before.outdated() >= {"stg_intervals", "metric_intervals", "noise_floor", "improvement_verdict"}
    assert "improvement" not in before.outdated()
    refresh(before)
    made = before.sql("from metric_intervals order by all")
    assert made.height > 0 and before.outdated() == set()
    files = {file: file.stat().st_mtime_ns for file in (lab.data / "derived").glob("*/*")}
    again = fresh(lab)
    assert again.sql("from metric_intervals order by all").equals(made)
    assert {file: file.stat().st_mtime_ns for file in (lab.data / "derived").glob("*/*")} == files


def test_new_episodes_make_the_tables_anew_and_leave_those_of_other_runs(lab: Lab) -> None:
    fill(lab)
    query = "from metric_intervals where cell_id = 'history' order by all"
    before = fresh(lab).sql(query)
    lab.add("later", {0: [1.0, 2.0], 3: [2.0, 2.0]}, run="run-1.b")
    assert fresh(lab).sql("select distinct cell_id from metric_intervals").rows() == [("later",)]
    assert fresh(lab, "run-1").sql(query).equals(before), "its cells are the same, but the folder holds more episodes"
    names = sorted(file.name.rsplit(".", 2)[0] for file in (lab.data / "derived" / "intervals").iterdir())
    assert names == ["run-1", "run-1.b"]
    manifest = storage.manifest_path(lab.data, "later-evaluate-3")
    manifest.write_text(manifest.read_text() + " ")
    assert Warehouse(lab.data).derived.missing == TABLES, "a part made again under its name"


def test_sql_reads_and_says_what_it_lacks(lab: Lab) -> None:
    lab.add(curve={0: [1.0, 2.0], 3: [2.0, 5.0]})
    asked = ["sql", "--data", str(lab.data), "--format", "csv", "select count(*) as n from noise_floor"]
    warehouse = lab.open(materialize=True)
    stale = CliRunner().invoke(main, asked)
    assert stale.stdout.split() == ["n", "0"]
    assert "noise_floor: not yet computed" in stale.stderr and not (lab.data / "derived").exists()
    refresh(warehouse)
    current = CliRunner().invoke(main, asked)
    assert (current.stdout.split(), current.stderr) == (["n", "4"], "")


def test_folder_that_is_only_read_still_gets_its_numbers(lab: Lab) -> None:
    fill(lab)
    (lab.data / "derived").write_text("in the way")
    assert fresh(lab).sql("from noise_floor").height > 0


def test_folder_without_a_run_misses_nothing(lab: Lab) -> None:
    opened = lab.open()
    assert opened.derived.missing == ()
    refresh(opened)
    assert not (lab.data / "derived").exists()


def test_what_is_drawn_follows_the_protocol(lab: Lab) -> None:
    for replicate in range(3):
        scores = {0: [1.0, 2.0], 3: [2.0, 2.0 + replicate]}
        lab.add(f"r{replicate}", scores, replicate=replicate)
        lab.add(f"trust{replicate}", scores, replicate=replicate, game="trust", is_instances_shared=True)
    lab.add("warm", scores, temperature=0.7)
    lab.add("fresh", {0: [0.0, 1.0], 3: [1.0, 2.0]}, evaluation_set="fresh")
    columns = "cell_id, metric, status, estimate, replicate_count, unit_count"
    rows = (
        fresh(lab).sql(f"select {columns} from metric_intervals where metric in ('last', 'delta') order by all").rows()
    )
    # last scores 2, 2.5 and 3: mean 2.5; another temperature is another series
    assert [row for row in rows if row[4] > 1 and row[1] == "last"] == [
        ("r0", "last", "ok", 2.5, 3, 2),
        ("trust0", "last", "ok", 2.5, 3, 4),
    ]
    # each opponent once a checkpoint is all there is, so that one replicate has nothing to draw from
    assert {row[2] for row in rows if row[0].startswith("trust") and row[4] == 1} == {"too_few"}
    # under a fixed set both instances would gain 1; here nothing pairs them, so the change is unsure
    assert [row for row in rows if row[0] == "fresh" and row[1] == "delta"] == [("fresh", "delta", "ok", 1.0, 1, 4)]
