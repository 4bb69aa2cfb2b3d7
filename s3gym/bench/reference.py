"""The reference platform's speed on the same games, as published, and the speed aimed at beside it."""

from typing import NamedTuple

from s3gym.bench.games import Speed
from s3gym.games.base import EVALUATION

SOURCE = (
    "KORGym, commit b56bca0: its game functions called directly, without the HTTP service they ship with; a random "
    "legal policy, CPU time on one core of a virtual AMD EPYC, CPython 3.11.7, best of five"
)
LOOP_TARGET = 1.0
PROMPT_TARGET = 2.0
"""How many times the reference's steps per second a game should make, in each loop."""


class Reference(NamedTuple):
    """Steps per CPU second of one game of the reference."""

    size: str
    loop: int
    prompt: int


REFERENCES = {
    "snake": Reference("8 x 8 with walls", 26_100, 14_800),
    "tetris": Reference("8 x 8", 62_200, 23_600),
    "trust": Reference("40 rounds", 80_400, 45_100),
    "minesweeper": Reference("9 x 9", 18_500, 16_000),
    "nullify": Reference("5 to 10 units", 16_400, 15_100),
    "pvz": Reference("5 x 6", 24_000, 21_100),
}
"""At the sizes of the evaluation configurations; other games have no counterpart."""


class Comparison(NamedTuple):
    """How many times as fast a game is as the reference."""

    reference: Reference
    loop_ratio: float
    prompt_ratio: float

    @property
    def is_loop_target_reached(self) -> bool:
        """Whether the game is as fast as aimed at without texts."""
        return self.loop_ratio >= LOOP_TARGET

    @property
    def is_prompt_target_reached(self) -> bool:
        """The same with texts."""
        return self.prompt_ratio >= PROMPT_TARGET


def compare(speed: Speed) -> Comparison | None:
    """Against the reference; None where it has no such game or, as in exploration, not of this size."""
    reference = REFERENCES.get(speed.game) if speed.phase == EVALUATION else None
    if reference is None:
        return None
    loop, prompt = speed.loop.steps_per_second, speed.prompt.steps_per_second
    return Comparison(reference, loop / reference.loop, prompt / reference.prompt)
