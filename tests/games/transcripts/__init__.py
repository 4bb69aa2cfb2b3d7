"""One stored transcript a game, to be read by people and compared by a test.

``python -m tests.games.transcripts`` rewrites them all, or those of the games it is given; review the difference.
A change of behaviour that shows here asks for a higher VERSION of the game.
"""

import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from s3gym import registry
from s3gym.games.base import EVALUATION, EXPLORATION
from tests.games.episodes import Choose, Played, by_player, follow

COMMAND = "python -m tests.games.transcripts"
FOLDER = Path(__file__).parent
SEEDS = {EXPLORATION: 1, EVALUATION: 2}
SHOWN = 7
"""Steps of an episode that are kept."""


def stored(name: str) -> Path:
    """Where the transcript of the game ``name`` is."""
    return FOLDER / f"{name}.txt"


def rewrite(name: str) -> Path:
    """Stores the transcript of a game as it plays now, and says where."""
    path = stored(name)
    path.write_text(transcript(registry.load(registry.GAMES, name, "game").GAME))
    return path


def transcript(game: Any) -> str:
    """Both phases: the rules, the expert's first steps, and some of one who is not always understood."""
    blocks = [f"{game.id}, version {game.VERSION}"]
    for phase in (EXPLORATION, EVALUATION):
        config, seed = getattr(game, phase), SEEDS[phase]
        blocks += [f"==== {phase} ====", game.rules(config)]
        for title, choose in (
            ("the expert", by_player(game, "expert", seed)),
            ("answers of every kind", mixed(game, seed)),
        ):
            blocks += [f"---- {phase}, seed {seed}: {title} ----", *told(game, config, seed, choose)]
    return "\n\n".join(blocks) + "\n"


def mixed(game: Any, seed: int) -> Choose:
    """The random player's actions, two in another spelling and one twice, between answers that are none."""
    rng = random.Random(seed)
    spellings = iter(("{now}", "**{now}**", "Let me think.", "{first}", "END", "({now})", "(99,99)"))
    first = ""

    def choose(view: Any, before: str) -> str:
        nonlocal first
        now = game.players["random"](view, rng).action
        first = first or now
        return next(spellings).format(now=now, first=first)

    return choose


def told(game: Any, config: Any, seed: int, choose: Choose) -> Iterator[str]:
    """A block a step, then the end."""
    steps = list(itertools.islice(follow(game, config, seed, choose), SHOWN))
    yield from map(_block, steps)
    yield steps[-1].after
    end = steps[-1].end_reason or ("horizon" if len(steps) == config.horizon else f"not over after {SHOWN} steps")
    yield f"End: {end}. Score: {_number(game.final_score(step.reward for step in steps))}"


def _block(step: Played) -> str:
    feedback = f": {step.feedback}" if step.feedback else ""
    return f"{step.before}\n> {step.answer}\n< {step.status}, reward {_number(step.reward)}{feedback}"


def _number(value: float) -> str:
    return f"{round(value, 6) + 0.0:g}"  # rounded, as machines differ in the last digits; no -0
