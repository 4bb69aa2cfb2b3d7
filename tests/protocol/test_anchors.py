"""Reference players: exact where the game can say it, else a sample large enough for its scale."""

import random
import statistics
from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import Any

import pytest

from s3gym import registry
from s3gym.games.base import EVALUATION, EXPLORATION, Game
from s3gym.games.snake import GAME as SNAKE
from s3gym.games.snake import Snake
from s3gym.games.trust import GAME as TRUST
from s3gym.protocol import anchors
from s3gym.protocol.anchors import (
    ENDS,
    LARGEST_ERROR,
    AnchorsError,
    anchors_csv,
    extend,
    measure_scale,
    play_out,
    read_anchors,
)
from s3gym.protocol.splits import hashed
from s3gym.records import SHIPPED_ANCHORS, Anchor

GAMES = registry.names(registry.GAMES)


def scale(game: Game[Any, Any, Any], at_least: int = 10) -> dict[str, Anchor]:
    return {anchor.player: anchor for anchor in measure_scale(game, game.evaluation, EVALUATION, at_least)}


def test_an_exact_anchor_has_no_error_and_no_episodes() -> None:
    anchor = scale(TRUST)["cheater"]

    # ten rounds of cheating: copycat 3, pink 30, cheater 0, grudger 3, detective 3 + 0 + 3 + 3,
    # copykitten 3 + 3, stubborn 5 times 3; 66 in all
    assert anchor.mean == pytest.approx(66 / 7)
    # squares: 9 + 900 + 0 + 9 + 81 + 36 + 225 = 1260
    assert anchor.standard_deviation == pytest.approx(sqrt(1260 / 7 - (66 / 7) ** 2))
    assert (anchor.standard_error, anchor.episode_count) == (0.0, 0)
    assert anchor.config_id == TRUST.config_id(TRUST.evaluation)
    assert (anchor.game, anchor.phase, anchor.game_version) == ("trust", EVALUATION, TRUST.VERSION)


def test_a_sampled_anchor_is_mean_and_error_over_its_episodes() -> None:
    anchor = scale(SNAKE, 20)["careful"]

    scores = [
        play_out(SNAKE, SNAKE.evaluation, "careful", hashed("anchor", "snake", EVALUATION, index))
        for index in range(anchor.episode_count)
    ]
    assert anchor.mean == pytest.approx(statistics.fmean(scores))
    assert anchor.standard_deviation == pytest.approx(statistics.stdev(scores))
    assert anchor.standard_error == pytest.approx(statistics.stdev(scores) / sqrt(len(scores)))


def test_episodes_are_added_until_the_error_is_small_on_the_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores of 0 or 1 at even chance have a deviation of 0.5, and 0.03 of a scale of 1 needs (0.5 / 0.03)^2 = 278."""
    pays = {"random": lambda rng: 0.0, "expert": lambda rng: 1.0, "other": lambda rng: float(rng.randrange(2))}
    monkeypatch.setattr(Snake, "players", dict.fromkeys(("other", "random", "expert")))
    monkeypatch.setattr(anchors, "play_out", lambda game, config, player, seed: pays[player](random.Random(seed)))

    counts = {name: anchor.episode_count for name, anchor in scale(SNAKE, 50).items()}

    assert list(counts) == ["random", "expert", "other"]
    assert (counts["random"], counts["expert"]) == (50, 50)
    assert counts["other"] in (250, 300, 350)  # in blocks of 50, with the sample's own deviation


def test_a_scale_of_no_width_stops_at_a_stated_number_of_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anchors, "MOST_EPISODES", 100)
    monkeypatch.setattr(anchors, "play_out", lambda game, config, player, seed: float(seed % 2))

    assert {anchor.episode_count for anchor in scale(SNAKE, 40).values()} == {120}


def test_more_episodes_begin_with_the_same_ones() -> None:
    short: list[float] = []
    extend(short, SNAKE, SNAKE.evaluation, EVALUATION, "random", 5)
    long = [*short]
    extend(long, SNAKE, SNAKE.evaluation, EVALUATION, "random", 9)
    whole: list[float] = []
    extend(whole, SNAKE, SNAKE.evaluation, EVALUATION, "random", 9)

    assert (long[:5], long) == (short, whole)


def test_a_played_out_episode_stops_at_the_horizon_and_at_the_end() -> None:
    assert play_out(TRUST, TRUST.evaluation, "cheater", 1) == 30.0  # pink, ten times 3
    assert play_out(TRUST, replace(TRUST.evaluation, horizon=4), "cheater", 1) == 12.0


# --- the shipped table --------------------------------------------------------------------------------------


def test_a_table_survives_the_file(tmp_path: Path) -> None:
    rows = [*scale(TRUST).values()]
    path = tmp_path / "anchors.csv"
    path.write_text(anchors_csv(rows))

    assert read_anchors(path) == rows


def test_a_mean_that_is_no_number_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "anchors.csv"
    path.write_text(anchors_csv(replace(row, mean=float("nan")) for row in scale(TRUST).values()))

    with pytest.raises(AnchorsError, match="no finite number"):
        read_anchors(path)


@pytest.mark.parametrize("text", ["game,mean\nsnake,1\n", "\x00", "game," * 3 + "\nx\n"])
def test_another_file_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.csv"
    path.write_text(text + "more,rows\n")

    with pytest.raises(AnchorsError, match="other.csv is no table of anchors"):
        read_anchors(path)


@pytest.mark.parametrize("phase", [EXPLORATION, EVALUATION])
@pytest.mark.parametrize("name", GAMES)
def test_the_shipped_anchors_are_those_of_the_games_present_version(name: str, phase: str) -> None:
    game = registry.load(registry.GAMES, name, "game").GAME
    shipped = {row.player: row for row in read_anchors(SHIPPED_ANCHORS) if (row.game, row.phase) == (name, phase)}
    remedy = "measure again with `s3gym anchors --out s3gym/anchors.csv`"

    assert shipped.keys() == game.players.keys(), remedy
    assert {row.game_version for row in shipped.values()} == {game.VERSION}, remedy
    assert {row.config_id for row in shipped.values()} == {game.config_id(getattr(game, phase))}, remedy
    width = abs(shipped["expert"].mean - shipped["random"].mean)
    for row in shipped.values():
        assert row.episode_count == 0 or row.episode_count >= 200
        assert row.standard_error <= LARGEST_ERROR * width, row


@pytest.mark.parametrize("name", GAMES)
def test_shipped_anchors_are_what_the_players_do(name: str) -> None:
    """A handful of fresh episodes lies within four standard errors of what is shipped."""
    game = registry.load(registry.GAMES, name, "game").GAME
    shipped = {
        row.player: row for row in read_anchors(SHIPPED_ANCHORS) if row.config_id == game.config_id(game.evaluation)
    }
    for player in ENDS:
        scores = [play_out(game, game.evaluation, player, hashed("fresh", name, index)) for index in range(14)]
        error = sqrt(shipped[player].standard_deviation ** 2 / len(scores) + shipped[player].standard_error ** 2)
        assert abs(statistics.fmean(scores) - shipped[player].mean) <= 4 * error + 1e-9
