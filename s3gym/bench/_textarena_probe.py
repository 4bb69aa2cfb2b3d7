"""Times TextArena's games; run as a file by the Python that has TextArena, so it imports nothing of this project.

Reads one argument, JSON with ``games``, ``steps``, ``repeat`` and ``seconds``; prints one JSON object. A step is one
decision of player 0, with whatever the other player answers before the next. ``loop`` takes the bare environment and
asks for no observation; ``prompt`` takes it as TextArena makes it for a language model and asks for the text before
every step. TextArena writes its texts inside ``step``, so ``loop`` contains part of their cost as well.
"""

import importlib
import importlib.metadata
import json
import random
import sys
from collections.abc import Callable
from time import process_time
from typing import Any, NamedTuple

SILENCE = ""
"""An answer where a message is due; no decision, so it is not counted."""


def _dig(env: Any, rng: random.Random) -> str:
    hidden = [
        (row, column)
        for row, cells in enumerate(env.revealed)
        for column, is_revealed in enumerate(cells)
        if not is_revealed
    ]
    row, column = rng.choice(hidden)
    return f"[{row} {column}]"


def _steer(env: Any, rng: random.Random) -> str:
    return rng.choice(("[up]", "[down]", "[left]", "[right]"))


def _choose(env: Any, rng: random.Random) -> str:
    if env.state.game_state["phase"] == "conversation":
        return SILENCE
    return rng.choice(("[Cooperate]", "[Defect]"))


def _move(env: Any, rng: random.Random) -> str:
    return f"[{rng.choice(list(env.state.game_state['board'].legal_moves)).uci()}]"


class Peer(NamedTuple):
    """A game that both have."""

    environment: str
    settings: dict[str, int]
    player_count: int
    policy: Callable[[Any, random.Random], str]
    size: str
    """What is played, in words."""


GAMES = {
    "chess": Peer("Chess-v0", {}, 2, _move, "8 x 8, random opponent"),
    "minesweeper": Peer(
        "Minesweeper-v0",
        {"rows": 9, "cols": 9, "num_mines": 15, "max_turns": 64},
        1,
        _dig,
        "9 x 9, 15 mines, no flags",
    ),
    "snake": Peer(
        "Snake-v0",
        {"width": 6, "height": 6, "num_apples": 3, "max_turns": 64},
        2,
        _steer,
        "6 x 6 inside, 3 apples, 2 snakes",
    ),
    "trust": Peer(
        "IteratedPrisonersDilemma-v0",
        {"num_rounds": 10, "communication_turns": 1},
        2,
        _choose,
        "10 rounds, random opponent, empty talk",
    ),
}


def main(request: dict[str, Any]) -> None:
    """Times what is asked for and prints it."""
    importlib.import_module("textarena")
    rows = [_row(game, request) for game in request["games"] if game in GAMES]
    print(json.dumps({"version": importlib.metadata.version("textarena"), "rows": rows}))


def _row(game: str, request: dict[str, Any]) -> dict[str, Any]:
    peer = GAMES[game]
    row = {
        "game": game,
        "environment": peer.environment,
        "size": peer.size,
        "loop": None,
        "prompt": None,
        "error": None,
    }
    try:
        _play(game, "", 1, 0.0)  # imports
        passes = {
            mode: [_play(game, suffix, request["steps"], request["seconds"]) for _ in range(request["repeat"])]
            for mode, suffix in (("loop", "-raw"), ("prompt", ""))
        }
    except Exception as error:  # whatever a foreign environment raises, the others are still timed
        return {**row, "error": f"{type(error).__name__}: {error}"}
    return row | {mode: max(some, key=lambda one: one[0] / one[2]) for mode, some in passes.items()}


def _play(game: str, suffix: str, steps: int, seconds: float) -> tuple[int, int, float]:
    """Episodes seeded 0, 1, 2, ... as in the project's own passes: (steps, episodes, CPU seconds)."""
    make = importlib.import_module("textarena").make
    peer, rng = GAMES[game], random.Random(0)
    step_count = seed = 0
    started = process_time()
    while not seed or (step_count < steps and process_time() - started < seconds):
        env = make(peer.environment + suffix, **peer.settings)  # a new one: its wrappers keep the texts of all episodes
        env.reset(num_players=peer.player_count, seed=seed)
        is_over = False
        while not is_over:
            answer = peer.policy(env, rng)
            is_counted = env.state.current_player_id == 0 and answer != SILENCE
            if is_counted and not suffix:
                env.get_observation()
            is_over, _ = env.step(answer)
            step_count += is_counted
        seed += 1
    return step_count, seed, process_time() - started


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
