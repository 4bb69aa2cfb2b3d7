"""Plans before anything is spent: worked by hand, against tables of t, and against simulated studies."""

from dataclasses import replace
from math import inf, sqrt
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from s3gym.cli import main
from s3gym.power import (
    MOST,
    Assumptions,
    Design,
    Scale,
    detection_factor,
    needed,
    plans,
    scale_of,
    smallest_gain,
    standard_error,
    t_quantile,
)
from s3gym.registry import GAMES, UnknownName, names
from tests.sql.lab import Lab

ASSUMED = Assumptions()
SNAKE = Scale("snake", "apples", deviation=2.0, anchor_range=10.0, strata=1)
TRUST = Scale("trust", "points", deviation=2.0, anchor_range=10.0, strata=7)


def test_t_is_that_of_the_tables(tmp_path: Path) -> None:
    listed = "select degrees_of_freedom, t_quantile from int_t_quantiles"
    for degrees, quantile in Lab(tmp_path / "data").open().sql(listed).rows():
        exact = t_quantile(0.975, 10**6 if degrees == inf else int(degrees))
        assert exact == pytest.approx(quantile, abs=6e-4)
    # one-sided 80 %, from the usual tables
    assert [round(t_quantile(0.8, n), 3) for n in (1, 2, 3, 10, 30, 120)] == [1.376, 1.061, 0.978, 0.879, 0.854, 0.845]
    assert t_quantile(0.2, 5) == -t_quantile(0.8, 5)
    assert t_quantile(0.975, 1_999) == pytest.approx(t_quantile(0.975, 2_000), abs=2e-3)


def test_standard_error_by_hand() -> None:
    # variance of a difference 2 * (1 - 0.5) * 2^2 = 4; half of it over 4 instances, half over 4 * 3 episodes
    assert standard_error(Design(4, 3), 2.0, ASSUMED) == pytest.approx(sqrt(2 / 4 + 2 / 12))
    assert standard_error(Design(4, 3, replicates=2), 2.0, ASSUMED) == pytest.approx(sqrt(2 / 4 + 2 / 24))
    # all instances there are: nothing is drawn but how 14 * 3 episodes turn out
    assert standard_error(Design(14, 3, strata=7), 2.0, ASSUMED) == pytest.approx(sqrt(4 / 42))
    assert standard_error(Design(4, 3), 2.0, replace(ASSUMED, correlation=0.0)) == pytest.approx(sqrt(4 / 3))


def test_smallest_gain_by_hand() -> None:
    # three degrees of freedom: 3.182 + 0.978 = 4.161; sqrt(2/4 + 2/12) = 0.8165; over a range of 10
    assert smallest_gain(Design(4, 3), SNAKE, ASSUMED) == pytest.approx(0.3397, abs=1e-4)
    # 7 * 2 - 7 = 7 degrees of freedom: 2.365 + 0.896 = 3.261; sqrt(4 / 14) = 0.5345
    assert smallest_gain(Design(7, 2, strata=7), TRUST, ASSUMED) == pytest.approx(0.1743, abs=1e-4)
    # two replicates have one degree of freedom: 12.706 + 1.376 = 14.083; sqrt(2/4 + 2/24) = 0.7638
    assert smallest_gain(Design(4, 3, replicates=2), SNAKE, ASSUMED) == pytest.approx(1.0756, abs=1e-4)


def test_without_a_degree_of_freedom_no_gain_is_found() -> None:
    assert smallest_gain(Design(1, 5), SNAKE, ASSUMED) is None
    assert smallest_gain(Design(7, 1, strata=7), TRUST, ASSUMED) is None


@pytest.mark.parametrize("scale", [SNAKE, TRUST], ids=["instances drawn", "instances all there are"])
def test_what_is_needed_finds_the_gain_and_one_less_does_not(scale: Scale) -> None:
    gain = 0.19
    design = Design(7, 3, strata=scale.strata)
    counts = dict(zip(("episodes", "checkpoints", "replicates"), needed(gain, design, scale, ASSUMED), strict=True))

    assert counts["episodes"] is not None and counts["episodes"] % scale.strata == 0
    for name, count in counts.items():
        if count is None:
            continue
        found = smallest_gain(replace(design, **{name: count}), scale, ASSUMED)
        assert found is not None and found <= gain
        step = scale.strata if name == "episodes" else 1
        if count > step:
            fewer = smallest_gain(replace(design, **{name: count - step}), scale, ASSUMED)
            assert fewer is None or fewer > gain


