"""Chess: a material duel of 20 moves from a random middle-game position.

Rules: those of chess, as python-chess has them. The agent plays the side to move, an opponent replies: in
    exploration with a uniformly random legal move, in evaluation with the best of two plies in material (its move
    and the agent's best capture or promotion after it; mate is best of all), ties at random.
Observation: step number, colours, the last move, the FEN and a diagram with ranks and files; in exploration the
    legal moves in standard algebraic notation (SAN) as well.
Actions: one move in SAN, which is canonical, such as ``Nf3``, ``exd5``, ``O-O``, ``e8=Q+``; long SAN, UCI such as
    ``g1f3``, other case, a move number and ``!?`` are read too, where one legal move fits. A null move is illegal.
    Unreadable, illegal and ambiguous moves are told apart.
Verifier reward: material won less material lost by the move and the reply, in pawns (pawn 1, knight and bishop 3,
    rook 5, queen 9; a promotion changes the material), +10 for giving mate and -10 for being mated. An answer that
    ends the episode forfeits it: all material left, and -10, so that refusing to play does not pay. The final score
    is the sum; it may be negative.
Episode end: checkmate, stalemate, insufficient material, fifty moves without capture or pawn move, the third time
    the same position, counted from the start of the episode. An unusable answer costs the step, in which nobody
    moves; in evaluation it ends the episode.
Instances and splits: 10 to 20 random plies from the initial position, until nobody is in check, material is within
    one pawn and there are 20 legal moves or more; and one draw a step for the opponent. Two seeds practically never
    meet. Both phases draw alike, from seeds of their own.
Version history: 1, first version.
Source: rules and notation by python-chess; not one of the games of the paper.
"""

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import fmean
from typing import ClassVar, NamedTuple

import chess
from chess import Board, Termination

from s3gym.games._chess_search import (
    LARGEST_ARMY,
    LARGEST_GAIN,
    MATE,
    VALUES,
    Search,
    balance,
    best_moves,
    gain,
    is_mated,
    material,
)
from s3gym.games._grammar import tidy
from s3gym.games.base import Config, Game, Move, Outcome, Parsed, Player, Reader, State, numbered, stream

RANDOM, MATERIAL = "random", "material"
OPPONENTS = {
    RANDOM: "The opponent replies with a random legal move.",
    MATERIAL: (
        "The opponent replies with the move that is best for it in material when you answer with your best capture "
        "or promotion; among equal moves it takes a random one."
    ),
}
"""What the rules say of each opponent."""
FEWEST_PLIES, MOST_PLIES, FEWEST_MOVES, LARGEST_LEAD = 10, 20, 20, 1
"""What a start position has to be like: random plies before it, legal moves, pawns of difference."""
DRAW_BITS = 32

MOVED = "You moved and the opponent replied."
OVER = "The game is over: {}."
UNREADABLE_MOVE = "Not a move in SAN or UCI, such as Nf3 or g1f3: nothing moved."
ILLEGAL_MOVE = "This move is not legal here: nothing moved."
AMBIGUOUS_MOVE = "More than one piece can make this move: nothing moved."
NO_MOVE = "--"
"""What stands for a move where there is none."""
LONGEST = 10
"""Characters of a move at most."""

