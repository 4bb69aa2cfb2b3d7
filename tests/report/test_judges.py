"""The sections on judging: the diagram holds the bins of its mart, and words claim no more than the numbers."""

from pathlib import Path

from s3gym.report.sections import judge_coupling, judge_reliability, retrospective_reliability
from s3gym.warehouse import Warehouse
from tests.report.test_training import datasets, words
from tests.sql.lab import Lab, Turn

RIGHT, WRONG = Turn(1.0, 1.0), Turn(1.0, 0.0)


def test_the_diagram_has_every_bin_once(warehouse: Warehouse) -> None:
    built = judge_reliability.build(warehouse)

    shown = [bin_ for chart in datasets(built) for bin_ in chart.get("bins", [])]
    assert len(shown) == warehouse.sql("from judge_calibration").height > 0
    assert {bin_["tenth"] for bin_ in shown} <= set(range(1, 11))


def test_agreement_of_a_judge_that_always_says_yes_stands_beside_its_kappa(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "data")
    lab.add(explored={0: [[RIGHT, RIGHT, RIGHT, WRONG]]})

    # agreement 3 of 4, as rewarded are 3 of 4; self-scores are all alike: kappa 0, AUROC 0.5
    told = words(judge_reliability.build(lab.open())).replace("\N{NO-BREAK SPACE}", " ")
    # one episode says nothing of how sure that is
    alone, none = "(no interval)", "(one instance: no interval)"
    assert f"75 % {alone} 25 % {alone} 0 % {alone} 75 % 0.00 {none} 0.50 {none}" in told


def test_steps_without_self_scores_leave_no_diagram(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "data")
    lab.add(explored={0: [[Turn(None, 1.0)]]})

    assert "What a self-score says" not in judge_reliability.build(lab.open())


def test_looking_back_shows_beliefs_beside_the_truth(warehouse: Warehouse) -> None:
    shown = words(retrospective_reliability.build(warehouse))
    cell = warehouse.sql("from retrospective_reliability limit 1").to_dicts()[0]

    assert cell["mean_belief"] == 0.5
    assert f"{cell['mean_score_error']:+.2f}" in shown


def coupled(tmp_path: Path, cells: int) -> str:
    """Agreement 0, 1/2 and 1 in three blocks a cell, and gains of 1, 2 and 3 over them."""
    lab = Lab(tmp_path / "data")
    explored = {0: [[WRONG]], 3: [[RIGHT, WRONG]], 6: [[RIGHT]]}
    for cell in range(cells):
        model = f"player:{cell}" if cell else "m"
        lab.add(f"cell {cell}", {0: [0.0], 3: [1.0], 6: [3.0], 9: [6.0]}, explored, model_id=model)
    return judge_coupling.build(lab.open())


def test_coupling_says_rho_and_what_it_rests_on(tmp_path: Path) -> None:
    built = coupled(tmp_path, cells=5)

    assert "snake: ρ = +1.00 (no interval) over 15 blocks of 5 cells" in words(built)
    assert "Over all games together: ρ = +1.00 (no interval) over 15 blocks of 5 cells" in words(built)
    assert "Among the points are those of scripted players" in words(built)
    # published of snake: rho and the gap of agreement
    assert "+0.022 +0.009 15 5" in words(built)
    (blocks,) = [chart["blocks"] for chart in datasets(built)]
    assert [block["agreement"] for block in blocks] == [0.0, 0.5, 1.0] * 5


def test_coupling_of_fewer_than_five_cells_is_not_shown(tmp_path: Path) -> None:
    told = words(coupled(tmp_path, cells=4))

    assert "snake: 12 blocks of 4 cells, too few for a correlation" in told
    assert "1.00" not in told


def test_coupling_of_equal_judgments_says_that_it_is_not_defined(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "data")
    lab.add(curve={0: [0.0], 3: [1.0], 6: [3.0], 9: [6.0]}, explored={0: [[RIGHT]], 3: [[RIGHT]], 6: [[RIGHT]]})

    built = words(judge_coupling.build(lab.open()))

    assert "ρ is not defined, all judgments or all gains are alike (3 blocks of 1 cell)" in built
    assert "0.00 " not in built


def test_coupling_without_self_scores_has_no_points_and_no_correlation(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "data")
    lab.add(curve={0: [0.0], 3: [1.0]}, explored={0: [[Turn(None, 1.0)]]})

    built = judge_coupling.build(lab.open())

    assert datasets(built) == []
    assert "ρ is not defined, fewer than three (0 blocks of 0 cells)" in words(built)
