"""``games`` and ``play``: the games themselves, without any model."""

import csv

from rich.table import Table

from s3gym.models.scripted import names_for
from s3gym.records import SHIPPED_ANCHORS
from s3gym.registry import GAMES, load, names
from s3gym.terminal.console import console, verbatim


def show_games() -> None:
    """One line a game."""
    table = Table("game", "version", "score", "steps", "random", "expert", "players", "what it is")
    with SHIPPED_ANCHORS.open(newline="") as file:
        means = {(row["config_id"], row["player"]): float(row["mean"]) for row in csv.DictReader(file)}
    for name in names(GAMES):
        module = load(GAMES, name, "game")
        game, card = module.GAME, (module.__doc__ or "").split("\n", 1)[0]
        ends = [means.get((game.config_id(game.evaluation), player)) for player in ("random", "expert")]
        table.add_row(
            name,
            str(game.VERSION),
            game.unit,
            str(game.evaluation.horizon),
            *("-" if mean is None else f"{mean:.3g}" for mean in ends),
            ", ".join(names_for(game.players)),
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
    if end_reason or len(rewards) == config.horizon:
        verbatim(game.render(game.view(state)))
    out_of_steps = "out of steps" if len(rewards) == config.horizon else "stopped"
    ended = f"ended by {end_reason}" if end_reason else out_of_steps
    console.print(
        f"\n{len(rewards)} steps, {ended}. Final score: {game.final_score(rewards):g} {game.unit}",
        highlight=False,
    )