def test_what_instances_bring_back_no_number_of_checkpoints_or_replicates_takes_away() -> None:
    # 2/7 of variance stay: 0.5345 * (2.447 + 0.906) / 10 = 0.179
    assert needed(0.17, Design(7, 3), SNAKE, ASSUMED)[1:] == (None, None)
    assert needed(0.17, Design(7, 3), SNAKE, replace(ASSUMED, persistence=0.0))[1] is not None
    assert needed(1e-6, Design(7, 3), SNAKE, ASSUMED) == (None, None, None), f"more than {MOST} episodes"


def test_a_planned_gain_is_found_as_often_as_asked_for() -> None:
    rng, studies, design = np.random.default_rng(5), 20_000, Design(7, 3)
    gain = smallest_gain(design, SNAKE, ASSUMED)
    assert gain is not None
    # differences of variance 4: half belongs to the instance
    instances = rng.normal(0, sqrt(2), (studies, 7, 1))
    means = (gain * 10 + instances + rng.normal(0, sqrt(2), (studies, 7, 3))).mean(axis=2)

    errors = means.std(axis=1, ddof=1) / sqrt(7)
    is_found = np.abs(means.mean(axis=1)) > t_quantile(0.975, 6) * errors

    assert is_found.mean() == pytest.approx(0.8, abs=0.012)


@pytest.mark.parametrize(("degrees", "chance"), [(1, 0.73), (2, 0.77), (4, 0.79), (30, 0.80)])
def test_the_chance_falls_a_little_short_at_few_degrees_of_freedom(degrees: int, chance: float) -> None:
    rng, factor = np.random.default_rng(7), detection_factor(degrees, 0.05, 0.8)
    t = (rng.standard_normal(100_000) + factor) / np.sqrt(rng.chisquare(degrees, 100_000) / degrees)
    assert (np.abs(t) > t_quantile(0.975, degrees)).mean() == pytest.approx(chance, abs=0.006)


def test_scales_come_from_the_shipped_anchors() -> None:
    for plan in plans((), "small", None, ASSUMED):
        assert plan.scale.deviation > 0 and plan.scale.anchor_range > 0
        assert plan.smallest_gain is not None and plan.episodes is None
    # the expert's in the evaluation configuration is the largest
    assert scale_of("snake").deviation == pytest.approx(3.01, abs=0.2)
    assert scale_of("trust").design("small") == Design(7, 3, strata=7)
    assert scale_of("trust").design("paper") == Design(7, 10, strata=7)
    assert scale_of("snake").design("paper") == Design(3, 10)


def test_an_unknown_game_is_named_with_its_neighbours() -> None:
    with pytest.raises(UnknownName, match="snake"):
        list(plans(("snaek",), "small", None, ASSUMED))


def test_the_command_prints_a_line_a_game_and_what_is_assumed() -> None:
    told = CliRunner().invoke(main, ["power", "--gain", "0.1", "--scale", "paper"]).output

    assert [name for name in names(GAMES) if name not in told] == []
    assert "needs" in told and "correlation 0.5" in told and "upper bounds" in told


def test_without_a_gain_nothing_is_looked_for() -> None:
    told = CliRunner().invoke(main, ["power", "--game", "snake"]).output

    assert "smallest gain" in told and "needs" not in told and "upper bounds" not in told


@pytest.mark.parametrize(
    "wrong", [["--gain", "0"], ["--alpha", "1"], ["--correlation", "1"], ["--scale", "huge"], ["--game", "snaek"]]
)
def test_a_wrong_request_has_exit_code_2(wrong: list[str]) -> None:
    assert CliRunner().invoke(main, ["power", *wrong]).exit_code == 2
