"""Falling blocks as bits: the seven pieces, where they land, which rows vanish, and how sound a stack is.

A field is one integer. Rows run from the top, ``stride`` bits a row, the leftmost cell first; the bit after the
last cell of a row is the wall, and a full row below the board is the floor. So a piece that would stick out of
the board collides like any other, and all columns are looked at by one shift. Turns, texts and scores are elsewhere.
"""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

Cell = tuple[int, int]
"""(row, column) from the top left corner of a piece's box."""
Picture = tuple[str, ...]
"""The rows of a piece in its box."""

BLOCK = "O"
PICTURES: dict[str, Picture] = {
    "I": ("OOOO",),
    "O": ("OO", "OO"),
    "S": (".OO", "OO."),
    "Z": ("OO.", ".OO"),
    "J": ("O..", "OOO"),
    "L": ("..O", "OOO"),
    "T": (".O.", "OOO"),
}
"""The pieces at angle 0."""
ANGLES = (0, 90, 180, 270)


class Shape(NamedTuple):
    """A piece at one angle, as bits of a field of one stride."""

    offsets: tuple[int, ...]
    """Bit of each cell, counted from the box's top left corner."""
    mask: int
    """The four cells together."""


class Grid(NamedTuple):
    """What fields of one size share. The masks leave the floor out."""

    width: int
    height: int
    stride: int
    empty: int
    """The field without blocks: walls and floor."""
    body: int
    """All cells and the wall."""
    first: int
    """The first cell of every row."""
    window: tuple[int, ...]
    """Shifts that together look at a whole row."""
    depths: tuple[int, ...]
    """Shifts that together look down a whole column."""


class Landing(NamedTuple):
    """One way to drop a shape."""

    corner: int
    """The bit where the top left corner of the box comes to rest."""
    field: int
    """The field after full rows have vanished."""
    rows: int
    """How many have."""


def turned(picture: Picture) -> Picture:
    """A quarter turn clockwise."""
    return tuple("".join(column) for column in zip(*picture[::-1], strict=True))


@cache
def pictures(piece: str) -> tuple[Picture, ...]:
    """A piece at each of ANGLES."""
    views = [PICTURES[piece]]
    for _ in ANGLES[1:]:
        views.append(turned(views[-1]))
    return tuple(views)


def cells(picture: Picture) -> tuple[Cell, ...]:
    """The blocks of a picture, row by row."""
    return tuple((r, c) for r, row in enumerate(picture) for c, glyph in enumerate(row) if glyph == BLOCK)


@cache
def shape(places: tuple[Cell, ...], stride: int) -> Shape:
    """The bits of four cells."""
    offsets = tuple(row * stride + column for row, column in places)
    return Shape(offsets, sum(1 << offset for offset in offsets))


@cache
def shapes(piece: str, stride: int) -> tuple[Shape, ...]:
    """The bits of a piece at each of ANGLES."""
    return tuple(shape(cells(picture), stride) for picture in pictures(piece))


@cache
def grid(width: int, height: int) -> Grid:
    """The masks of one board size."""
    stride = width + 1
    first = sum(1 << row * stride for row in range(height))
    body = (1 << height * stride) - 1
    floor = (1 << stride) - 1 << height * stride
    return Grid(width, height, stride, first << width | floor, body, first, _doubling(width), _doubling(height, stride))


def _doubling(count: int, unit: int = 1) -> tuple[int, ...]:
    """Shifts which, each applied to the result of the one before, join ``count`` neighbours ``unit`` apart."""
    shifts, joined = [], 1
    while joined < count:
        shifts.append(min(joined, count - joined))
        joined += shifts[-1]
    return tuple(shift * unit for shift in shifts)


def resting_places(board: Grid, field: int, dropped: Shape) -> int:
    """The corners at which ``dropped`` comes to rest, one bit a column; none where it collides in the top rows."""
    a, b, c, d = dropped.offsets
    stopped = field >> a | field >> b | field >> c | field >> d
    for shift in board.depths:
        stopped |= stopped << shift  # nothing gets past what stops it
    return ~stopped & stopped >> board.stride & board.body


def settle(board: Grid, field: int, placed: int) -> tuple[int, int]:
    """(field, rows): the field with the bits ``placed``, full rows gone and what was above them moved down."""
    field |= placed
    full = field
    for shift in board.window:
        full &= full >> shift
    full &= board.first
    rows = 0
    while full:
        start = full & -full  # of the topmost full row: those below keep their places
        above, below = field & start - 1, field & -(start << board.stride)
        field = below | above << board.stride | 1 << board.width
        full ^= start
        rows += 1
    return field, rows


def landings(board: Grid, field: int, dropped: Shape) -> Iterator[Landing]:
    """All ways to drop a shape, from left to right within a level."""
    corners = resting_places(board, field, dropped)
    while corners:
        corner = corners & -corners
        yield Landing(corner, *settle(board, field, dropped.mask * corner))
        corners ^= corner


# --- how sound a stack is -----------------------------------------------------------------------------------

HOLE, ROUGH_ROW, ROUGH_COLUMN, HEIGHT, BUMP, WELL = 4.0, 1.0, 1.0, 1.0, 0.25, 0.5
"""What a stack is charged for each weakness; found by a random search on 8 x 8."""


def soundness(board: Grid, field: int) -> float:
    """How well a stack takes further pieces; lower with each weakness.

    Weaknesses: covered empty cells; changes between empty and filled along rows and down columns; cells up to the
    tops; differences between neighbouring tops; and cells of one-cell-wide gaps, the second and third deep ones twice
    and thrice.
    """
    stride, body = board.stride, board.body
    covered = field
    for shift in board.depths:
        covered |= covered << shift
    covered &= body
    before = covered << 1 | 1  # the cell to the left; the wall of the row above stands left of a row
    wells = ~covered & before & covered >> 1 & body
    deeper = wells & wells << stride
    deepest = deeper & deeper << stride
    return -(
        HOLE * ((covered ^ field) & body).bit_count()
        + ROUGH_ROW * ((field ^ (field << 1 | 1)) & body).bit_count()
        + ROUGH_COLUMN * ((field ^ field >> stride) & body).bit_count()
        + HEIGHT * covered.bit_count()
        + BUMP * ((covered ^ before) & body).bit_count()
        + WELL * (wells.bit_count() + deeper.bit_count() + deepest.bit_count())
    )
