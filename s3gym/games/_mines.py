"""The minesweeper board, and what its numbers say about where the mines are.

A board is a text of one glyph a cell, row by row; cells are counted from 0 and sets of cells are bit masks.
Turns, lives and scores are elsewhere. A flag is a note of the player's own and proves nothing, so ``certain``
and ``mine_chances`` take the board with flags turned back into unknown cells.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache, reduce
from math import comb
from operator import or_
from typing import NamedTuple

SIZE = 9
CELLS = SIZE * SIZE
UNKNOWN, FLAG, EXPLODED = "?", "F", "X"

NEAR = tuple(
    tuple(
        SIZE * r + c
        for r in range(max(row - 1, 0), min(row + 2, SIZE))
        for c in range(max(column - 1, 0), min(column + 2, SIZE))
        if (r, c) != (row, column)
    )
    for row in range(SIZE)
    for column in range(SIZE)
)
"""The 3, 5 or 8 cells around each cell."""
NEAR_MASK = tuple(sum(1 << near for near in cells) for cells in NEAR)


class _Proof(NamedTuple):
    """Cells that are certain, as masks."""

    mines: int
    safe: int


class _Need(NamedTuple):
    """Among ``cells`` there are exactly ``mines`` mines."""

    cells: int
    mines: int


_Tally = dict[int, list[int]]
"""Mines in all -> [ways, then for each group the mines in it summed over those ways]."""


def members(cells: int) -> Iterator[int]:
    """The cells of a mask, in order."""
    while cells:
        lowest = cells & -cells
        yield lowest.bit_length() - 1
        cells ^= lowest


def showing(board: str, glyph: str) -> list[int]:
    """The cells that show ``glyph``, in order."""
    return [cell for cell, shown in enumerate(board) if shown == glyph]


def mask(cells: Iterable[int]) -> int:
    """Different cells as a mask."""
    return sum(1 << cell for cell in cells)


def put(board: str, cell: int, glyph: str) -> str:
    """The board with one cell changed."""
    return board[:cell] + glyph + board[cell + 1 :]


def flood(board: str, mines: int, cell: int) -> str:
    """The board with the safe ``cell`` open, and with everything that a 0 opens; flags stop it."""
    opened = list(board)
    waiting = [cell]
    while waiting:
        cell = waiting.pop()
        if opened[cell] == UNKNOWN:
            number = (mines & NEAR_MASK[cell]).bit_count()
            opened[cell] = str(number)
            if number == 0:
                waiting.extend(NEAR[cell])
    return "".join(opened)


@lru_cache(maxsize=64)
def certain(board: str) -> dict[int, float]:
    """What follows from one number at a time: 1.0 a mine, 0.0 a safe cell. Cheap, and often enough."""
    proof = _prove(_needs(board))
    return dict.fromkeys(members(proof.mines), 1.0) | dict.fromkeys(members(proof.safe), 0.0)


@lru_cache(maxsize=64)
def mine_chances(board: str, mine_count: int) -> dict[int, float]:
    """Exact chance of a mine for every unknown cell, all placements of ``mine_count`` mines equally likely.

    Cells that share all their numbers form a group and are interchangeable. Groups tied by numbers form a
    component; components meet only in the total, and cells without a number are one more component.
    """
    needs = _needs(board)
    proof = _prove(needs)
    chances = dict.fromkeys(members(proof.mines), 1.0) | dict.fromkeys(members(proof.safe), 0.0)
    left = mine_count - board.count(EXPLODED) - proof.mines.bit_count()
    needs = sorted(need for need in {_reduced(need, proof) for need in needs} if need.cells)
    components = _components(mask(showing(board, UNKNOWN)) & ~proof.mines & ~proof.safe, needs)
    tallies = [_tally(groups, needs, left) for groups in components]
    for index, groups in enumerate(components):
        others = {0: 1}
        for tally in tallies[:index] + tallies[index + 1 :]:
            others = _convolve(others, {mines: row[0] for mines, row in tally.items()}, left)
        ways = {mines: others.get(left - mines, 0) for mines in tallies[index]}
        total = sum(row[0] * ways[mines] for mines, row in tallies[index].items())
        for place, group in enumerate(groups, start=1):
            hits = sum(row[place] * ways[mines] for mines, row in tallies[index].items())
            chances.update(dict.fromkeys(members(group), hits / (total * group.bit_count())))
    return chances


def _needs(board: str) -> list[_Need]:
    unknown, exploded = mask(showing(board, UNKNOWN)), mask(showing(board, EXPLODED))
    return [
        _Need(around & unknown, int(glyph) - (around & exploded).bit_count())
        for glyph, around in zip(board, NEAR_MASK, strict=True)
        if glyph.isdigit() and around & unknown
    ]


def _prove(needs: list[_Need]) -> _Proof:
    """A satisfied number makes its unknown cells safe, one that needs them all makes them mines; repeated."""
    proof, before = _Proof(0, 0), None
    while proof != before:
        before = proof
        for need in needs:
            cells, count = _reduced(need, proof)
            if count == 0:
                proof = proof._replace(safe=proof.safe | cells)
            elif count == cells.bit_count():
                proof = proof._replace(mines=proof.mines | cells)
    return proof


def _reduced(need: _Need, proof: _Proof) -> _Need:
    return _Need(need.cells & ~proof.mines & ~proof.safe, need.mines - (need.cells & proof.mines).bit_count())


def _components(unknown: int, needs: list[_Need]) -> list[list[int]]:
    """Groups as masks, those tied by numbers together; the cells without a number come last, as one group."""
    blocks: list[int] = []
    for need in needs:
        touched = [block for block in blocks if block & need.cells]
        blocks = [block for block in blocks if not block & need.cells]
        blocks.append(reduce(or_, touched, need.cells))
    groups: dict[tuple[int, ...], int] = {}
    for cell in members(unknown):
        key = tuple(index for index, need in enumerate(needs) if need.cells >> cell & 1)
        groups[key] = groups.get(key, 0) | 1 << cell
    apart = groups.pop((), 0)
    ordered = [group for _, group in sorted(groups.items())]
    components = [[group for group in ordered if group & block] for block in blocks]
    return [*components, [apart]] if apart else components


def _tally(groups: list[int], needs: list[_Need], limit: int) -> _Tally:
    """Counts the placements in one component by their number of mines, group after group.

    Placements that leave the same numbers unsatisfied are merged, so the work grows with the open numbers,
    not with the placements.
    """
    touching = [[index for index, need in enumerate(needs) if need.cells & group] for group in groups]
    closing = [
        [index for index in numbers if not any(index in later for later in touching[place + 1 :])]
        for place, numbers in enumerate(touching)
    ]
    nothing_placed = {0: [1] + [0] * len(groups)}
    partial: dict[tuple[int, ...], _Tally] = {tuple(need.mines for need in needs): nothing_placed}
    for place, group in enumerate(groups):
        size = group.bit_count()
        extended: dict[tuple[int, ...], _Tally] = {}
        for counts, tally in partial.items():
            most = min([size, limit, *(counts[index] for index in touching[place])])
            for mines in range(most + 1):
                rest = list(counts)
                for index in touching[place]:
                    rest[index] -= mines
                if not any(rest[index] for index in closing[place]):
                    _extend(extended.setdefault(tuple(rest), {}), tally, place + 1, mines, comb(size, mines))
        partial = extended
    (tally,) = partial.values()  # every number is satisfied at the end: one key
    return {mines: row for mines, row in tally.items() if mines <= limit}


def _extend(target: _Tally, tally: _Tally, place: int, mines: int, ways: int) -> None:
    for before, row in tally.items():
        grown = [ways * value for value in row]
        grown[place] += mines * grown[0]
        known = target.get(before + mines)
        if known is not None:
            grown = [a + b for a, b in zip(known, grown, strict=True)]
        target[before + mines] = grown


def _convolve(left: dict[int, int], right: dict[int, int], limit: int) -> dict[int, int]:
    product: dict[int, int] = {}
    for a, ways_a in left.items():
        for b, ways_b in right.items():
            if a + b <= limit:
                product[a + b] = product.get(a + b, 0) + ways_a * ways_b
    return product
