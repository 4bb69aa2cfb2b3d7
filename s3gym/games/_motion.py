"""How pieces move on a wrapping board: the families of rules, and which of their rules explain a path.

A rule is a function of the past: ``step(cells, time, others)`` is the step that leaves ``cells[time]``, None where
the rule does not tell; ``others`` are the pieces that come before it, known up to that time at least.
The same functions make the paths of a game and explain them afterwards: what ``fitting`` finds is derived from the
steps seen, never searched for among all parameters. Nothing here knows of answers, rewards or texts.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from operator import eq
from typing import NamedTuple

Cell = tuple[int, int]
"""(row, column)"""
Step = tuple[int, int]
"""(rows, columns) of one move, -3 to 3 each."""

SIZE = 15
"""Rows and columns; odd, so that no two cells of a wrapping line are equally far apart both ways round."""
REACH = range(-3, 4)
STILL: Step = (0, 0)
STEPS: tuple[Step, ...] = tuple(step for step in product(REACH, REACH) if step != STILL)
KING_STEPS: tuple[Step, ...] = tuple(step for step in STEPS if max(map(abs, step)) == 1)
SHORTEST_HISTORY = 4
"""Fewer steps of a rotor may be those of a three-cycle."""
PATIENCE = 100
"""Pieces of one family drawn before another family is, and families before a configuration is called impossible."""

# Indexed by the difference of two coordinates, -14 to 14: the shorter way round, and its sign.
_SHORTER = (*range(SIZE // 2 + 1), *range(-(SIZE // 2), 0))
_TOWARDS = tuple((way > 0) - (way < 0) for way in _SHORTER)


class Path(NamedTuple):
    """Where a piece was and how it moved."""

    cells: tuple[Cell, ...]
    """From the oldest on."""
    steps: tuple[Step, ...]
    """One fewer than cells."""


def path_of(cells: Sequence[Cell]) -> Path:
    """The path through ``cells``, each step taken the shorter way round."""
    steps = [(_SHORTER[r - p], _SHORTER[c - q]) for (p, q), (r, c) in zip(cells, cells[1:], strict=False)]
    return Path(tuple(cells), tuple(steps))


def moved(cell: Cell, step: Step) -> Cell:
    """The cell a step leads to; beyond an edge the board goes on at the opposite one."""
    return (cell[0] + step[0]) % SIZE, (cell[1] + step[1]) % SIZE


def _reflected(place: int) -> int:
    """Where an endless straight line is once it is folded back at both edges."""
    place %= 2 * (SIZE - 1)
    return min(place, 2 * (SIZE - 1) - place)


# --- rules ---------------------------------------------------------------------------------------------------


class Cycle(NamedTuple):
    """The same steps over and over."""

    steps: tuple[Step, ...]

    def step(self, cells: Sequence[Cell], time: int, others: Sequence[Path]) -> Step | None:
        """By the number of steps made."""
        return self.steps[time % len(self.steps)]


class Bouncer(NamedTuple):
    """Straight on, reflected at the edges."""

    velocity: Step

    def step(self, cells: Sequence[Cell], time: int, others: Sequence[Path]) -> Step | None:
        """From the unfolded line, which starts in the first cell."""
        (row, column), (rows, columns), now = cells[0], self.velocity, cells[time]
        row, column = row + (time + 1) * rows, column + (time + 1) * columns
        return _reflected(row) - now[0], _reflected(column) - now[1]


class Ground(NamedTuple):
    """One of two steps, by the kind of cell it stands on."""

    kind: Callable[[Cell], int]
    steps: tuple[Step | None, Step | None]
    """For kind 0 and 1; None where nothing tells."""

    def step(self, cells: Sequence[Cell], time: int, others: Sequence[Path]) -> Step | None:
        """By the cell it stands on."""
        return self.steps[self.kind(cells[time])]


class Copycat(NamedTuple):
    """Does what another piece did a step earlier."""

    model: int
    form: Callable[[Step], Step]
    opening: Step
    """Its first step, when there is nothing to copy yet."""

    def step(self, cells: Sequence[Cell], time: int, others: Sequence[Path]) -> Step | None:
        """From the other's step before."""
        return self.form(others[self.model].steps[time - 1]) if time else self.opening


class Chaser(NamedTuple):
    """One king step towards another piece, the shorter way round, or away from it."""

    target: int
    sign: int
    """1 towards, -1 away."""

    def step(self, cells: Sequence[Cell], time: int, others: Sequence[Path]) -> Step | None:
        """From where both stand."""
        (row, column), (to_row, to_column) = cells[time], others[self.target].cells[time]
        return self.sign * _TOWARDS[to_row - row], self.sign * _TOWARDS[to_column - column]


Rule = Cycle | Bouncer | Ground | Copycat | Chaser


def colour(cell: Cell) -> int:
    """As on a chess board."""
    return (cell[0] + cell[1]) % 2


