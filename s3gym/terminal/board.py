"""A state of a game as a person sees it: the text an agent reads, in the colours the game declares."""

from collections.abc import Mapping

from rich.text import Text

from s3gym.registry import GAMES, load, names
from s3gym.terminal.console import console, inert


def palette_of(game_id: str) -> Mapping[str, str]:
    """The colours of a game; none for one that is stored but no longer there."""
    return load(GAMES, game_id, "game").GAME.palette if game_id in names(GAMES) else {}


def painted(observation: str, palette: Mapping[str, str]) -> Text:
    """The observation with each match of a pattern in its style; of two on the same spot the later one shows."""
    board = Text(inert(observation))
    for pattern, style in palette.items():
        board.highlight_regex(pattern, style)
    return board


def show(observation: str, palette: Mapping[str, str]) -> None:
    """Prints a board; colours appear in a terminal alone."""
    console.print(painted(observation, palette), soft_wrap=True)
