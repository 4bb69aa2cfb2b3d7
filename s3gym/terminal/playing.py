"""``games``, ``play`` and ``anchors``: the games themselves, without any model."""

import csv
import io
from dataclasses import asdict, fields
from pathlib import Path

from rich.table import Table

from s3gym import storage
from s3gym.games.base import EVALUATION, EXPLORATION
from s3gym.plan import GAMES
from s3gym.protocol.anchors import measure_anchor
from s3gym.records import Anchor
from s3gym.registry import load, names
from s3gym.terminal.console import console, verbatim
from s3gym.warehouse import ANCHORS


def show_games() -> None:
    """One line a game."""
    table = Table("game", "version", "score", "steps", "random", "expert", "players", "what it is")
    with ANCHORS.open(newline="") as file:
        shipped = {(row["game"], row["player"]): row for row in csv.DictReader(file) if row["phase"] == EVALUATION}
    for name in names(GAMES):
        module = load(GAMES, name, "game")
        game, card = module.GAME, (module.__doc__ or "").split("\n", 1)[0]
        ends = [shipped.get((name, player), {}).get("mean") for player in ("random", "expert")]
        shown = [f"{float(mean):.3g}" if mean else "" for mean in ends]
        table.add_row(
            name,
            str(game.VERSION),
            game.unit,
            str(game.evaluation.horizon),
            *shown,
            ", ".join(game.players),
            card,
        )
    console.print(table)


def play_by_hand(game_id: str, phase: str, seed: int) -> None:
    """A person plays, with the text an agent sees; the score is told at the end, which no agent is."""
    game = load(GAMES, game_id, "game").GAME
    config = getattr(game, phase)
    state, rewards, end_reason = game.reset(config, seed), [], None
    verbatim(game.rules(config))
    console.print("\nWrite an action, or nothing to stop.\n")
    for _ in range(config.horizon):
        verbatim(game.render(game.view(state)))
        try:
            text = console.input("Answer: ", markup=False)
        except EOFError:
            text = ""
        if not text.strip():
            break
        taken = game.take(state, text)
        state, end_reason = taken.outcome.state, taken.outcome.end_reason
        rewards.append(taken.outcome.reward)
        verbatim(f"Feedback: {taken.outcome.feedback}\n")
        if end_reason is not None:
            break
    verbatim(game.render(game.view(state)))
    ended = f"ended by {end_reason}" if end_reason else "stopped or out of steps"
    console.print(
        f"\n{len(rewards)} steps, {ended}. Final score: {game.final_score(rewards):g} {game.unit}",
        highlight=False,
    )


def measure_anchors(games: tuple[str, ...], episode_count: int, out: Path) -> None:
    """Measures every reference player and writes the table as CSV."""
    rows = []
    for game_id in games or names(GAMES):
        game = load(GAMES, game_id, "game").GAME
        for phase in (EXPLORATION, EVALUATION):
            for player in game.players:
                anchor = measure_anchor(game, phase, player, episode_count)
                rows.append(asdict(anchor))
                error = (
                    "exact" if anchor.episode_count == 0 else f"+- {anchor.standard_error:.3g} ({anchor.episode_count})"
                )
                console.print(f"{game_id} {phase} {player}: {anchor.mean:.4g} {error}", highlight=False)
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(Anchor)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    storage.write_text(out, text.getvalue())
    console.print(f"Anchors: {out}", highlight=False)
