"""Tetris on a small board: 64 pieces, one after the other, no preview.

Rules: the agent names a column and an angle. The turned piece appears in the top rows of the board with the left
    edge of its box in that column and falls straight down until something stops it. Full rows vanish and what is
    above them moves down. Nothing slides, nothing is hidden above the top row.
Observation: step number, the current piece at all four angles with the columns it fits into, and the board.
Actions: ``column angle``: the column from 1, the angle 0, 90, 180 or 270 degrees clockwise. Out of range is invalid.
Verifier reward: rows that vanish in the step, 0 to 4; the final score is their sum.
Episode end: a piece that overlaps a filled cell where it appears, even if another column or angle had room. An
    unusable answer costs the step and the piece stays.
Instances and splits: the sequence of pieces, uniform and independent, is drawn ahead from the seed: 7**65 of them.
    Exploration has 10 x 10 cells and evaluation 8 x 8.
Version history: 1, first version.
Source: the mechanics of KORGym's game 25, but columns and angles are taken at their word, never clamped or rounded.
"""

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import zip_longest
from statistics import fmean
from typing import ClassVar, NamedTuple

from s3gym.games._blocks import (
    ANGLES,
    PICTURES,
    Cell,
    Grid,
    Landing,
    Shape,
    grid,
    landings,
    pictures,
    resting_places,
    settle,
    shape,
    shapes,
    soundness,
)
from s3gym.games._grammar import COMMA, WHOLE, tidy, whole
from s3gym.games.base import (
    Config,
    Fact,
    Facts,
    Game,
    Move,
    Outcome,
    Parsed,
    Player,
    Reader,
    State,
    is_next_step,
    numbered,
    stream,
)

PIECES = tuple(PICTURES)
FILLED, EMPTY = "#."

LANDED = "The piece has landed."
CLEARED = "The piece has landed; full rows are gone."
NO_ROOM = "There was no room where the piece appeared: the game is over."
NOT_AN_ACTION = "Not a column and an angle, such as: 3 90."
NO_ANGLE = "The angle is none of 0, 90, 180 and 270; the piece stays."
OFF_BOARD = "The piece does not fit between the walls there; the piece stays."

