"""Intervals and p of rank correlations: tiny ones by hand, drawn ones against what is known of them."""

from collections.abc import Sequence

import numpy as np
import pytest

from s3gym import coupling
from s3gym.coupling import Floats, Units
from s3gym.resampling import refresh
from tests.sql.lab import Lab
from tests.sql.test_judge_coupling import BLOCK, climb, explore

T = np.array([[1.0, 12.706], [2.0, 4.303], [7.0, 2.365], [np.inf, 1.96]])


def units(judgment: Sequence[Sequence[float]], gain: Sequence[Sequence[float]], games: str = "") -> Units:
    """A row a cell; ``games`` has a letter for each."""
    names = [f"cell {index}" for index in range(len(gain))]
    return Units(
        np.repeat(names, [len(row) for row in gain]),
        np.repeat(list(games or "s" * len(gain)), [len(row) for row in gain]),
        np.array([str(place) for row in gain for place in range(len(row))]),
        np.array([value for row in judgment for value in row]),
        np.array([value for row in gain for value in row]),
    )


def drawn(given: Units, rng: np.random.Generator, count: int = 200) -> dict[str, Floats]:
    cells = list(given.games)
    draws = rng.multinomial(len(cells) - 1, np.full(len(cells), 1 / len(cells)), size=count).astype(np.float64)
    return dict(zip(cells, draws.T, strict=True))


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_a_rank_is_the_middle_of_the_weight_it_stands_for() -> None:
    # 1 has weight 1; both 5 together 4, from 1 to 5; 7 has 2, from 5 to 7
    assert coupling.midranks(np.array([5.0, 1.0, 7.0, 5.0]), np.array([[3.0, 1.0, 2.0, 1.0]])).tolist() == [
        [3.0, 0.5, 6.0, 3.0]
    ]


def test_weights_count_like_repetitions() -> None:
    given = units([[0.0, 0.5, 0.5, 1.0]], [[1.0, 3.0, 2.0, 6.0]])
    found = coupling.spearman(given, np.array([[1.0, 1.0, 1.0, 1.0], [1.0, 0.0, 0.0, 3.0], [2.0, 0.0, 0.0, 0.0]]))
    # as in the view; two different pairs; one pair alone has no correlation
    assert found[:2] == pytest.approx([4.5 / 22.5**0.5, 1.0])
    assert np.isnan(found[2])


def test_two_cells_that_can_change_places_give_no_small_p() -> None:
    given = units([[0.1, 0.2], [0.8, 0.9]], [[1.0, 2.0], [3.0, 4.0]])
    # as they are: rho 1; changed: lower. One in two deals is as high: twice that is no evidence
    assert coupling.p_value(given, rng(), 999) == pytest.approx(1.0, abs=0.1)


def test_four_cells_in_perfect_order_are_one_deal_of_24() -> None:
    given = units([[0.1], [0.2], [0.3], [0.4]], [[1.0], [2.0], [3.0], [4.0]])
    assert coupling.p_value(given, rng(), 9_999) == pytest.approx(2 / 24, abs=0.01)


def test_cells_of_different_games_or_checkpoints_do_not_change_places() -> None:
    assert coupling.p_value(units([[0.1, 0.2], [0.8, 0.9]], [[1.0, 2.0], [3.0, 4.0]], "ab"), rng(), 99) is None
    assert coupling.p_value(units([[0.1, 0.2], [0.8]], [[1.0, 2.0], [3.0]]), rng(), 99) is None


@pytest.mark.parametrize(
    ("given", "status"),
    [
        (units([], []), "too_few"),
        (units([[0.1], [0.2]], [[1.0], [2.0]]), "too_few"),
        (units([[0.1, 0.2, 0.3]], [[1.0, 2.0, 1.0]]), "too_few"),
        (units([[0.5, 0.5], [0.5, 0.5]], [[1.0, 2.0], [1.0, 3.0]]), "undefined"),
        (units([[0.1, 0.2], [0.5, 0.5]], [[1.0, 2.0], [1.0, 3.0]]), "undefined_in_draws"),
        (units([[0.1, 0.2], [0.1, 0.2], [0.1, 0.2]], [[1.0, 2.0]] * 3), "no_spread"),
    ],
)
def test_without_enough_to_draw_from_it_says_why_there_is_no_interval(given: Units, status: str) -> None:
    found = coupling.interval(given, drawn(given, rng()) if len(given.cell) else {}, T)
    assert found == {"low": None, "high": None, "status": status}


def test_intervals_and_p_hold_where_judgments_of_a_cell_are_alike_and_mean_nothing() -> None:
    held, small = 0, 0
    for seed in range(150):
        source = rng(seed)
        judgment = source.normal(size=(8, 1)) + source.normal(size=(8, 6))
        given = units(judgment.tolist(), np.diff(source.normal(size=(8, 7)), axis=1).tolist())
        found = coupling.interval(given, drawn(given, source), T)
        held += found["low"] <= 0 <= found["high"]
        p = coupling.p_value(given, source, 199)
        small += p is not None and p <= 0.1
    # 95 % and 10 % of 150 are 142.5 and 15; three standard errors are 8 and 11
    assert held >= 134
    assert small <= 26


def test_the_mart_has_interval_and_p_once_they_are_computed(lab: Lab) -> None:
    for index, agreements in enumerate([[0.0, 0.5, 1.0], [0.5, 0.0, 1.0], [0.0, 1.0, 0.5], [1.0, 0.5, 0.0]]):
        lab.add(f"cell {index}", climb([0.0, 1.0 + index, 3.0, 7.0]), explore(agreements), model_id=str(index))
    opened = lab.open(materialize=True)
    query = f"select spearman_low, spearman, spearman_high, p_value from judge_coupling where {BLOCK}"
    assert opened.sql(query).rows()[0][::2] == (None, None)
    assert "judge_coupling" in opened.outdated()

    refresh(opened)

    low, spearman, high, p = opened.sql(query).rows()[0]
    assert -1 < low < spearman < high < 1
    assert 1 / 24 <= p <= 1
    assert opened.sql("select count(*) from judge_coupling where p_value is not null").item() >= 2


@pytest.fixture
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("coupling") / "data")
