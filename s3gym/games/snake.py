"""Snake: 64 steps on a small walled board with obstacles and several apples at once.

Rules: the head moves one cell a step. Entering an apple eats it, grows the snake by one cell and brings a new
    apple while there is a free cell for it. A wall, an obstacle or the body is a collision; the cell the tail
    is just leaving is free. A snake longer than one cell cannot turn straight back.
Observation: step number, heading, the board with row and column numbers, and the body from head to tail.
Actions: ``LEFT``, ``RIGHT``, ``UP`` or ``DOWN``.
Verifier reward: apples eaten in the step, 0 or 1; the final score is their sum.
Episode end: in exploration only the horizon: a collision, turning back or an unreadable answer moves nothing
    and costs the step. In evaluation each of them ends the episode.
Instances and splits: obstacles (free cells connected, each with two free neighbours or more) and the order in
    which cells receive apples are drawn from the seed, some 10**40 instances. Both phases draw alike, from
    seeds of their own.
Version history: 1, first version; 2, an answer that is no direction is unparsable and the way straight back
    illegal, both no longer invalid.
Source: the mechanics of KORGym's game 24, with obstacles, with the tail's cell free to enter, and with
    unreadable answers told apart from collisions.
"""

import random
import re
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar, NamedTuple

from s3gym.games._grammar import word
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

OFFSETS = {"LEFT": (0, -1), "RIGHT": (0, 1), "UP": (-1, 0), "DOWN": (1, 0)}
"""(row, column) displacement of each action."""
DIRECTIONS = tuple(OFFSETS)
WALL, OBSTACLE, EMPTY, APPLE, HEAD, BODY, TAIL = "#X.AHST"

MOVED = "You moved."
ATE = "You ate an apple."
BLOCKED = "Blocked: nothing moved."
REVERSED = "A snake cannot turn straight back: nothing moved."
NO_DIRECTION = "Neither LEFT, RIGHT, UP nor DOWN: nothing moved."

MAX_LAYOUTS = 10_000
"""Obstacle layouts tried before a configuration is called impossible."""
SEARCH_BUDGET = 300
"""Positions the expert looks at before it calls a path a trap."""
SPARE_STEPS = 4
"""How much longer than its body the expert must be able to go on after an apple."""
NEXT_APPLE_WEIGHT = 0.3
"""What a step from one apple to the next counts, in steps to the first."""

Body = tuple[int, ...]
"""Cells from head to tail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnakeConfig(Config):
    """The board, and what a mistake costs."""

    horizon: int = 64
    size: int = 8
    """Rows and columns, the wall included; 6 to 10, so that a cell number is one digit."""
    apple_count: int = 3
    """Apples on the board at once, as far as they fit."""
    obstacle_count: int = 3
    collision_ends: bool
    """Whether a collision ends the episode instead of only costing the step."""

    def __post_init__(self) -> None:
        Config.__post_init__(self)
        for name in ("apple_count", "obstacle_count"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}, expected at least 0")
        if not 6 <= self.size <= 10:
            raise ValueError(f"size is {self.size}, expected 6 to 10: set another size")
        most = len(_inner(self.size)) // 4  # with more, not every seed finds a board without blind alleys
        if self.obstacle_count > most:
            raise ValueError(f"obstacle_count is {self.obstacle_count}, expected at most {most} on size {self.size}")


class Arena(NamedTuple):
    """What stays the same through an episode. A cell is ``row * size + column``."""

    ground: str
    """One glyph a cell: wall, obstacle or empty."""
    order: tuple[int, ...]
    """All free cells in the order in which they receive apples, again from the start after the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnakeState(State[SnakeConfig]):
    """One moment of an episode; ``arena.order`` and ``cursor`` are hidden."""

    arena: Arena
    heading: str
    body: Body
    apples: tuple[int, ...]
    cursor: int
    """Where in ``arena.order`` the search for the next apple's cell starts."""


class SnakeView(NamedTuple):
    """What the player knows; fields as in SnakeState and Arena."""

    step_index: int
    horizon: int
    size: int
    ground: str
    heading: str
    body: Body
    apples: tuple[int, ...]


# --- layout and movement ------------------------------------------------------------------------------------


@cache
def _strides(size: int) -> dict[str, int]:
    """Displacement of each action in cell numbers."""
    return {action: row * size + column for action, (row, column) in OFFSETS.items()}


@cache
def _names(size: int) -> tuple[str, ...]:
    return tuple(f"({row},{column})" for row in range(size) for column in range(size))


