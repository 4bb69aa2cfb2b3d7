"""``play``: a person plays a game, without any model."""

import sys
from contextlib import suppress
from random import SystemRandom
from typing import Any

from s3gym.games.base import USABLE, Config, Game, Taken
from s3gym.protocol.anchors import ENDS, read_anchors
from s3gym.records import SHIPPED_ANCHORS
from s3gym.registry import GAMES, load
from s3gym.terminal.board import show
from s3gym.terminal.console import ask, prose, verbatim

DRAWN_SEEDS = 1_000_000
"""Where no seed is given one of so many is drawn: few digits to type again."""
HELP = ("?", "help")
STOP = "quit"
KEYS = "Type an action; ? or help shows this again; quit, an empty line or Ctrl-D stops."


def play_by_hand(game_id: str, phase: str, seed: int | None) -> None:
    """A person plays, with the text an agent sees; the score is told at the end, which no agent is."""
    game = load(GAMES, game_id, "game").GAME
    config = getattr(game, phase)
    seed = SystemRandom().randrange(DRAWN_SEEDS) if seed is None else seed
    _edit_lines()
    told = f"{game.rules(config)}\n\n{KEYS}"
    verbatim(f"{game_id}, {phase}, seed {seed}\n", "bold")
    prose(told)
    state, end_reason = game.reset(config, seed), None
    rewards: list[float] = []
    while end_reason is None and len(rewards) < config.horizon:
        verbatim("")
        show(game.render(game.view(state)), game.palette)
        text = ask(f"Step {state.step_index + 1} of {config.horizon}> ")
        if not text or text.lower() == STOP:
            break
        if text.lower() in HELP:
            prose(told)
            continue
        taken = game.take(state, text)
        _tell(taken, text)
        state, end_reason = taken.outcome.state, taken.outcome.end_reason
        rewards.append(taken.outcome.reward)
    else:
        verbatim("")
        show(game.render(game.view(state)), game.palette)
    _conclude(game, config, rewards, end_reason)


def _tell(taken: Taken, text: str) -> None:
    """What became of an answer."""
    feedback = taken.outcome.feedback
    if taken.status not in USABLE:
        verbatim(f"No usable action ({taken.status}): {feedback}", "yellow")
        if taken.outcome.end_reason is None:
            verbatim("? shows the form of an action.", "yellow")
        return
    if taken.action != text:
        verbatim(f"Read as: {taken.action}", "dim")
    if feedback:
        verbatim(feedback)


def _conclude(game: Game[Any, Any, Any], config: Config, rewards: list[float], end_reason: str | None) -> None:
    """How it ended, and the score beside the means of the players that set the scale."""
    out_of_steps = "out of steps" if len(rewards) == config.horizon else "stopped"
    ended = f"ended by {end_reason}" if end_reason else out_of_steps
    count = f"{len(rewards)} step{'s' * (len(rewards) != 1)}"
    verbatim(f"\n{count}, {ended}. Final score: {game.final_score(rewards):g} {game.unit}", "bold")
    means = _means(game, config)
    if means:
        verbatim("Mean of whole episodes: " + ", ".join(f"{player} {means[player]:.3g}" for player in means))


def _means(game: Game[Any, Any, Any], config: Config) -> dict[str, float]:
    """The shipped means of the two ends of the scale, for this very configuration."""
    config_id = game.config_id(config)
    means = {row.player: row.mean for row in read_anchors(SHIPPED_ANCHORS) if row.config_id == config_id}
    return {player: means[player] for player in ENDS if player in means}


def _edit_lines() -> None:
    """Lets a person at a terminal edit a line and call earlier ones back, where Python can."""
    if sys.stdin.isatty() and sys.stdout.isatty():  # else the module itself may write control characters
        with suppress(ImportError):
            import readline  # noqa: F401
