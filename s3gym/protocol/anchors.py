"""Measures reference players: the two ends and the extra lines of a game's scale."""

import random
from math import sqrt
from statistics import fmean, stdev
from typing import Any

from s3gym.games.base import Config, Game
from s3gym.protocol.splits import hashed
from s3gym.records import Anchor


def measure_anchor(game: Game[Any, Any, Any], config: Config, phase: str, player: str, episode_count: int) -> Anchor:
    """The mean score of ``player`` under ``config``: exact where the game can say it, else over that many episodes."""
    exact = game.exact_anchor(config, player)
    if exact is None:
        scores = [
            play_out(game, config, player, hashed("anchor", game.id, phase, index)) for index in range(episode_count)
        ]
        mean, deviation = fmean(scores), stdev(scores)
    else:
        mean, deviation = exact
    return Anchor(
        game=game.id,
        config_id=game.config_id(config),
        phase=phase,
        player=player,
        mean=mean,
        standard_deviation=deviation,
        standard_error=0.0 if exact else deviation / sqrt(episode_count),
        episode_count=0 if exact else episode_count,
        game_version=game.VERSION,
    )


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