def half(cell: Cell) -> int:
    """0 for the upper seven rows, 1 for the lower eight."""
    return int(cell[0] >= SIZE // 2)


def _as_is(step: Step) -> Step:
    return step


def _negated(step: Step) -> Step:
    return -step[0], -step[1]


def _transposed(step: Step) -> Step:
    return step[1], step[0]


def _turning(step: Step, sense: int) -> Cycle:
    """A step turned by a quarter again and again; sense 1 or -1."""
    rows, columns = step
    return Cycle((step, (sense * columns, -sense * rows), (-rows, -columns), (-sense * columns, sense * rows)))


FORMS = (_as_is, _negated, _transposed)
SENSES = (1, -1)


# --- drawing -------------------------------------------------------------------------------------------------


def _two_cycle(rng: random.Random, others: int) -> Rule:
    return Cycle(tuple(rng.sample(STEPS, 2)))


def _three_cycle(rng: random.Random, others: int) -> Rule:
    return Cycle(tuple(rng.sample(STEPS, 3)))


def _rotor(rng: random.Random, others: int) -> Rule:
    return _turning(rng.choice(STEPS), rng.choice(SENSES))


def _accelerator(rng: random.Random, others: int) -> Rule:
    rows, columns = rng.choice(KING_STEPS)
    return Cycle(tuple((rows * length, columns * length) for length in rng.choice(((1, 2), (1, 2, 3)))))


def _bouncer(rng: random.Random, others: int) -> Rule:
    return Bouncer(rng.choice(STEPS))


def _by_colour(rng: random.Random, others: int) -> Rule:
    first, second = rng.sample(STEPS, 2)
    return Ground(colour, (first, second))


def _by_zone(rng: random.Random, others: int) -> Rule:
    first, second = rng.sample(STEPS, 2)
    return Ground(half, (first, second))


def _copycat(rng: random.Random, others: int) -> Rule:
    return Copycat(rng.randrange(others), rng.choice(FORMS), rng.choice(STEPS))


def _chaser(rng: random.Random, others: int) -> Rule:
    return Chaser(rng.randrange(others), rng.choice(SENSES))


FAMILIES: Mapping[str, Callable[[random.Random, int], Rule]] = {
    "two-cycle": _two_cycle,
    "three-cycle": _three_cycle,
    "rotor": _rotor,
    "accelerator": _accelerator,
    "bouncer": _bouncer,
    "colour": _by_colour,
    "zone": _by_zone,
    "copycat": _copycat,
    "chaser": _chaser,
}
"""Each draws a rule, given how many pieces come before."""
SOCIAL = ("copycat", "chaser")
"""Families that need a piece before."""


def trace(rule: Rule, start: Cell, others: Sequence[Path], length: int) -> Path | None:
    """The path of ``length`` steps; None when the piece would stand still on it."""
    cells, steps = [start], []
    for time in range(length):
        step = rule.step(cells, time, others)
        if step is None or step == STILL:
            return None
        cells.append(moved(cells[time], step))
        steps.append(step)
    return Path(tuple(cells), tuple(steps))


def draw_path(rng: random.Random, weights: Sequence[float], others: Sequence[Path], history: int, horizon: int) -> Path:
    """A path of history and horizon that never rests, and that no rule disputes which explains its history.

    The family is drawn first and kept, so that families which pass less often are not rarer for it; only where none
    of it is found is another drawn: what a chaser is after may never get away from it.

    Raises:
        ValueError: no such path was found.
    """
    taken = {other.cells[0] for other in others}
    for _ in range(PATIENCE):
        draw = rng.choices(list(FAMILIES.values()), weights)[0]
        for _ in range(PATIENCE):
            start = (rng.randrange(SIZE), rng.randrange(SIZE))
            path = None if start in taken else trace(draw(rng, len(others)), start, others, history + horizon)
            if path is not None and not is_disputed(path, others, history):
                return path
    raise ValueError(
        f"no piece found whose next {horizon} steps follow from {history} and that never stands still, expected one in "
        f"{PATIENCE**2:,}: set a longer history, a shorter horizon, or weight on other families"
    )


# --- explaining ----------------------------------------------------------------------------------------------


def fitting(path: Path, others: Sequence[Path]) -> Iterator[Rule]:
    """All rules of the families that explain every step of ``path``; the pieces in ``others`` come before it.

    ``others`` may be known for longer than ``path``; what they do later is not looked at. An accelerator is a cycle of
    two or three as well and is found as one.
    """
    cells, steps = path
    for length in (2, 3):
        if steps[length:] == steps[:-length] and len({*steps[:length]}) == length:
            yield Cycle(steps[:length])
    for sense in SENSES:
        turning = _turning(steps[0], sense)
        if steps[4:] == steps[:-4] and steps[:4] == turning.steps[: len(steps)]:
            yield turning
    rows, columns = (_speeds([cell[axis] for cell in cells]) for axis in (0, 1))
    for velocity in product(rows, columns):
        if velocity != STILL:
            yield Bouncer(velocity)
    for kind in (colour, half):
        found = {(kind(cell), step) for cell, step in zip(cells, steps, strict=False)}
        by_kind = dict(found)
        if len(by_kind) == len(found) and by_kind.get(0) != by_kind.get(1):
            yield Ground(kind, (by_kind.get(0), by_kind.get(1)))
    is_king = all(max(map(abs, step)) == 1 for step in steps)
    for index, other in enumerate(others):
        for form in FORMS:
            if all(map(eq, steps[1:], map(form, other.steps))):
                yield Copycat(index, form, steps[0])
        for sign in SENSES if is_king else ():
            if all(
                step == (sign * _TOWARDS[r - p], sign * _TOWARDS[c - q])
                for step, (p, q), (r, c) in zip(steps, cells, other.cells, strict=False)
            ):
                yield Chaser(index, sign)


def is_disputed(path: Path, others: Sequence[Path], history: int) -> bool:
    """Whether a rule that explains the first ``history`` steps does not foretell all the others."""
    known = Path(path.cells[: history + 1], path.steps[:history])
    return any(
        rule.step(path.cells, time, others) != path.steps[time]
        for rule in fitting(known, others)
        for time in range(history, len(path.steps))
    )


def _speeds(places: Sequence[int]) -> list[int]:
    """Speeds along one axis, reflected at the edges, that lead through all ``places``."""
    start = places[0]
    return [
        speed for speed in REACH if all(_reflected(start + time * speed) == place for time, place in enumerate(places))
    ]