_ANGLE = rf"(?!0[0-9]){WHOLE}"  # ``1,000`` is one number, not column 1 at angle 0
_ACTION = re.compile(
    rf"(?:column ?[:=]? ?)?(?P<column>{WHOLE}){COMMA}(?:angle ?[:=]? ?)?(?P<angle>{_ANGLE})(?: ?(?:°|deg(?:rees?)?))?",
    re.IGNORECASE | re.ASCII,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TetrisConfig(Config):
    """The board: 4 to 10 rows and columns, so that a bar fits at any angle and a row number is one digit."""

    horizon: int = 64
    width: int
    height: int

    def __post_init__(self) -> None:
        Config.__post_init__(self)
        for name in ("width", "height"):
            if not 4 <= getattr(self, name) <= 10:
                raise ValueError(f"{name} is {getattr(self, name)}, expected 4 to 10: set another {name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TetrisState(State[TetrisConfig]):
    """One moment of an episode; the pieces after the current one are hidden."""

    pieces: str
    """One letter a piece. There is one more than steps, so that the last observation has a piece as well."""
    field: int
    """The board as bits, see ``_blocks``."""
    placed: int = 0
    """How many pieces have landed; also the index of the current one."""


class TetrisView(NamedTuple):
    """What the player knows; fields as in TetrisConfig and TetrisState."""

    step_index: int
    horizon: int
    width: int
    height: int
    field: int
    piece: str


# --- players ------------------------------------------------------------------------------------------------

BRANCHES = 4
"""Placements the expert looks at more closely, the soundest ones; more of them gain nothing that can be measured."""
LOST = -1000.0
"""What no room for the next piece counts: more than any weakness of a stack."""


@cache
def _column_counts(piece: str, width: int) -> tuple[int, ...]:
    """In how many columns a piece fits between the walls, at each of ANGLES."""
    return tuple(width + 1 - len(picture[0]) for picture in pictures(piece))


def _name(board: Grid, corner: int, angle: int) -> str:
    """The action that brings a piece to rest with its box's corner at the bit ``corner``."""
    return f"{(corner.bit_length() - 1) % board.stride + 1} {angle}"


def _random(view: TetrisView, rng: random.Random) -> Move:
    """A uniform angle, then a uniform column among those where the piece fits between the walls."""
    angle = rng.choice(ANGLES)
    count = _column_counts(view.piece, view.width)[angle // 90]
    return Move(f"{rng.randrange(count) + 1} {angle}", None)


class _Choice(NamedTuple):
    """A placement and the stack it leaves."""

    value: float
    angle: int
    landing: Landing


def _choices(board: Grid, field: int, turns: Iterable[tuple[int, Shape]]) -> list[_Choice]:
    """All placements, the soundest stack first."""
    choices = [
        _Choice(soundness(board, landing.field), angle, landing)
        for angle, dropped in turns
        for landing in landings(board, field, dropped)
    ]
    return sorted(choices, key=lambda choice: -choice.value)


@cache
def _turns(piece: str, stride: int) -> tuple[tuple[int, Shape], ...]:
    """(angle, shape) of a piece, each different shape once."""
    angles: dict[Shape, int] = {}
    for angle, dropped in zip(ANGLES, shapes(piece, stride), strict=True):
        angles.setdefault(dropped, angle)
    return tuple((angle, dropped) for dropped, angle in angles.items())


def _one_piece(view: TetrisView, rng: random.Random) -> Move:
    """The placement that leaves the soundest stack."""
    board = grid(view.width, view.height)
    choices = _choices(board, view.field, _turns(view.piece, board.stride))
    return Move(_name(board, choices[0].landing.corner, choices[0].angle) if choices else "1 0", None)


def _expert(view: TetrisView, rng: random.Random) -> Move:
    """The placement after which the best ones for the next piece are soundest on average; at last, most rows."""
    board = grid(view.width, view.height)
    choices = _choices(board, view.field, _turns(view.piece, board.stride))
    if not choices:
        return Move("1 0", 0.0)
    if view.step_index + 1 == view.horizon:
        best = max(choices, key=lambda choice: choice.landing.rows)
    else:
        best = max(choices[:BRANCHES], key=lambda choice: _outlook(board, choice.landing.field))
    return Move(_name(board, best.landing.corner, best.angle), float(best.landing.rows))


def _outlook(board: Grid, field: int) -> float:
    """Soundness to expect after the next piece."""
    return fmean(_best(board, field, piece) for piece in PIECES)


def _best(board: Grid, field: int, piece: str) -> float:
    """The soundest stack ``piece`` can leave; LOST where it has no room."""
    best = LOST
    for _, dropped in _turns(piece, board.stride):
        for landing in landings(board, field, dropped):
            best = max(best, soundness(board, landing.field))
    return best


# --- a learner's eyes ---------------------------------------------------------------------------------------

TRIAL_ROWS = 2
"""Unknown angles are tried while the stack is no higher: a gap made there costs little."""
_PIECE = re.compile(r"\bPiece ([A-Z])\b")
_COLUMNS = re.compile(r"\bcolumns 1-(\d+)")
_ROW = re.compile(r"^\d((?: [.#])+)$", re.MULTILINE)
_NAMED = re.compile(r"([0-9]{1,2}) ([0-9]{1,3})")


class Seen(NamedTuple):
    """What can be read from an observation."""

    board: Grid
    field: int
    piece: str
    column_counts: tuple[int, ...]
    """In how many columns the piece fits, at each of ANGLES."""


class TetrisReader(Reader):
    """Reads the board, the piece's name and the columns, not the pictures: which cells come, it has to see."""

    def actions(self, observation: str) -> list[str]:
        """Every angle in every column that is named for it."""
        seen = _read(observation)
        return _named(ANGLES, seen.column_counts) if seen else ["1 0"]

    def facts(self, before: str, action: str, after: str) -> Iterable[Fact]:
        """The four cells that have come, from the named column and the highest of them; none when rows vanished."""
        old, new, named = _read(before), _read(after), _NAMED.fullmatch(action)
        if old is None or new is None or named is None or old.board != new.board or not is_next_step(before, after):
            return []
        places = _come(old, new)
        column = int(named[1]) - 1
        if len(places) != 4 or min(place[1] for place in places) != column:
            return []
        return [(f"piece {old.piece}", f"angle {named[2]}", _write(places, column))]

    def choose(self, observation: str, facts: Facts, rng: random.Random) -> Move:
        """The soundest stack the known shapes can leave; while the stack is low, an angle not known yet."""
        seen = _read(observation)
        if seen is None or not facts:
            return Move(rng.choice(self.actions(observation)), None)
        known = _known(seen, facts)
        choices = _choices(seen.board, seen.field, known.items())
        unknown = [angle for angle in ANGLES if angle not in known]
        if unknown and (not choices or _is_low(seen)):
            return Move(rng.choice(_named(unknown, seen.column_counts)), 0.0)  # rows seldom vanish by chance
        if not choices:
            return Move(rng.choice(self.actions(observation)), 0.0)
        best = choices[0]
        return Move(_name(seen.board, best.landing.corner, best.angle), float(best.landing.rows))

    def glance(self, observation: str, action: str) -> float:
        """Rows whose gaps all lie within four columns from the named one."""
        seen, named = _read(observation), _NAMED.fullmatch(action)
        if seen is None or named is None:
            return 0.0
        board, reach, full = seen.board, 0b1111 << int(named[1]) >> 1, (1 << seen.board.width) - 1
        rows = [seen.field >> row * board.stride | reach for row in range(board.height)]
        return float(min(4, sum(row & full == full for row in rows)))


def _named(angles: Sequence[int], column_counts: tuple[int, ...]) -> list[str]:
    return [f"{column + 1} {angle}" for angle in angles for column in range(column_counts[angle // 90])]


def _read(text: str) -> Seen | None:
    piece, counts = _PIECE.search(text), tuple(map(int, _COLUMNS.findall(text)))
    rows = [row.replace(" ", "") for row in _ROW.findall(text)]
    if piece is None or len(counts) != len(ANGLES) or not rows or len({*map(len, rows)}) > 1:
        return None
    board = grid(len(rows[0]), len(rows))
    field = board.empty
    for bit in (r * board.stride + c for r, row in enumerate(rows) for c, glyph in enumerate(row) if glyph == FILLED):
        field |= 1 << bit
    return Seen(board, field, piece[1], counts)


def _is_low(seen: Seen) -> bool:
    above = (1 << seen.board.stride * (seen.board.height - TRIAL_ROWS)) - 1
    return not (seen.field ^ seen.board.empty) & above


def _come(old: Seen, new: Seen) -> list[Cell]:
    """The cells filled since ``old``, row by row; empty when others were lost."""
    bits = new.field ^ old.field if not old.field & ~new.field else 0
    return [divmod(bit, old.board.stride) for bit in range(bits.bit_length()) if bits >> bit & 1]


def _write(places: Sequence[Cell], column: int) -> str:
    return " ".join(f"{row - places[0][0]},{place - column}" for row, place in places)


def _known(seen: Seen, facts: Facts) -> dict[int, Shape]:
    """Shape of the piece at each angle it was seen at, as most often seen."""
    known = {}
    for angle in ANGLES:
        outcomes = facts.get((f"piece {seen.piece}", f"angle {angle}"))
        if outcomes:
            cells = max(sorted(outcomes), key=lambda outcome: outcomes[outcome]).split()
            known[angle] = shape(tuple((int(cell[0]), int(cell[2])) for cell in cells), seen.board.stride)
    return known


# --- the game -----------------------------------------------------------------------------------------------


class Tetris(Game[TetrisConfig, TetrisState, TetrisView]):
    """See the card at the top of the file."""

    id = "tetris"
    VERSION = 1
    unit = "rows"
    exploration = TetrisConfig(width=10, height=10)
    evaluation = TetrisConfig(width=8, height=8)
    success_score = 10.0
    players: ClassVar[Mapping[str, Player]] = {"random": _random, "expert": _expert, "one_piece": _one_piece}
    reader = TetrisReader()
    palette: ClassVar[Mapping[str, str]] = {
        r"(?m)^  [ \d]+$|^\d(?= )": "dim",
        r"(?m)(?:^|(?<= ))\.(?= |$)": "dim",
        FILLED: "bold blue",
        r"(?m)(?:^|(?<= ))O(?= |$)": "bold magenta",
    }

    def reset(self, config: TetrisConfig, seed: int) -> TetrisState:
        """An empty board and the pieces to come."""
        pieces = "".join(stream(seed, "chance").choices(PIECES, k=config.horizon + 1))
        return TetrisState(config=config, pieces=pieces, field=grid(config.width, config.height).empty)

    def view(self, state: TetrisState) -> TetrisView:
        """Everything but the pieces to come."""
        config = state.config
        piece = state.pieces[state.placed]
        return TetrisView(state.step_index, config.horizon, config.width, config.height, state.field, piece)

    def render(self, view: TetrisView) -> str:
        """Step, the piece at all angles, and the numbered board."""
        stride = view.width + 1
        texts, mask, field = _row_texts(view.width), (1 << view.width) - 1, view.field
        rows = [f"{row}{texts[field >> row * stride & mask]}" for row in range(view.height)]
        return f"{numbered(view.step_index, view.horizon)}. {_shown(view.piece, view.width)}" + "\n".join(rows)

    def rules(self, config: TetrisConfig) -> str:
        """Board, fall, rows, and what ends the game."""
        unusable = "ends the episode" if config.unusable_ends else "uses the step up and you keep the piece"
        return (
            f"Tetris: you drop pieces, one a step for at most {config.horizon} steps, into a board of {config.height} "
            f"rows and {config.width} columns. Columns 1 to {config.width} run from left to right, rows 0 to "
            f"{config.height - 1} from top to bottom. Glyphs: # filled, . empty; the current piece is drawn with O.\n"
            "There are seven pieces of four blocks each. Every piece is drawn at random, and the next one is not "
            "shown. You see the current piece at its four angles: degrees of a clockwise turn.\n"
            "You name a column and an angle. The turned piece appears in the top rows of the board, the left edge of "
            "its picture in the named column, and falls straight down until a filled cell or the bottom stops it. "
            "It cannot be moved sideways on its way.\n"
            "Then every row without an empty cell vanishes, and the rows above it move down by one.\n"
            "If the piece overlaps a filled cell where it appears, the game is over at once, even if there was room "
            "elsewhere.\n"
            "A column where the turned piece would stick out of the board, an angle other than 0, 90, 180 and 270, or "
            f"an answer of another form {unusable}.\n"
            "The score of the episode is the number of rows that vanished. The reward of a step is the number of "
            "rows that vanish in it, 0 to 4.\n"
            "Action: column angle, as two numbers: 3 90 drops the piece turned by 90 degrees with its left edge in "
            "column 3."
        )

    def parse(self, text: str, view: TetrisView) -> Parsed:
        """A column and an angle, with a comma or a blank between and perhaps brackets around."""
        match = _ACTION.fullmatch(tidy(text))
        if match is None:
            return Parsed("unparsable", None, NOT_AN_ACTION)
        column, angle = whole(match["column"]), whole(match["angle"])
        if angle not in ANGLES:
            return Parsed("invalid", None, NO_ANGLE)
        if not 1 <= column <= _column_counts(view.piece, view.width)[angle // 90]:
            return Parsed("invalid", None, OFF_BOARD)
        action = f"{column} {angle}"
        return Parsed.of(text, action)

    def step(self, state: TetrisState, action: str) -> Outcome:
        """Drops the piece and takes full rows away."""
        config, step_index = state.config, state.step_index + 1
        board = grid(config.width, config.height)
        column, _, angle = action.partition(" ")
        dropped = shapes(state.pieces[state.placed], board.stride)[int(angle) // 90]
        corner = resting_places(board, state.field, dropped) & board.first << int(column) - 1
        if not corner:
            return Outcome(replace(state, step_index=step_index, end_reason="no_room"), 0.0, NO_ROOM)
        field, rows = settle(board, state.field, dropped.mask * corner)
        after = TetrisState(
            config=config, step_index=step_index, pieces=state.pieces, field=field, placed=state.placed + 1
        )
        return Outcome(after, float(rows), CLEARED if rows else LANDED)

    def layout(self, state: TetrisState) -> str:
        """The size of the board and the pieces."""
        return f"{state.config.width} x {state.config.height} {state.pieces}"

    def reward_range(self, config: TetrisConfig) -> tuple[float, float]:
        """No row, or the four a standing bar can fill."""
        return 0.0, 4.0

    def smallest_positive_score(self, config: TetrisConfig) -> float:
        """One row."""
        return 1.0


@cache
def _row_texts(width: int) -> tuple[str, ...]:
    """The text of each possible row, by its bits."""
    glyphs = (EMPTY, FILLED)
    return tuple("".join(f" {glyphs[row >> c & 1]}" for c in range(width)) for row in range(1 << width))


@cache
def _shown(piece: str, width: int) -> str:
    """The part of an observation that only the current piece decides, up to the board's header."""
    columns = [f"columns 1-{count}" for count in _column_counts(piece, width)]
    drawn = zip_longest(*([" ".join(row) for row in picture] for picture in pictures(piece)), fillvalue="")
    lines = [[f"angle {angle}" for angle in ANGLES], columns, *drawn]
    table = "\n".join("".join(f"{entry:<14}" for entry in line).rstrip() for line in lines)
    header = " ".join(str(column + 1) for column in range(width))
    return f"Piece {piece}, turned clockwise:\n{table}\nBoard:\n  {header}\n"


GAME = Tetris()
