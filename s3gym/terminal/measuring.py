"""``anchors``: the reference players measured, for the shipped table or for a folder's own configurations."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from s3gym import storage
from s3gym.games.base import EVALUATION, EXPLORATION, Config, Game
from s3gym.plan import COMPLETE
from s3gym.protocol.anchors import anchors_csv, measure_scale, read_anchors
from s3gym.records import SHIPPED_ANCHORS, Anchor
from s3gym.registry import GAMES, load, names
from s3gym.terminal.console import verbatim
from s3gym.warehouse import Warehouse


def measure_for_package(games: tuple[str, ...], at_least: int, out: Path) -> None:
    """Measures the games' own configurations and writes the table as CSV.

    What ``out`` already holds for a game's present VERSION, over as many episodes, is kept; what belongs to another
    VERSION is dropped. The file is written after each configuration, so that a stop loses little.
    """
    for name in games:
        load(GAMES, name, "game")  # an unknown name is told before anything is measured
    configs = {
        (name, phase): (game, getattr(game, phase))
        for name in names(GAMES)
        for game in [load(GAMES, name, "game").GAME]
        for phase in (EXPLORATION, EVALUATION)
    }
    known = read_anchors(out) if out.exists() else []
    table = {
        key: [row for row in known if (row.phase, row.config_id) == (key[1], game.config_id(config))]
        for key, (game, config) in configs.items()
    }
    for key in [(name, phase) for name in games or names(GAMES) for phase in (EXPLORATION, EVALUATION)]:
        game, config = configs[key]
        if not _is_enough(table[key], game, at_least):
            table[key] = list(_measured(game, config, key[1], at_least))
            storage.write_text(out, anchors_csv(chain.from_iterable(table.values())))
    storage.write_text(out, anchors_csv(chain.from_iterable(table.values())))
    verbatim(f"Anchors: {out}")
    if out.resolve() != SHIPPED_ANCHORS.resolve():
        verbatim(f"Normalised scores of this installation are made with {SHIPPED_ANCHORS}")


def _is_enough(rows: list[Anchor], game: Game[Any, Any, Any], at_least: int) -> bool:
    """Whether the rows are those of all players, each exact or over episodes enough."""
    counts = {row.player: row.episode_count for row in rows}
    return counts.keys() == game.players.keys() and all(not count or count >= at_least for count in counts.values())


def measure_for_folder(games: tuple[str, ...], at_least: int, data: Path) -> None:
    """Measures the configurations the runs in ``data`` evaluate on and writes them there, for the normalised scores."""
    for name in games:
        load(GAMES, name, "game")
    query = "select distinct game, evaluation_config from stg_cells order by all"
    for game_id, text in Warehouse(data).sql(query).rows():
        if games and game_id not in games:
            continue
        game: Game[Any, Any, Any] = load(GAMES, game_id, "game").GAME
        config = game.read_config(text)
        rows = list(_measured(game, config, EVALUATION, at_least))
        with storage.exclusive(data):
            part = f"anchors-{game.config_id(config)}"
            storage.write_part(data, part, game_id, {"anchors": rows}, {"stage": "anchors", "status": COMPLETE})
    verbatim(f"Anchors: {data}")


def _measured(game: Game[Any, Any, Any], config: Config, phase: str, at_least: int) -> Iterator[Anchor]:
    for anchor in measure_scale(game, config, phase, at_least):
        error = "exact" if anchor.episode_count == 0 else f"+- {anchor.standard_error:.3g} ({anchor.episode_count})"
        verbatim(f"{game.id} {phase} {anchor.player}: {anchor.mean:.4g} {error}")
        yield anchor