_ANNOTATION = re.compile(r"\A[0-9]{1,3}\.(?:\.\.)? ?|[!?]+\Z")
"""The number of a move, and marks of praise and blame."""
_FEN = re.compile(r"^FEN: (.+)$", re.MULTILINE)
_LISTED = re.compile(r"^Legal moves: (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChessConfig(Config):
    """Who replies, and what is shown."""

    horizon: int = 20
    opponent: str
    """``random``, or ``material`` for the best of two plies."""
    is_listed: bool
    """Whether the observation lists the legal moves."""

    def __post_init__(self) -> None:
        Config.__post_init__(self)
        if self.opponent not in OPPONENTS:
            raise ValueError(f"opponent is {self.opponent!r}, expected {' or '.join(OPPONENTS)}: set one of them")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChessState(State[ChessConfig]):
    """One moment of an episode; ``draws`` is hidden."""

    start: str
    """FEN of the start position."""
    draws: tuple[int, ...]
    """What the opponent's choice among equals depends on, one whole number a step."""
    moves: tuple[str, ...] = ()
    """All moves of the episode in UCI; that a position comes again shows in them."""
    fen: str
    """FEN of this moment."""
    last_move: str
    """The last move in SAN, the one that led to the start position included."""


class ChessView(NamedTuple):
    """What the player knows; fields as in ChessState and ChessConfig."""

    step_index: int
    horizon: int
    fen: str
    last_move: str
    is_white: bool
    opponent: str
    is_listed: bool


# --- positions ----------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _shared(fen: str) -> Board:
    """The position of ``fen``; to be looked at, never to be moved on."""
    return Board(fen)


def _position(fen: str) -> Board:
    """The position of ``fen``, to be moved on."""
    return _shared(fen).copy(stack=False)


@lru_cache(maxsize=4096)
def _listing(fen: str) -> tuple[str, ...]:
    """The legal moves in SAN, sorted."""
    board = _position(fen)
    return tuple(sorted(board.san(move) for move in board.generate_legal_moves()))


def _replayed(state: ChessState) -> Board:
    """The position with the history of the episode."""
    board = _position(state.start)
    for move in state.moves:
        board.push(chess.Move.from_uci(move))
    return board


def _start_position(rng: random.Random) -> tuple[str, str]:
    """(FEN, SAN of the last move) of a position as the card describes it."""
    while True:
        board = Board()
        for _ in range(rng.randint(FEWEST_PLIES, MOST_PLIES)):
            moves = [*board.generate_legal_moves()]
            if not moves:
                break
            board.push(rng.choice(moves))
        is_calm = not board.is_check() and abs(balance(board, board.turn)) <= LARGEST_LEAD
        if is_calm and board.legal_moves.count() >= FEWEST_MOVES:
            fen = board.fen()
            return fen, board.san(board.pop())


def _ending(board: Board) -> str | None:
    """Name of the rule of chess by which the game has ended, else None."""
    outcome = board.outcome()
    if outcome is not None:
        return outcome.termination.name.lower()
    if board.is_fifty_moves():
        return Termination.FIFTY_MOVES.name.lower()
    return Termination.THREEFOLD_REPETITION.name.lower() if board.is_repetition() else None


def _replies(board: Board, opponent: str) -> list[chess.Move]:
    """The moves among which ``opponent`` chooses evenly, in a fixed order."""
    moves = best_moves(board) if opponent == MATERIAL else board.generate_legal_moves()
    return sorted(moves, key=chess.Move.uci)


# --- players ------------------------------------------------------------------------------------------------


def _random(view: ChessView, rng: random.Random) -> Move:
    board = _position(view.fen)
    return Move(board.san(rng.choice([*board.generate_legal_moves()])), None)


def _greedy(view: ChessView, rng: random.Random) -> Move:
    """The move that wins most at once, less the piece itself where it can be taken; at random among equals."""
    board = _position(view.fen)
    values = {move: _greedy_value(board, move) for move in board.generate_legal_moves()}
    best = max(values.values())
    return Move(board.san(rng.choice([move for move, value in values.items() if value == best])), None)


def _greedy_value(board: Board, move: chess.Move) -> int:
    won = gain(board, move)
    board.push(move)
    piece = board.piece_type_at(move.to_square) or 0
    is_attacked = board.is_attacked_by(board.turn, move.to_square)
    board.pop()
    return won - VALUES[piece] if is_attacked else won


def _expert(view: ChessView, rng: random.Random) -> Move:
    return _best(view.fen, view.horizon - view.step_index, view.opponent)


@lru_cache(maxsize=16_384)  # the same instances are played many times, with every experience anew
def _best(fen: str, steps_left: int, opponent: str) -> Move:
    """The search's move, and what it and the expected reply change."""
    board = _position(fen)
    move = Search(board, steps_left).best()
    san, won = board.san(move), gain(board, move)
    board.push(move)
    if is_mated(board):
        return Move(san, float(won + MATE))
    return Move(san, round(won - fmean([*_losses(board, opponent)] or [0]), 2))


def _losses(board: Board, opponent: str) -> Iterator[int]:
    """What each reply the opponent may choose costs the player."""
    for reply in _replies(board, opponent):
        lost = gain(board, reply)
        board.push(reply)
        yield lost + MATE * is_mated(board)
        board.pop()


# --- a reader's eyes ----------------------------------------------------------------------------------------


class ChessReader(Reader):
    """Reads the position and knows the rules of chess, so nothing is left to be learned from experience."""

    def actions(self, observation: str) -> list[str]:
        """The legal moves: as listed, or worked out from the FEN."""
        listed = _LISTED.search(observation)
        if listed is not None:
            return listed[1].split()
        fen = _read_fen(observation)
        return [NO_MOVE] if fen is None else [*_listing(fen)] or [NO_MOVE]

    def glance(self, observation: str, action: str) -> float:
        """What the move wins at once."""
        fen = _read_fen(observation)
        if fen is None:
            return 0.0
        board = _shared(fen)
        try:
            move = board.parse_san(action)
        except ValueError:
            return 0.0
        return float(gain(board, move)) if move else 0.0


def _read_fen(text: str) -> str | None:
    found = _FEN.search(text)
    if found is None:
        return None
    try:
        _shared(found[1])
    except ValueError:
        return None
    return found[1]


# --- the game -----------------------------------------------------------------------------------------------


class Chess(Game[ChessConfig, ChessState, ChessView]):
    """See the card at the top of the file."""

    id = "chess"
    VERSION = 1
    unit = "pawns"
    exploration = ChessConfig(opponent=RANDOM, is_listed=True)
    evaluation = ChessConfig(opponent=MATERIAL, is_listed=False, unusable_ends=True)
    success_score = 9.0
    players: ClassVar[Mapping[str, Player]] = {"random": _random, "expert": _expert, "greedy": _greedy}
    reader = ChessReader()
    palette: ClassVar[Mapping[str, str]] = {
        r"(?m)^  a b .*$|^[1-8](?= )": "dim",
        r"(?m)(?<= )\.(?= |$)": "dim",
        r"(?m)(?<= )(?<!a )[kqrbnp](?= |$)": "magenta",
    }

    def reset(self, config: ChessConfig, seed: int) -> ChessState:
        """A start position, and what the opponent will draw."""
        fen, last_move = _start_position(stream(seed, "layout"))
        rng = stream(seed, "opponent")
        draws = tuple(rng.getrandbits(DRAW_BITS) for _ in range(config.horizon))
        return ChessState(config=config, start=fen, draws=draws, fen=fen, last_move=last_move)

    def view(self, state: ChessState) -> ChessView:
        """Everything but the opponent's draws."""
        config = state.config
        return ChessView(
            step_index=state.step_index,
            horizon=config.horizon,
            fen=state.fen,
            last_move=state.last_move,
            is_white=_shared(state.start).turn,
            opponent=config.opponent,
            is_listed=config.is_listed,
        )

    def render(self, view: ChessView) -> str:
        """Step, colours, last move, FEN, diagram, and the legal moves where the configuration says so."""
        board = _shared(view.fen)
        rows = [f"{8 - index} {row}" for index, row in enumerate(str(board).split("\n"))]
        check = " and in check" if board.is_check() else ""
        lines = [
            f"{numbered(view.step_index, view.horizon)}. "
            f"You play {_named(view.is_white)}; {_named(board.turn)} is to move{check}.",
            f"Last move: {view.last_move}",
            f"FEN: {view.fen}",
            *rows,
            "  a b c d e f g h",
        ]
        if view.is_listed:
            lines.append(f"Legal moves: {' '.join(_listing(view.fen)) or NO_MOVE}")
        return "\n".join(lines)

    def rules(self, config: ChessConfig) -> str:
        """The duel, the opponent, what counts and what a mistake costs here."""
        unusable = "moves nothing and uses the step up"
        if config.unusable_ends:
            unusable = f"forfeits the game: it ends, and takes {MATE} and the worth of all your pieces away"
        return (
            f"Chess: you play at most {config.horizon} moves by the rules of chess from a middle-game position, with "
            "the side that is to move at the start.\n"
            f"{OPPONENTS[config.opponent]}\n"
            "In the diagram capitals are White (K king, Q queen, R rook, B bishop, N knight, P pawn), small letters "
            "Black, and . is an empty square.\n"
            "Only material and mate count. A pawn is worth 1, a knight or a bishop 3, a rook 5, a queen 9. The reward "
            "of a step is the material you win with your move less what the reply takes from you; a pawn that promotes "
            f"is worth its new piece. Giving mate adds {MATE}, being mated takes {MATE} away. The score of the episode "
            "is the sum, and it may be negative.\n"
            "The game ends early by checkmate, stalemate, insufficient material, the fifty-move rule, or when a "
            "position comes up for the third time since the start of the episode.\n"
            f"An answer that is no move, an illegal one or an ambiguous one {unusable}.\n"
            "Action: one move in standard algebraic notation, such as Nf3, exd5, O-O or e8=Q; UCI such as g1f3 or "
            "e7e8q is understood too."
        )

    def parse(self, text: str, view: ChessView) -> Parsed:
        """A move as python-chess reads it, in SAN or UCI; else the one legal move that is written so but for case."""
        word, board = _ANNOTATION.sub("", tidy(text)), _position(view.fen)
        move, status, feedback = _read_move(board, word)
        moves = [move] if move else _moves_in_any_case(board, word)
        if len(moves) > 1:
            return Parsed("ambiguous", None, AMBIGUOUS_MOVE)
        if not moves:
            return Parsed(status, None, feedback)
        action = board.san(moves[0])
        return Parsed.of(text, action)

    def step(self, state: ChessState, action: str) -> Outcome:
        """The agent's move, and the reply unless the game is over."""
        board = _replayed(state)
        player = board.turn
        before = balance(board, player)
        last_move = action
        board.push_san(action)
        end_reason = _ending(board)
        if end_reason is None:
            replies = _replies(board, state.config.opponent)
            last_move = board.san_and_push(replies[state.draws[state.step_index] % len(replies)])
            end_reason = _ending(board)
        reward = balance(board, player) - before
        if end_reason == Termination.CHECKMATE.name.lower():
            reward += -MATE if board.turn == player else MATE
        after = replace(
            state,
            step_index=state.step_index + 1,
            end_reason=end_reason,
            moves=tuple(move.uci() for move in board.move_stack),
            fen=board.fen(),
            last_move=last_move,
        )
        return Outcome(after, float(reward), OVER.format(end_reason.replace("_", " ")) if end_reason else MOVED)

    def spoil(self, state: ChessState, feedback: str) -> Outcome:
        """Nobody moves; where that ends the episode, all is lost."""
        outcome = super().spoil(state, feedback)
        if outcome.end_reason is None:
            return outcome
        board = _shared(state.fen)
        return outcome._replace(reward=float(-material(board, board.turn) - MATE))

    def layout(self, state: ChessState) -> str:
        """The start position and the opponent's draws."""
        return f"{state.start} {' '.join(map(str, state.draws))}"

    def reward_range(self, config: ChessConfig) -> tuple[float, float]:
        """The largest gain of one move with mate, for either side; and a whole army where an answer may forfeit it."""
        loss = LARGEST_ARMY if config.unusable_ends else LARGEST_GAIN
        return float(-loss - MATE), float(LARGEST_GAIN + MATE)

    def smallest_positive_score(self, config: ChessConfig) -> float:
        """One pawn."""
        return 1.0


def _read_move(board: Board, word: str) -> tuple[chess.Move | None, str, str]:
    """(move, status, feedback) of a strict reading; no move unless the status is ``ok``."""
    try:
        move = board.parse_san(word)
    except chess.InvalidMoveError:
        return None, "unparsable", UNREADABLE_MOVE
    except chess.AmbiguousMoveError:
        return None, "ambiguous", AMBIGUOUS_MOVE
    except chess.IllegalMoveError:
        return None, "illegal", ILLEGAL_MOVE
    return (move, "ok", "") if move else (None, "illegal", ILLEGAL_MOVE)  # python-chess reads 0000 as a null move


def _moves_in_any_case(board: Board, word: str) -> list[chess.Move]:
    """The legal moves whose SAN or UCI is ``word`` in some case."""
    if len(word) > LONGEST or not word.isascii():  # letters of other scripts may have ASCII capitals
        return []
    return [move for move in board.generate_legal_moves() if word.lower() in (board.san(move).lower(), move.uci())]


def _named(is_white: bool) -> str:
    return "White" if is_white else "Black"


GAME = Chess()
