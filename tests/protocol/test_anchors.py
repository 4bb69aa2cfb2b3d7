"""Reference players: exact where the game can say it, else a sample."""

import statistics
from dataclasses import replace
from math import sqrt

import pytest

from s3gym.games.snake import GAME as SNAKE
from s3gym.games.trust import GAME as TRUST
from s3gym.protocol.anchors import measure_anchor, play_out
from s3gym.protocol.splits import hashed


def test_an_exact_anchor_has_no_error_and_no_episodes() -> None:
    anchor = measure_anchor(TRUST, TRUST.evaluation, "evaluation", "cheater", 50)

    # ten rounds of cheating: copycat 3, pink 30, cheater 0, grudger 3, detective 3 + 0 + 3 + 3,
    # copykitten 3 + 3, stubborn 5 times 3; 66 in all
    assert anchor.mean == pytest.approx(66 / 7)
    # squares: 9 + 900 + 0 + 9 + 81 + 36 + 225 = 1260
    assert anchor.standard_deviation == pytest.approx(sqrt(1260 / 7 - (66 / 7) ** 2))
    assert (anchor.standard_error, anchor.episode_count) == (0.0, 0)
    assert anchor.config_id == TRUST.config_id(TRUST.evaluation)
    assert (anchor.game, anchor.phase, anchor.player, anchor.game_version) == (
        "trust",
        "evaluation",
        "cheater",
        1,
    )


def test_a_sampled_anchor_is_mean_and_error_over_its_episodes() -> None:
    anchor = measure_anchor(SNAKE, SNAKE.evaluation, "evaluation", "careful", 20)

    scores = [
        play_out(SNAKE, SNAKE.evaluation, "careful", hashed("anchor", "snake", "evaluation", index))
        for index in range(20)
    ]
    assert anchor.mean == pytest.approx(statistics.fmean(scores))
    assert anchor.standard_deviation == pytest.approx(statistics.stdev(scores))
    assert anchor.standard_error == pytest.approx(statistics.stdev(scores) / sqrt(20))
    assert anchor.episode_count == 20
    assert anchor == measure_anchor(SNAKE, SNAKE.evaluation, "evaluation", "careful", 20)


def test_each_phase_has_its_own_configuration() -> None:
    ids = {
        measure_anchor(SNAKE, getattr(SNAKE, phase), phase, "random", 2).config_id
        for phase in ("exploration", "evaluation")
    }

    assert ids == {SNAKE.config_id(SNAKE.exploration), SNAKE.config_id(SNAKE.evaluation)}


def test_a_played_out_episode_stops_at_the_horizon_and_at_the_end() -> None:
    assert play_out(TRUST, TRUST.evaluation, "cheater", 1) == 30.0  # pink, ten times 3
    assert play_out(TRUST, replace(TRUST.evaluation, horizon=4), "cheater", 1) == 12.0
