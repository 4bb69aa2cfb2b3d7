"""The marts' numbers worked out a second time: the same from true marts, and told apart from those of a wrong one."""

import shutil
from pathlib import Path

import pytest

from s3gym import warehouse
from s3gym.recomputed import differences
from tests.report.folder import make
from tests.sql.lab import Lab, Turn


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("recomputed") / "data"
    make(data, models=("a", "b"), games=("trust",), cycles=3)
    return data


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path / "data")


def test_the_marts_of_a_drawn_folder_hold_the_numbers_of_its_rows(drawn: Path) -> None:
    assert list(differences(drawn)) == []


def test_what_is_not_defined_is_so_in_both(lab: Lab) -> None:
    wrong, right = [Turn(1.0, 0.0)], [Turn(1.0, 1.0)]
    lab.add("whole", {0: [wrong, 2.0], 3: [3.0, 5.0], 6: [0.0, 1.0]}, {0: [wrong, right], 3: [[Turn(None, 1.0)]]})
    lab.add("no start", {0: [None, 2.0], 3: [1.0, 1.0]}, {0: [right]}, pathway="memory")
    lab.add("negative", {0: [-1.0], 3: [2.0]}, {0: [None]}, pathway="training")
    lab.add("nothing played", {}, {}, game="tetris", reward_min=0.0, reward_max=0.0)
    lab.add("cut short", {0: [1.0, 5.0]}, budget=1, pathway="none")
    lab.open()

    assert list(differences(lab.data)) == []


CROSSING = "else width * upper * upper / (2 * (upper - lower))"
RANGE = "(cells.reward_max - cells.reward_min, 0) as nmae,"
BUDGET = "episodes.episode_index < links.episode_count"


@pytest.mark.parametrize(
    ("view", "formula", "wrong", "told"),
    [
        ("marts/improvement", "avg(mean_score) as avg", "median(mean_score) as avg", "avg_score"),
        ("marts/improvement", CROSSING, "else width * upper / 2", "auc_plus"),
        ("intermediate/int_judge_samples", "+ 2 * both_above", "+ both_above", "agreement"),
        ("marts/judge_reliability", RANGE, "(cells.reward_max, 0) as nmae,", "nmae"),
        ("marts/judge_coupling", "corr(judgment_rank, gain_rank)", "corr(judgment, gain)", "spearman"),
    ],
)
def test_a_wrong_formula_is_found(
    drawn: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, view: str, formula: str, wrong: str, told: str
) -> None:
    misread(tmp_path, monkeypatch, view, formula, wrong)

    assert told in {problem.partition(":")[0] for _, problem in differences(drawn)}


def test_episodes_beyond_a_cells_budget_are_found(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.add(curve={0: [1.0, 5.0], 3: [2.0, 4.0]}, budget=1)
    lab.open()
    misread(tmp_path, monkeypatch, "intermediate/int_cell_episodes", BUDGET, "true")

    # (1 + 5) / 2 is more than was asked for, so that no checkpoint is valid; it is 1 at first, and 2 later
    assert ("improvement of cell", "avg_score: the mart says None, its rows say 1.5") in list(differences(lab.data))


def misread(folder: Path, monkeypatch: pytest.MonkeyPatch, view: str, formula: str, wrong: str) -> None:
    """Makes the warehouse read a copy of the SQL with another formula."""
    sql = Path(shutil.copytree(warehouse._sql_folder(), folder / "sql"))
    text = (sql / f"{view}.sql").read_text()
    assert formula in text
    (sql / f"{view}.sql").write_text(text.replace(formula, wrong))
    monkeypatch.setattr(warehouse, "_sql_folder", lambda: sql)
