"""Measures reference players: the two ends and the extra lines of a game's scale."""

import csv
import io
import random
from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields
from math import isfinite, sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, get_type_hints

from s3gym.errors import Explained
from s3gym.games.base import Config, Game
from s3gym.protocol.splits import hashed
from s3gym.records import Anchor

ENDS = ("random", "expert")
LARGEST_ERROR = 0.03
"""Standard error of a mean as a share of the scale from random to expert; episodes are added until it is met."""
MOST_EPISODES = 10_000
"""Where even these do not meet it, the table says so by its standard error."""


class AnchorsError(Explained, ValueError):
    """A file is no table of anchors."""


def read_anchors(path: Path) -> list[Anchor]:
    """The rows of a CSV file as ``anchors_csv`` writes it.

    Raises:
        AnchorsError: it cannot be read, lacks a column or holds another type.
    """
    kinds = get_type_hints(Anchor)
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            if not kinds.keys() <= set(reader.fieldnames or ()):
                raise ValueError(f"its columns are {reader.fieldnames}")
            rows = [Anchor(**{name: kind(row[name]) for name, kind in kinds.items()}) for row in reader]
            if not all(isfinite(row.mean) and isfinite(row.standard_error) for row in rows):
                raise ValueError("a mean or an error is no finite number")
            return rows
    except (OSError, ValueError, TypeError, csv.Error) as error:
        raise AnchorsError(f"{path} is no table of anchors: {error}; expected columns: {', '.join(kinds)}") from None


def anchors_csv(rows: Iterable[Anchor]) -> str:
    """The rows as CSV with a header."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(Anchor)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    return text.getvalue()


def measure_scale(game: Game[Any, Any, Any], config: Config, phase: str, at_least: int) -> Iterator[Anchor]:
    """The anchors of all players under ``config``, random and expert first: exact where the game can say it."""
    exact = {player: game.exact_anchor(config, player) for player in game.players}
    scores: dict[str, list[float]] = {player: [] for player in game.players}
    for player in ENDS:
        if exact[player] is None:
            extend(scores[player], game, config, phase, player, at_least)
    low, high = (known[0] if (known := exact[player]) else fmean(scores[player]) for player in ENDS)
    for player in sorted(game.players, key=lambda name: name not in ENDS):
        if (known := exact[player]) is not None:
            yield _anchor(game, config, phase, player, *known)
            continue
        sample = scores[player]
        while len(sample) < at_least or _error(sample) > LARGEST_ERROR * abs(high - low):
            if len(sample) >= MOST_EPISODES:
                break
            extend(sample, game, config, phase, player, len(sample) + at_least)
        yield _anchor(game, config, phase, player, fmean(sample), stdev(sample), len(sample))


def extend(scores: list[float], game: Game[Any, Any, Any], config: Config, phase: str, player: str, count: int) -> None:
    """Plays episodes until there are ``count`` scores; the same ones in the same order, however they are asked for."""
    for index in range(len(scores), count):
        scores.append(play_out(game, config, player, hashed("anchor", game.id, phase, index)))


def play_out(game: Game[Any, Any, Any], config: Config, player: str, seed: int) -> float:
    """One episode of a scripted player without any prompt; its final score."""
    state, rng, rewards = game.reset(config, seed), random.Random(f"{seed}/{player}"), []
    for _ in range(config.horizon):
        outcome = game.take(state, game.players[player](game.view(state), rng).action).outcome
        state = outcome.state
        rewards.append(outcome.reward)
        if outcome.end_reason is not None:
            break
    return game.final_score(rewards)


def _error(scores: list[float]) -> float:
    return stdev(scores) / sqrt(len(scores))


def _anchor(
    game: Game[Any, Any, Any],
    config: Config,
    phase: str,
    player: str,
    mean: float,
    deviation: float,
    episode_count: int = 0,
) -> Anchor:
    """A row; without episodes the mean is exact."""
    return Anchor(
        game=game.id,
        config_id=game.config_id(config),
        phase=phase,
        player=player,
        mean=mean,
        standard_deviation=deviation,
        standard_error=deviation / sqrt(episode_count) if episode_count else 0.0,
        episode_count=episode_count,
        game_version=game.VERSION,
    )