@cache
def _inner(size: int) -> tuple[int, ...]:
    """The cells inside the wall."""
    return tuple(row * size + column for row in range(1, size - 1) for column in range(1, size - 1))


def _start(size: int) -> int:
    """Cell of the head at reset: (4,3) on 8 x 8."""
    return size // 2 * size + size // 2 - 1


def _is_roomy(free: int, size: int) -> bool:
    """Whether the free cells (a bit mask) are connected and each touches two others at least."""
    # The wall all around keeps the shifts from carrying one row into the next.
    up, down, left, right = free >> size, free << size, free >> 1, free << 1
    if free & ~((up & down) | (left & right) | ((up | down) & (left | right))):
        return False
    flood, grown = 0, free & -free
    while flood != grown:
        flood = grown
        grown = (flood | flood >> size | flood << size | flood >> 1 | flood << 1) & free
    return flood == free


def _place_obstacles(config: SnakeConfig, rng: random.Random) -> set[int]:
    """Obstacle cells that leave the head, the cell ahead of it and a roomy board."""
    start = _start(config.size)
    candidates = [cell for cell in _inner(config.size) if cell not in (start, start - config.size)]
    inside = sum(1 << cell for cell in _inner(config.size))
    for _ in range(MAX_LAYOUTS if config.obstacle_count <= len(candidates) else 0):
        obstacles = rng.sample(candidates, config.obstacle_count)
        if _is_roomy(inside ^ sum(1 << cell for cell in obstacles), config.size):
            return set(obstacles)
    raise ValueError(
        f"no layout with {config.obstacle_count} obstacles found on {config.size} x {config.size}, "
        "expected a connected board without blind alleys: set fewer obstacles or a larger size"
    )


def _refill(
    order: tuple[int, ...], cursor: int, body: Body, apples: tuple[int, ...], count: int
) -> tuple[tuple[int, ...], int]:
    """Apples brought up to ``count``, each on the next free cell of the order, and the new cursor."""
    for _ in range(len(order)):  # one round finds every free cell there is
        if len(apples) >= count:
            break
        cell = order[cursor]
        cursor = (cursor + 1) % len(order)
        if cell not in body and cell not in apples:
            apples = (*apples, cell)
    return apples, cursor


# --- players ------------------------------------------------------------------------------------------------


def _random(view: SnakeView, rng: random.Random) -> Move:
    return Move(rng.choice(DIRECTIONS), None)


def _careful(view: SnakeView, rng: random.Random) -> Move:
    safe = _safe_cells(view.ground, view.size, view.body)
    names = [action for action, stride in _strides(view.size).items() if view.body[0] + stride in safe]
    return Move(rng.choice(names or [view.heading]), None)


def _expert(view: SnakeView, rng: random.Random) -> Move:
    """To an apple that is near and has the next one near, if life goes on afterwards; else after the tail."""
    ground, size, apples = view.ground, view.size, view.apples
    paths = _paths(ground, size, view.body)
    plans: list[tuple[float, int, Body]] = []
    for apple in apples:
        if apple in paths:
            body = _after(view.body, paths[apple], apples)
            onward = _paths(ground, size, body)
            lengths = [len(onward[cell]) for cell in apples if cell in onward and cell not in paths[apple]]
            cost = len(paths[apple]) + NEXT_APPLE_WEIGHT * min(lengths, default=size)
            plans.append((cost, paths[apple][0], body))
    for _, cell, body in sorted(plans):
        if _survives(ground, size, body, apples):
            return _enter(view, cell)
    safe = _safe_cells(ground, size, view.body)
    return _enter(view, max(safe, key=lambda cell: _refuge(view, cell))) if safe else Move(view.heading, 0.0)


def _enter(view: SnakeView, cell: int) -> Move:
    stride = cell - view.body[0]
    action = next(name for name, length in _strides(view.size).items() if length == stride)
    return Move(action, 1.0 if cell in view.apples else 0.0)


def _refuge(view: SnakeView, cell: int) -> tuple[bool, int]:
    """How good a cell is when no apple can be had: life goes on, and the way to the tail is long."""
    body = _after(view.body, (cell,), view.apples)
    to_tail = _paths(view.ground, view.size, body).get(body[-1], ())
    return _survives(view.ground, view.size, body, view.apples), len(to_tail)


def _safe_cells(ground: str, size: int, body: Body) -> list[int]:
    """Cells the head of ``body`` can enter next."""
    kept = body[: max(2, len(body) - 1)]  # the tail moves away, but a snake of two still cannot turn back
    near = [body[0] + stride for stride in _strides(size).values()]
    return [cell for cell in near if ground[cell] == EMPTY and cell not in kept]


