"""Nullify's arithmetic on the grid its boards are made on, and the search for a way to exactly 0.

Values are whole numbers of ten-thousandths, at most ``LIMIT`` in size; what does not fit is no result here. Numbers of
the game itself are fractions and elsewhere. The search finds chains only: one number that takes in every other unit in
turn, which is how boards are made. ``None`` does not prove that a board has no way to 0.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from math import isqrt
from typing import Any, NamedTuple

NUMBER, TIMES, OVER = "number", "*", "/"
FLOOR, CEIL, SQRT, SQUARE, RECIPROCAL = FUNCTIONS = ("floor", "ceil", "sqrt", "square", "reciprocal")

SCALE = 10_000
"""Ten-thousandths in 1."""
LIMIT = 10_000 * SCALE
"""Largest size of a value on the way from the start of a board to 0."""
CENT = SCALE // 100
"""The least that floor and ceil take away or add, so that they are never trivial."""
ADDEND_MAX = 10
"""Largest size of a whole number that a board is made with."""
BUDGET = 60_000
"""Positions the search looks at before it gives up; evaluation boards need 2,600 on average, 40,000 at most."""

Piece = tuple[str, int]
"""(kind, amount): a number in ten-thousandths, the factor of ``*`` or ``/``, or 0."""
Span = tuple[int, int]
"""Lowest and highest of a range of values."""
_Reached = tuple[int, int]
"""(mask of the units used, value): a start of a chain."""
_Wanted = tuple[int, int, int]
"""(mask of the units used, lowest, highest value): an end of a chain, and what leads through it to 0."""


def result(piece: Piece, value: int) -> int | None:
    """``value`` joined with ``piece``; None where that leaves the grid, is not allowed, or is trivial."""
    kind, amount = piece
    if kind == NUMBER:
        joined = value + amount
    elif kind == TIMES:
        joined = value * amount
    elif kind == OVER:
        joined, rest = divmod(value, amount)
        if rest:
            return None
    elif kind in (FLOOR, CEIL):
        rest = value % SCALE
        if not rest:
            return None
        joined = value - rest if kind == FLOOR else value - rest + SCALE
    elif kind == SQRT:
        joined = isqrt(max(value, 0) * SCALE)
        if joined * joined != value * SCALE:
            return None
    elif kind == SQUARE:
        joined, rest = divmod(value * value, SCALE)
        if rest:
            return None
    else:
        joined, rest = divmod(SCALE * SCALE, value) if value else (0, 1)
        if rest:
            return None
    return joined if -LIMIT <= joined <= LIMIT else None


def sources(piece: Piece, low: int, high: int) -> list[Span]:
    """The ranges of values that ``piece`` takes into ``low..high``."""
    kind, amount = piece
    if kind == NUMBER:
        spans = [(low - amount, high - amount)]
    elif kind == TIMES:
        low, high = (low, high) if amount > 0 else (-high, -low)
        spans = [(_up(low, abs(amount)), high // abs(amount))]
    elif kind == OVER:
        spans = [(low * amount, high * amount) if amount > 0 else (high * amount, low * amount)]
    elif kind == FLOOR:
        spans = [(_up(low, SCALE) * SCALE + CENT, high // SCALE * SCALE + SCALE - CENT)]
    elif kind == CEIL:
        spans = [(_up(low, SCALE) * SCALE - SCALE + CENT, high // SCALE * SCALE - CENT)]
    elif high < 0 and kind != RECIPROCAL:
        spans = []
    elif kind == SQRT:
        low = max(low, 0)
        spans = [(_up(low * low, SCALE), high * high // SCALE)]
    elif kind == SQUARE:
        least, most = isqrt(max(low * SCALE - 1, 0)) + (low > 0), isqrt(high * SCALE)
        spans = [(least, most), (-most, -least)]
    else:
        square = SCALE * SCALE
        spans = [(_up(square, high), square // max(low, 1))] if high > 0 else []
        if low < 0:
            spans.append((_up(square, min(high, -1)), square // low))
    return [(max(least, -LIMIT), min(most, LIMIT)) for least, most in spans if _is_some(least, most)]


def _up(value: int, divisor: int) -> int:
    """The quotient rounded up."""
    return -(-value // divisor)


def _is_some(low: int, high: int) -> bool:
    return low <= high and low <= LIMIT and high >= -LIMIT


# --- the search ---------------------------------------------------------------------------------------------


class _Join(NamedTuple):
    """One step of a chain: a unit, or ``floor`` or ``ceil`` with the fraction that is added after it.

    A board is made so that fractions are only added there, which keeps chains few.
    """

    piece: Piece
    added: int
    units: tuple[int, ...]
    mask: int
    before: int
    """Units of the same kind and amount that are used up earlier: of equal units the first goes first."""
    after: int
    """Those used later."""


class _Trail(NamedTuple):
    """How a position came about: from which other, by which join (-1 at an end of the chain), using which units."""

    origin: tuple[int, ...] | None
    join: int
    units: tuple[int, ...]


@lru_cache(maxsize=1024)
def find_chain(pieces: tuple[Piece, ...]) -> tuple[int, ...] | None:
    """Indices of the number to start with and of all other units in the order in which it takes them in to reach 0.

    Chains are grown from their starts (values) and from 0 (ranges of values) until the two meet.
    """
    starts, joins = _starts_and_joins(pieces)
    everything = (1 << len(pieces)) - 1
    reached: dict[_Reached, _Trail] = {}
    for units in starts:
        value = sum(pieces[unit][1] for unit in units)
        reached.setdefault((_mask(units), value), _Trail(None, -1, units))
    wanted: dict[_Wanted, _Trail] = {(0, 0, 0): _Trail(None, -1, ())}
    fore, back = list(reached), list(wanted)
    values: dict[int, list[int]] = {}
    spans: dict[int, list[Span]] = {0: [(0, 0)]}
    for mask, value in fore:
        values.setdefault(mask, []).append(value)
    while fore and back and len(reached) + len(wanted) <= BUDGET:
        if len(fore) <= len(back):
            fore = list(_grow_fore(fore, reached, joins, everything))
            for mask, value in fore:
                values.setdefault(mask, []).append(value)
                for low, high in spans.get(everything ^ mask, ()):
                    if low <= value <= high:
                        chain = _chain(reached, (mask, value), wanted, (everything ^ mask, low, high))
                        if _is_exact(pieces, chain):
                            return chain
        else:
            back = list(_grow_back(back, wanted, joins))
            for mask, low, high in back:
                spans.setdefault(mask, []).append((low, high))
                for value in values.get(everything ^ mask, ()):
                    if low <= value <= high:
                        chain = _chain(reached, (everything ^ mask, value), wanted, (mask, low, high))
                        if _is_exact(pieces, chain):
                            return chain
    return None


def _starts_and_joins(pieces: Sequence[Piece]) -> tuple[list[tuple[int, ...]], list[_Join]]:
    """What a chain may start with, and its possible steps.

    A board is made with small whole numbers and with the fractions at floor and ceil, so any other number is its start.
    """
    numbers = [index for index, (kind, _) in enumerate(pieces) if kind == NUMBER]
    odd = [index for index in numbers if not _is_addend(pieces[index][1])]
    fractions = [index for index in numbers if pieces[index][1] % SCALE and index not in odd]
    before, after = _equals(pieces)
    joins = []
    for index, piece in enumerate(pieces):
        if index not in odd and index not in fractions:
            joins.append(_Join(piece, 0, (index,), 1 << index, before[index], after[index]))
        for other in fractions if piece[0] in (FLOOR, CEIL) else ():
            added = pieces[other][1]
            if (added > 0) == (piece[0] == FLOOR):
                both = (index, other)
                earlier, later = before[index] | before[other], after[index] | after[other]
                joins.append(_Join(piece, added, both, _mask(both), earlier, later))
    first = [index for index in (odd or numbers) if not before[index]]
    # a chain that is under way may have passed its floor or ceil already
    begun = [(index, other) for index in first for other in fractions if index != other and not before[other]]
    return ([*((index,) for index in first), *begun], joins) if len(odd) <= 1 else ([], [])


def _is_addend(amount: int) -> bool:
    return abs(amount) < SCALE or (amount % SCALE == 0 and abs(amount) <= ADDEND_MAX * SCALE)


def _equals(pieces: Sequence[Piece]) -> tuple[list[int], list[int]]:
    """For each unit the masks of the last one before it and the next one after it with the same kind and amount."""
    before, after = [0] * len(pieces), [0] * len(pieces)
    last: dict[Piece, int] = {}
    for index, piece in enumerate(pieces):
        if piece in last:
            before[index], after[last[piece]] = 1 << last[piece], 1 << index
        last[piece] = index
    return before, after


def _mask(units: Sequence[int]) -> int:
    return sum(1 << unit for unit in units)


def _grow_fore(
    fore: list[_Reached], reached: dict[_Reached, _Trail], joins: list[_Join], everything: int
) -> Iterator[_Reached]:
    """The new starts of chains that are one step longer."""
    for origin in fore:
        mask, value = origin
        last = reached[origin].join
        for number, join in enumerate(joins):
            if mask & join.mask or join.before & ~mask or (number < last and _commute(joins[last], join)):
                continue
            joined = result(join.piece, value)
            if joined is None:
                continue
            position = (mask | join.mask, joined + join.added)
            # a sum of 0 would vanish, and what else is 0 only passes on the same problem
            if position not in reached and (position[1] or position[0] == everything):
                reached[position] = _Trail(origin, number, join.units)
                yield position


def _grow_back(back: list[_Wanted], wanted: dict[_Wanted, _Trail], joins: list[_Join]) -> Iterator[_Wanted]:
    """The new ends of chains that are one step longer."""
    for origin in back:
        mask, low, high = origin
        last = wanted[origin].join
        for number, join in enumerate(joins):
            if mask & join.mask or join.after & ~mask or (number > last >= 0 and _commute(joins[last], join)):
                continue
            for least, most in sources(join.piece, low - join.added, high - join.added):
                position = (mask | join.mask, least, most)
                if position not in wanted and (least or most):
                    wanted[position] = _Trail(origin, number, join.units)
                    yield position


def _commute(one: _Join, other: _Join) -> bool:
    """Whether neighbours in a chain may change places, so that one order of them is enough."""
    return one.piece[0] == other.piece[0] in (NUMBER, TIMES, OVER)


def _chain(
    reached: dict[_Reached, _Trail], start: _Reached, wanted: dict[_Wanted, _Trail], end: _Wanted
) -> tuple[int, ...]:
    """The units of a start and an end that meet, in order."""
    first = [trail.units for trail in _trails(reached, start)]
    rest = [trail.units for trail in _trails(wanted, end)]
    return tuple(unit for units in [*reversed(first), *rest] for unit in units)


def _is_exact(pieces: Sequence[Piece], chain: tuple[int, ...]) -> bool:
    """Whether all values along ``chain`` are on the grid: ranges hold others too, from which no search could go on."""
    value: int | None = pieces[chain[0]][1]
    for unit in chain[1:]:
        value = None if value is None else result(pieces[unit], value)
    return value == 0


def _trails(found: Mapping[Any, _Trail], position: tuple[int, ...] | None) -> Iterator[_Trail]:
    while position is not None:
        trail = found[position]
        yield trail
        position = trail.origin
