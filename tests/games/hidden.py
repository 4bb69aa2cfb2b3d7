"""Other hidden truth behind the same view, game by game: what an agent must not be able to tell apart.

A game gets an entry in ``HIDDEN``. Its ``swapped`` makes, of a start state, one whose view is the same and whose
truth is not. Its ``quiet`` names, of two states that still look alike, an action that has to look alike in both, as
has every unusable answer: feedback, next observation and end; or None when whatever comes next would tell.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from s3gym.games._mines import CELLS, FLAG, UNKNOWN, mask, members, showing
from s3gym.games._motion import moved
from s3gym.games.chess import GAME as CHESS
from s3gym.games.chess import ChessState
from s3gym.games.latent_chess import LatentChessState
from s3gym.games.minesweeper import FLAG_VERB, MinesweeperState
from s3gym.games.nullify import NullifyState
from s3gym.games.pvz import PvzState
from s3gym.games.snake import OFFSETS, SnakeState
from s3gym.games.tetris import TetrisState
from s3gym.games.trust import STRATEGIES, C, TrustState


class Hidden(NamedTuple):
    """One game's entry."""

    swapped: Callable[[Any], Any]
    quiet: Callable[[Any, Any], str | None]


def other_draws(state: ChessState) -> ChessState:
    """Other choices of the opponent from the fourth reply on."""
    return replace(state, draws=state.draws[:3] + tuple(draw + 1 for draw in state.draws[3:]))


def move_while_draws_agree(state: ChessState, other: ChessState) -> str | None:
    """A reply tells them apart once it is drawn otherwise."""
    return CHESS.reader.actions(CHESS.render(CHESS.view(state)))[0] if state.step_index < 3 else None


def other_last_board(state: LatentChessState) -> LatentChessState:
    """The same boards but for the last, on which every piece stands elsewhere."""
    return replace(state, paths=tuple((*cells[:-1], moved(cells[-1], (1, 0))) for cells in state.paths))


def foretell_one_piece(state: LatentChessState, other: LatentChessState) -> str | None:
    """Whether it was right shows on the next board alone; the last one tells the truths apart."""
    return "A:(0,0)" if state.step_index < state.config.horizon - 2 else None


def other_mines(state: MinesweeperState) -> MinesweeperState:
    """As many mines, all on cells that are safe now where there are enough."""
    count = state.mines.bit_count()
    mines = state.spares[:count]
    spares = (*state.spares[count:], *members(state.mines))
    return replace(state, mines=mask(mines), spares=spares)


def flag_anything(state: MinesweeperState, other: MinesweeperState) -> str | None:
    """Whether a flag is right is not told."""
    if state.board.count(FLAG) + 1 >= state.mines.bit_count():
        return None  # the last flag may complete the board, which ends the episode
    row, column = divmod(showing(state.board, UNKNOWN)[-1], int(CELLS**0.5))
    return f"{FLAG_VERB} ({row},{column})"


def other_certificate(state: NullifyState) -> NullifyState:
    """Another way to 0, or what claims to be one."""
    return replace(state, certificate=state.certificate[::-1])


def join_any(state: NullifyState, other: NullifyState) -> str | None:
    """The certificate plays no part in a join."""
    numbers = [index for index, unit in enumerate(state.units) if unit.kind == "number"]
    return f"{numbers[0]} {numbers[1]}" if len(numbers) > 1 else None


def other_zombies(state: PvzState) -> PvzState:
    """The zombies to come in another order, from the third on."""
    return replace(state, coming=state.coming[:2] + state.coming[:1:-1])


def plant_while_zombies_agree(state: PvzState, other: PvzState) -> str | None:
    """The third zombie comes in at the end of the eleventh step."""
    return "J 0 0; J 1 0; J 2 0" if state.step_index < 10 else None


def other_apples(state: SnakeState) -> SnakeState:
    """The same board with the apples to come in another order."""
    order = state.arena.order
    order = (*order[: state.cursor], *order[: state.cursor - 1 : -1])
    return replace(state, arena=state.arena._replace(order=order))


def eat_nothing(state: SnakeState, other: SnakeState) -> str | None:
    """Where the next apple will be shows when one is eaten."""
    head, size = state.body[0], state.config.size
    ahead = {name: head + row * size + column for name, (row, column) in OFFSETS.items()}
    free = [name for name, cell in ahead.items() if cell not in state.apples and state.arena.ground[cell] == "."]
    return free[0] if free else None


def other_pieces(state: TetrisState) -> TetrisState:
    """Other pieces after the third one."""
    return replace(state, pieces=state.pieces[:3] + state.pieces[:2:-1])


def drop_while_next_pieces_agree(state: TetrisState, other: TetrisState) -> str | None:
    """The next piece is shown once the current one has landed."""
    agree = state.pieces[state.placed + 1] == other.pieces[state.placed + 1]
    return "1 0" if agree else None


def other_opponent(state: TrustState) -> TrustState:
    """One that answers alike for longest when it is always met with collaboration."""
    twins = {"grudger": "copycat", "copycat": "grudger", "pink": "copykitten", "stubborn": "pink"}
    return replace(state, opponent=twins.get(state.opponent, "stubborn"))


def collaborate_while_they_agree(state: TrustState, other: TrustState) -> str | None:
    """A round tells them apart once their answers differ."""
    answers = {STRATEGIES[match.opponent](match.record) for match in (state, other)}
    return C if len(answers) == 1 else None


HIDDEN = {
    "chess": Hidden(other_draws, move_while_draws_agree),
    "latent_chess": Hidden(other_last_board, foretell_one_piece),
    "minesweeper": Hidden(other_mines, flag_anything),
    "nullify": Hidden(other_certificate, join_any),
    "pvz": Hidden(other_zombies, plant_while_zombies_agree),
    "snake": Hidden(other_apples, eat_nothing),
    "tetris": Hidden(other_pieces, drop_while_next_pieces_agree),
    "trust": Hidden(other_opponent, collaborate_while_they_agree),
}