def _paths(ground: str, size: int, body: Body) -> dict[int, tuple[int, ...]]:
    """Shortest path to each cell the head can reach, counting on the body to move on meanwhile."""
    free_at = {cell: len(body) - index for index, cell in enumerate(body)}
    paths: dict[int, tuple[int, ...]] = {cell: (cell,) for cell in _safe_cells(ground, size, body)}
    queue = deque(paths)
    while queue:
        path = paths[queue.popleft()]
        for stride in _strides(size).values():
            cell = path[-1] + stride
            if cell not in paths and ground[cell] == EMPTY and free_at.get(cell, 0) <= len(path) + 1:
                paths[cell] = (*path, cell)
                queue.append(cell)
    return paths


def _after(body: Body, path: tuple[int, ...], apples: tuple[int, ...]) -> Body:
    """The body once the head has gone along ``path``."""
    eaten = sum(cell in apples for cell in path)
    return (*path[::-1], *body)[: len(body) + eaten]


def _survives(ground: str, size: int, body: Body, apples: tuple[int, ...]) -> bool:
    """Whether a depth-first search finds a way to live for the length of the body and some steps more."""
    budget = SEARCH_BUDGET

    def search(body: Body, depth: int) -> bool:
        nonlocal budget
        budget -= 1
        if depth == 0 or budget < 0:
            return depth == 0
        return any(search(_after(body, (cell,), apples), depth - 1) for cell in _safe_cells(ground, size, body))

    return search((*body, body[-1]), len(body) + SPARE_STEPS)  # as if an unseen apple had made it one longer


# --- a learner's eyes ---------------------------------------------------------------------------------------

Cell = tuple[int, int]
"""(row, column)"""
COMPASS = {"N": (-1, 0), "S": (1, 0), "W": (0, -1), "E": (0, 1)}
NECK = "neck"
_ROW = re.compile(r"^\d((?: [#X.AHST])+)$", re.MULTILINE)
_BODY = re.compile(r"^Body, head to tail:((?: \(\d,\d\))+)$", re.MULTILINE)


class Board(NamedTuple):
    """What can be read from an observation."""

    rows: tuple[str, ...]
    body: tuple[Cell, ...]

    def glyph(self, cell: Cell) -> str:
        """What stands in a cell; the cell behind the head, where rules forbid to go, is ``neck``."""
        return NECK if cell in self.body[1:2] else self.rows[cell[0]][cell[1]]

    def next_to(self, cell: Cell, step: Cell) -> Cell:
        """The cell one step on, or ``cell`` itself at the edge."""
        row, column = cell[0] + step[0], cell[1] + step[1]
        return (row, column) if 0 <= row < len(self.rows) and 0 <= column < len(self.rows) else cell


class SnakeReader(Reader):
    """Reads the board; learns what each word does to the head and which glyphs stop it."""

    def actions(self, observation: str) -> list[str]:
        """The four words."""
        return [*DIRECTIONS]

    def facts(self, before: str, action: str, after: str) -> Iterable[Fact]:
        """Where the head went and through what; or, when it stayed, what stood around it."""
        old, new = _read(before), _read(after)
        if old is None or new is None or action not in DIRECTIONS:
            return []
        if not is_next_step(before, after) or _fixed(old) != _fixed(new):
            return []
        head = old.body[0]
        if new.body == old.body:
            around = " ".join(f"{name}={old.glyph(old.next_to(head, step))}" for name, step in COMPASS.items())
            return [(f"beside {around}", action, "stayed")]
        row, column = new.body[0][0] - head[0], new.body[0][1] - head[1]
        if (row, column) not in COMPASS.values() or new.body[1:] not in (old.body, old.body[:-1]):
            return []
        return [("move", action, f"{row},{column}"), (f"enter {old.glyph(new.body[0])}", "*", "free")]

    def choose(self, observation: str, facts: Facts, rng: random.Random) -> Move:
        """The shortest way to an apple by words of known effect; without one, anything not known to fail."""
        board = _read(observation)
        if board is None:
            return Move(rng.choice(DIRECTIONS), None)
        steps = _known_steps(facts)
        barriers = _known_barriers(facts, steps)
        ahead = {action: board.next_to(board.body[0], step) for action, step in steps.items()}
        hopeful = {action: cell for action, cell in ahead.items() if board.glyph(cell) not in barriers}
        distances = {
            action: distance
            for action, cell in hopeful.items()
            if (distance := _distance(board, cell, steps, barriers)) is not None
        }
        if distances:
            names = [action for action in distances if distances[action] == min(distances.values())]
        else:
            names = [action for action in DIRECTIONS if action in hopeful or action not in steps]
        action = rng.choice(names or DIRECTIONS)
        if action not in steps:
            return Move(action, None)
        return Move(action, 1.0 if board.glyph(ahead[action]) == APPLE else 0.0)

    def glance(self, observation: str, action: str) -> float:
        """1 when an apple lies right where the word points in plain English."""
        board = _read(observation)
        if board is None or action not in OFFSETS:
            return 0.0
        return 1.0 if board.glyph(board.next_to(board.body[0], OFFSETS[action])) == APPLE else 0.0


