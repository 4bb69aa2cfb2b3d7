"""``anchors``: the reference players measured, for the shipped table or for a folder's own configurations."""

import csv
import io
from collections.abc import Iterator
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from s3gym import storage
from s3gym.games.base import EVALUATION, EXPLORATION, Config, Game
from s3gym.plan import COMPLETE
from s3gym.protocol.anchors import measure_anchor
from s3gym.records import Anchor
from s3gym.registry import GAMES, load, names
from s3gym.terminal.console import verbatim
from s3gym.warehouse import Warehouse


def measure_for_package(games: tuple[str, ...], episode_count: int, out: Path) -> None:
    """Measures the games' own configurations and writes the table as CSV."""
    rows: list[Anchor] = []
    for game_id in games or names(GAMES):
        game = load(GAMES, game_id, "game").GAME
        for phase in (EXPLORATION, EVALUATION):
            rows += _measured(game, getattr(game, phase), phase, episode_count)
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(Anchor)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    storage.write_text(out, text.getvalue())
    verbatim(f"Anchors: {out}")


def measure_for_folder(games: tuple[str, ...], episode_count: int, data: Path) -> None:
    """Measures the configurations the runs in ``data`` evaluate on and writes them there, for the normalised scores."""
    query = "select distinct game, evaluation_config from stg_cells order by all"
    for game_id, text in Warehouse(data).sql(query).rows():
        if games and game_id not in games:
            continue
        game: Game[Any, Any, Any] = load(GAMES, game_id, "game").GAME
        config = game.read_config(text)
        rows = list(_measured(game, config, EVALUATION, episode_count))
        with storage.exclusive(data):
            part = f"anchors-{game.config_id(config)}"
            storage.write_part(data, part, game_id, {"anchors": rows}, {"stage": "anchors", "status": COMPLETE})
    verbatim(f"Anchors: {data}")


def _measured(game: Game[Any, Any, Any], config: Config, phase: str, episode_count: int) -> Iterator[Anchor]:
    for player in game.players:
        anchor = measure_anchor(game, config, phase, player, episode_count)
        error = "exact" if anchor.episode_count == 0 else f"+- {anchor.standard_error:.3g} ({anchor.episode_count})"
        verbatim(f"{game.id} {phase} {player}: {anchor.mean:.4g} {error}")
        yield anchor
