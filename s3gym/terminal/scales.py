"""``games``: what there is to play, on which scale, and each game's card."""

from typing import Any

from rich.table import Table

from s3gym.games.base import EVALUATION, Game
from s3gym.protocol.anchors import ENDS, read_anchors
from s3gym.records import SHIPPED_ANCHORS
from s3gym.registry import GAMES, load, names
from s3gym.terminal.console import console, verbatim


def show_games() -> None:
    """One line a game: its scale on the evaluation configuration, and what it is."""
    table = Table("game", "version", "score", "steps", "random", "expert", "other players", "learner", "what it is")
    means = {(anchor.config_id, anchor.player): anchor.mean for anchor in read_anchors(SHIPPED_ANCHORS)}
    for name in names(GAMES):
        module = load(GAMES, name, "game")
        game: Game[Any, Any, Any] = module.GAME
        config_id = game.config_id(getattr(game, EVALUATION))
        scale = {player: _mean(means.get((config_id, player))) for player in game.players}
        table.add_row(
            name,
            str(game.VERSION),
            game.unit,
            str(game.evaluation.horizon),
            *(scale.pop(player) for player in ENDS),
            ", ".join(f"{player} {mean}" for player, mean in scale.items()),
            "learns" if game.reader.is_learnable else "-",
            (module.__doc__ or "").split("\n", 1)[0],
        )
    console.print(table)


def show_card(name: str) -> None:
    """A game's card: rules, observation, actions, verifier reward, end, instances, versions and source."""
    verbatim((load(GAMES, name, "game").__doc__ or "").rstrip())


def _mean(value: float | None) -> str:
    return "?" if value is None else f"{value:.3g}"
