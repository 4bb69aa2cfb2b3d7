"""Searches for the material duel: what a move wins, the best of two plies, and three plies with captures after them.

Boards are python-chess boards and are given back as they came. Values are for the side to move: in pawns where
only material counts, in hundredths of a pawn where mobility does as well.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from math import inf

from chess import (
    BB_ALL,
    BB_RANK_2,
    BB_RANK_7,
    BISHOP,
    KNIGHT,
    PAWN,
    QUEEN,
    ROOK,
    Board,
    Color,
    Move,
    scan_forward,
)

VALUES = (0, 1, 3, 3, 5, 9, 0)
"""Pawns a piece is worth, by its type in python-chess; 0 for an empty square and for the king."""
MATE = 10
"""Pawns that mate is worth."""
LARGEST_GAIN = 2 * VALUES[QUEEN] - VALUES[PAWN]
"""Pawns that one move wins at most: a queen taken by a pawn that becomes a queen."""
LARGEST_ARMY = 9 * VALUES[QUEEN] + 2 * (VALUES[ROOK] + VALUES[BISHOP] + VALUES[KNIGHT])
"""Pawns that one side can have at most: all eight promoted."""

DEPTH = 3
"""Plies the expert looks ahead before it goes on with captures and promotions alone."""
HUNDREDTHS = 100
MOBILITY = 3
"""What a square that a piece attacks is worth, in hundredths of a pawn."""
LARGEST_MOBILITY = 100
"""Hundredths by which mobility is taken to decide at most; where more is missing it is not counted."""


def balance(board: Board, color: Color) -> int:
    """Pawns by which ``color`` is ahead in material; a promoted piece counts as what it is."""
    return material(board, color) - material(board, not color)


def material(board: Board, color: Color) -> int:
    """Pawns that all pieces of ``color`` are worth, the king apart."""
    side = board.occupied_co[color]
    pieces = ((PAWN, board.pawns), (KNIGHT, board.knights), (BISHOP, board.bishops), (ROOK, board.rooks))
    lesser = sum(VALUES[kind] * (mask & side).bit_count() for kind, mask in pieces)
    return lesser + VALUES[QUEEN] * (board.queens & side).bit_count()


def gain(board: Board, move: Move) -> int:
    """Pawns that ``move`` wins at once, by capture and promotion; never negative."""
    taken = board.piece_type_at(move.to_square) or (PAWN if board.is_en_passant(move) else 0)
    return VALUES[taken] + (VALUES[move.promotion] - VALUES[PAWN] if move.promotion else 0)


def is_mated(board: Board) -> bool:
    """Whether the side to move is mated."""
    return board.is_check() and not any(board.generate_legal_moves())


def noisy_moves(board: Board) -> Iterator[Move]:
    """Legal captures and promotions."""
    captures = board.generate_legal_captures()
    almost = board.pawns & board.occupied_co[board.turn] & (BB_RANK_7 if board.turn else BB_RANK_2)
    return chain(captures, board.generate_legal_moves(almost, ~board.occupied)) if almost else captures


# --- two plies ----------------------------------------------------------------------------------------------


def best_moves(board: Board) -> list[Move]:
    """The moves of the best material after the other side's best answer; where there are mates, those.

    An answer is worth what it wins: that it may mate is not seen.
    """
    best: float = -inf
    moves: list[Move] = []
    for won, move in _by_gain(board, board.generate_legal_moves()):
        board.push(move)
        if is_mated(board):
            value: float = inf
        elif won < best:  # no answer gives anything back
            value = -inf
        else:
            value = won - _largest_gain(board, won - best)
        board.pop()
        if value > best:
            best, moves = value, [move]
        elif value == best:
            moves.append(move)
    return moves


def _largest_gain(board: Board, enough: float) -> int:
    """Pawns that the best capture or promotion wins; the first that wins more than ``enough`` will do."""
    largest = 0
    for move in noisy_moves(board):
        largest = max(largest, gain(board, move))
        if largest > enough:
            break
    return largest


def _by_gain(board: Board, moves: Iterable[Move]) -> list[tuple[int, Move]]:
    """(gain, move), most valuable first, and of equal gains the cheapest piece first."""
    gains = [(gain(board, move), move) for move in moves]
    kind = board.piece_type_at
    gains.sort(key=lambda pair: 16 * pair[0] - (kind(pair[1].from_square) or 0 if pair[0] else 0), reverse=True)
    return gains


# --- three plies --------------------------------------------------------------------------------------------


class Search:
    """Alpha-beta for the player to move in ``board``, who has ``steps_left`` moves, this one included.

    The end of a game keeps its material but wins no more of it. So it costs the player what was still to be
    won: all the other side has, up to a pawn for each step left.
    """

    def __init__(self, board: Board, steps_left: int) -> None:
        self.board = board
        self.player = board.turn
        others = material(board, not board.turn)
        self.cost_of_end = HUNDREDTHS * min(others, steps_left - 1)

    def best(self) -> Move:
        """The best move; deeper searches begin with what less deep ones found best."""
        board = self.board
        material = HUNDREDTHS * balance(board, self.player)
        order = _by_gain(board, board.generate_legal_moves())
        for depth in range(DEPTH):
            best = -inf
            for won, move in [*order]:
                board.push(move)
                after = -material - HUNDREDTHS * won
                # Whether a move beats the best one so far is found out sooner than by how much.
                if best == -inf or -self._value(depth, -best - 1, -best, after) > best:
                    best = -self._value(depth, -inf, -best, after)
                    order.remove((won, move))
                    order.insert(0, (won, move))
                board.pop()
        return order[0][1]

    def _value(self, depth: int, alpha: float, beta: float, material: int) -> float:
        """Value of the board, exact between ``alpha`` and ``beta`` and a bound elsewhere."""
        board = self.board
        is_check = board.is_check()
        best = -inf
        if depth == 0 or (depth == 1 and not is_check):
            if is_check and not any(board.generate_legal_moves()):
                return self._end(material - HUNDREDTHS * MATE)
            best = self._calm(alpha, beta, material)
            # A quiet move at the end of the search changes mobility alone.
            if depth == 0 or best >= beta or material + LARGEST_MOBILITY <= alpha:
                return best
            moves = [(0, move) for move in board.generate_legal_moves(BB_ALL, ~board.occupied)]
        else:
            moves = _by_gain(board, board.generate_legal_moves())
            if not moves:
                return self._end(material - HUNDREDTHS * MATE if is_check else material)
        for won, move in moves:
            board.push(move)
            value = -self._value(depth - 1, -beta, -max(alpha, best), -material - HUNDREDTHS * won)
            board.pop()
            if value > best:
                best = value
                if best >= beta:
                    break
        return best

    def _calm(self, alpha: float, beta: float, material: int) -> float:
        """Value when the side to move may stop here or go on with captures and promotions."""
        board = self.board
        # Mobility is counted where it may decide.
        if material - LARGEST_MOBILITY >= beta:
            stop = material - LARGEST_MOBILITY
        elif material + LARGEST_MOBILITY <= alpha:
            stop = material + LARGEST_MOBILITY
        else:
            stop = material + mobility(board)
        if stop >= beta:
            return stop
        best: float = stop
        for won, move in _by_gain(board, noisy_moves(board)):
            if stop + HUNDREDTHS * won <= alpha:
                break
            board.push(move)
            best = max(best, -self._calm(-beta, -max(alpha, best), -material - HUNDREDTHS * won))
            board.pop()
            if best >= beta:
                break
        return best

    def _end(self, value: float) -> float:
        return value - self.cost_of_end if self.board.turn == self.player else value + self.cost_of_end


def mobility(board: Board) -> int:
    """Squares the pieces of the side to move attack, less those of the other side, in hundredths of a pawn."""
    squares = 0
    for color, sign in ((board.turn, 1), (not board.turn, -1)):
        own = board.occupied_co[color]
        for square in scan_forward(own & ~board.pawns & ~board.kings):
            squares += sign * (board.attacks_mask(square) & ~own).bit_count()
    return MOBILITY * squares
