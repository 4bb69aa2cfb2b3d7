"""``models check``: whether a model is fit for a run, before anything is paid for one."""

import asyncio
from typing import Any

from rich.table import Table
from rich.text import Text

from s3gym.config import ConfigError
from s3gym.errors import Explained
from s3gym.games.base import Game
from s3gym.models import load_model, scripted
from s3gym.models._cards import Card, card_of
from s3gym.models.base import Decoding, Model
from s3gym.protocol.probe import MOST_CALLS, NO, PARTLY, USUAL_CALLS, YES, Finding, Trial, findings, try_out
from s3gym.registry import GAMES, UnknownName, load, names
from s3gym.terminal.console import console, errors, inert

GAME = "trust"
"""Short prompts, and any answer of the right form can be played."""
TIMEOUT_SECONDS = 120.0
"""Of one call: who tries out waits less than a run does."""
STYLES = {YES: "green", PARTLY: "yellow", NO: "red"}


def check_model(model_id: str, base_url: str | None, max_output_tokens: int) -> int:
    """Shows what works; the exit code, 1 when a run would be of no use.

    Raises:
        ConfigError, UnknownName: there is no such model.
    """
    model = _load(model_id, base_url)
    game, card, trial, lacking = _game_of(model), Card(), Trial(), None
    with errors.status(f"Trying {inert(model_id)}: usually {USUAL_CALLS} short calls, at most {MOST_CALLS} ..."):
        try:
            model.check()
        except UnknownName:
            raise
        except Explained as error:
            lacking = str(error)
        card = card_of(model)
        if lacking is None:
            decoding = Decoding(max_output_tokens=max_output_tokens, timeout_seconds=TIMEOUT_SECONDS)
            trial = asyncio.run(try_out(model, game, decoding))
    found = findings(card, trial, lacking, model.is_free)
    _show(model_id, found)
    failed = [finding.name for finding in found if finding.is_failure]
    if failed:
        errors.print(f"[red]Failed:[/red] {', '.join(failed)}. A run with this model would give no results.")
    else:
        console.print(f"All right: a run with this model can begin (tried on {game.id}).")
    return 1 if failed else 0


def _load(model_id: str, base_url: str | None) -> Model:
    try:
        return load_model(model_id, base_url)
    except Explained:
        raise
    except ValueError as error:
        raise ConfigError(f"model {model_id!r}: {error}") from None


def _game_of(model: Model) -> Game[Any, Any, Any]:
    """``GAME``, but for a scripted player that only another game has."""
    usual: Game[Any, Any, Any] = load(GAMES, GAME, "game").GAME
    if not isinstance(model, scripted.PlayerModel):
        return usual
    games: list[Game[Any, Any, Any]] = [usual, *(load(GAMES, name, "game").GAME for name in names(GAMES))]
    for game in games:
        if model.player in scripted.names_for(game.players):
            return game
    raise UnknownName("player", model.player, {name for game in games for name in scripted.names_for(game.players)})


def _show(model_id: str, found: list[Finding]) -> None:
    table = Table("", "", "what was seen", title=Text(inert(model_id)), title_justify="left")
    for finding in found:
        verdict = Text(finding.verdict, STYLES.get(finding.verdict, ""))
        table.add_row(finding.name, verdict, Text(inert(finding.told)))
    console.print(table)
