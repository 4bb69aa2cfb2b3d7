"""Strategy guides: for each game one short text of ours that says how to play its strict configuration well.

``<game>.md`` beside this file is read by agents word for word. It says what could be learnt by playing: habits and
general rules, never an instance.
"""

import re
from bisect import bisect_right
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from importlib import resources
from typing import NamedTuple

VERSION = 1
"""Raised when a guide says something else."""
_SUFFIX = ".md"


class Guide(NamedTuple):
    """One guide."""

    game: str
    text: str

    @property
    def facts(self) -> dict[str, object]:
        """Which guide it is, for the keys of what rests on it."""
        return {"game": self.game, "version": VERSION, "sha256": sha256(self.text.encode()).hexdigest()}


@cache
def guided_games() -> tuple[str, ...]:
    """Ids of the games that have a guide, sorted."""
    files = (file.name for file in resources.files(__name__).iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in files if name.endswith(_SUFFIX)))


@cache
def read_guide(game: str) -> Guide:
    """The guide of a game of ``guided_games``."""
    text = resources.files(__name__).joinpath(f"{game}{_SUFFIX}").read_text(encoding="utf-8")
    return Guide(game, text.strip())


def of_length(text: str, token_count: int, count_tokens: Callable[[str], int]) -> str:
    """``text`` as long as asked: repeated in whole sentences, the last one cut at a word.

    Args:
        text: at least a word.
        token_count: most tokens; what is given has as many of them as whole words allow.
        count_tokens: of the model that will read it.
    """
    repeated = text
    while count_tokens(repeated) < token_count:
        repeated = f"{repeated}\n\n{repeated}"
    words = [match.end() for match in re.finditer(r"\S+", repeated)]
    kept = bisect_right(words, token_count, key=lambda end: count_tokens(repeated[:end]))
    return repeated[: words[kept - 1]] if kept else ""