def _read(text: str) -> Board | None:
    rows = tuple(row.replace(" ", "") for row in _ROW.findall(text))
    body = _BODY.search(text)
    if body is None or not rows or any(len(row) != len(rows) for row in rows):
        return None
    cells = tuple((int(name[1]), int(name[3])) for name in body[1].split())
    return Board(rows, cells) if max(map(max, cells)) < len(rows) else None


def _fixed(board: Board) -> list[str]:
    """The rows without what moves."""
    return [re.sub(f"[^{WALL}{OBSTACLE}]", EMPTY, row) for row in board.rows]


def _known_steps(facts: Facts) -> dict[str, Cell]:
    """Displacement of each word, as most often seen."""
    steps = {}
    for action in DIRECTIONS:
        seen = facts.get(("move", action))
        if seen:
            row, column = max(seen, key=lambda outcome: seen[outcome]).split(",")
            steps[action] = (int(row), int(column))
    return steps


def _known_barriers(facts: Facts, steps: Mapping[str, Cell]) -> set[str]:
    """Glyphs that stopped the head more often than they let it pass; the rules name the neck as one."""
    stopped: Counter[str] = Counter()
    for (situation, action), seen in facts.items():
        if situation.startswith("beside ") and action in steps:
            around = dict(part.split("=") for part in situation.split()[1:])
            side = next(name for name, step in COMPASS.items() if step == steps[action])
            stopped[around[side]] += sum(seen.values())
    passed = {glyph: sum(facts.get((f"enter {glyph}", "*"), {}).values()) for glyph in stopped}
    return {NECK, *(glyph for glyph in stopped if stopped[glyph] > passed[glyph])}


def _distance(board: Board, start: Cell, steps: Mapping[str, Cell], barriers: set[str]) -> int | None:
    """Steps from ``start`` to the nearest apple; None when there is no way."""
    distances = {start: 0}
    queue = deque([start])
    while queue:
        here = queue.popleft()
        if board.glyph(here) == APPLE:
            return distances[here]
        for step in steps.values():
            cell = board.next_to(here, step)
            if cell not in distances and board.glyph(cell) not in barriers:
                distances[cell] = distances[here] + 1
                queue.append(cell)
    return None


# --- the game -----------------------------------------------------------------------------------------------


class Snake(Game[SnakeConfig, SnakeState, SnakeView]):
    """See the card at the top of the file."""

    id = "snake"
    VERSION = 2
    unit = "apples"
    exploration = SnakeConfig(collision_ends=False)
    evaluation = SnakeConfig(collision_ends=True, unusable_ends=True)
    success_score = 8.0
    players: ClassVar[Mapping[str, Player]] = {"random": _random, "expert": _expert, "careful": _careful}
    reader = SnakeReader()
    palette: ClassVar[Mapping[str, str]] = {
        r"(?m)^  [ \d]+$|^\d(?= )": "dim",
        r"(?m)(?<= )[#X.](?= |$)": "dim",
        r"\bA\b": "bold red",
        r"\b[ST]\b": "green",
        r"\bH\b": "bold green",
    }

    def reset(self, config: SnakeConfig, seed: int) -> SnakeState:
        """A snake of one cell that looks up, obstacles, and the first apples."""
        rng = stream(seed, "layout")
        obstacles = _place_obstacles(config, rng)
        order = [cell for cell in _inner(config.size) if cell not in obstacles]
        rng.shuffle(order)
        inside = {*order}
        ground = "".join(
            EMPTY if cell in inside else OBSTACLE if cell in obstacles else WALL for cell in range(config.size**2)
        )
        arena = Arena(ground, tuple(order))
        body = (_start(config.size),)
        apples, cursor = _refill(arena.order, 0, body, (), config.apple_count)
        return SnakeState(config=config, arena=arena, heading="UP", body=body, apples=apples, cursor=cursor)

    def view(self, state: SnakeState) -> SnakeView:
        """Everything but where the next apples will be."""
        config = state.config
        ground = state.arena.ground
        return SnakeView(state.step_index, config.horizon, config.size, ground, state.heading, state.body, state.apples)

    def render(self, view: SnakeView) -> str:
        """Step, heading, the numbered board and the body."""
        size, body = view.size, view.body
        glyphs = list(view.ground)
        for cell in view.apples:
            glyphs[cell] = APPLE
        for cell in body:
            glyphs[cell] = BODY
        glyphs[body[-1]] = TAIL
        glyphs[body[0]] = HEAD
        rows = [f"{row} {' '.join(glyphs[row * size : row * size + size])}" for row in range(size)]
        names = _names(size)
        return (
            f"{numbered(view.step_index, view.horizon)}. Heading: {view.heading}.\n"
            f"  {' '.join('0123456789'[:size])}\n" + "\n".join(rows) + "\n"
            f"Body, head to tail: {' '.join([names[cell] for cell in body])}"
        )

    def rules(self, config: SnakeConfig) -> str:
        """Board, glyphs, movement, and what a mistake costs here."""
        size, last = config.size, config.size - 1
        collision = _told(config.collision_ends)
        unusable = _told(config.unusable_ends)
        return (
            f"Snake: you steer a snake for at most {config.horizon} steps on a board of {size} x {size} "
            f"cells. A cell is written (row,column); rows 0 to {last} run top to bottom, columns 0 to {last} "
            "from left to right.\n"
            "Glyphs: # wall, X obstacle, . empty, A apple, H head, S body, T tail (a single cell is an H).\n"
            "In each step the head moves one cell and the body follows: UP is row - 1, DOWN row + 1, LEFT "
            "column - 1, RIGHT column + 1. Entering an apple eats it: the snake grows by one cell, and a new "
            f"apple appears on a free cell. There are {config.apple_count} apples at a time, fewer only "
            "where none fits.\n"
            "Entering a wall, an obstacle or the body is a collision; the cell the tail is just leaving may "
            "be entered. Once the snake is longer than one cell it cannot turn straight back.\n"
            f"A collision {collision}. Turning straight back or an answer that is no direction {unusable}.\n"
            "The score of the episode is the number of apples eaten. The reward of a step is 1 when an apple "
            "is eaten in it, else 0.\n"
            "Action: LEFT, RIGHT, UP or DOWN."
        )

    def parse(self, text: str, view: SnakeView) -> Parsed:
        """One of the four words, in any case; the way straight back is illegal."""
        action = word(text, DIRECTIONS)
        if action is None:
            return Parsed("unparsable", None, NO_DIRECTION)
        body = view.body
        if len(body) > 1 and body[0] + _strides(view.size)[action] == body[1]:
            return Parsed("illegal", None, REVERSED)
        return Parsed.of(text, action)

    def step(self, state: SnakeState, action: str) -> Outcome:
        """Moves, eats or collides."""
        config, arena, body, apples, cursor = state.config, state.arena, state.body, state.apples, state.cursor
        step_index = state.step_index + 1
        head = body[0] + _strides(config.size)[action]
        is_eaten = head in apples
        rest = body if is_eaten else body[:-1]  # the tail leaves its cell before the head arrives
        if arena.ground[head] != EMPTY or head in rest:
            end_reason = "collision" if config.collision_ends else None
            return Outcome(replace(state, step_index=step_index, end_reason=end_reason), 0.0, BLOCKED)
        body = (head, *rest)
        if is_eaten:
            apples = tuple(cell for cell in apples if cell != head)
            apples, cursor = _refill(arena.order, cursor, body, apples, config.apple_count)
        after = SnakeState(
            config=config,
            step_index=step_index,
            arena=arena,
            heading=action,
            body=body,
            apples=apples,
            cursor=cursor,
        )
        return Outcome(after, float(is_eaten), ATE if is_eaten else MOVED)

    def layout(self, state: SnakeState) -> str:
        """The ground and the order of apples, from which the rest of the start follows."""
        ground, order = state.arena
        return f"{ground} {state.config.apple_count} {' '.join(map(str, order))}"

    def reward_range(self, config: SnakeConfig) -> tuple[float, float]:
        """No apple or one."""
        return 0.0, 1.0

    def smallest_positive_score(self, config: SnakeConfig) -> float:
        """One apple."""
        return 1.0


def _told(ends: bool) -> str:
    return "ends the episode" if ends else "moves nothing and uses the step up"


GAME = Snake()
