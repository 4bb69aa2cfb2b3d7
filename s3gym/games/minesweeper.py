"""Minesweeper on 9 x 9 cells: find the mines from the numbers around them.

Rules: uncovering a safe cell shows how many of its neighbours are mines; a 0 opens its neighbours as well.
    Flags are the player's claims. The first uncovered cell is safe: a mine there moves away.
Observation: step of horizon, mines in all, flags used, extra lives left, and the board with headers: ``?``
    unknown, digits, ``F`` flag, ``X`` exploded mine (after a death every mine without a flag).
Actions: ``uncover (row,column)``, ``flag (row,column)``, ``unflag (row,column)``, counted from 0.
Verifier reward: change of (right flags / mines). When the last safe cell opens, the mines that neither
    exploded nor carry a flag are credited in that step. The final score is the sum, 0 to 1.
Episode end: a mine without a life left, all safe cells open, or exactly the unexploded mines flagged.
    Exploration has two extra lives, evaluation none. An unusable answer costs the step.
Instances and splits: mines uniform in 10..20 and placed uniformly, so two seeds practically never meet.
Version history: 1, first version; 2, an action may stand in brackets.
Source: KORGym's game 38, with the classic flood, no score shown and a protected first cell.
"""

import random
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

from s3gym.games._grammar import CELL, tidy, whole
from s3gym.games._mines import (
    CELLS,
    EXPLODED,
    FLAG,
    NEAR,
    SIZE,
    UNKNOWN,
    certain,
    flood,
    mask,
    members,
    mine_chances,
    put,
    showing,
)
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

UNCOVER_VERB, FLAG_VERB, UNFLAG_VERB = "uncover", "flag", "unflag"
OPEN = frozenset("012345678")

_ACTION = re.compile(rf"(?P<verb>uncover|flag|unflag) ?{CELL}", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class MinesweeperConfig(Config):
    """How many mines there may be, and what a mistake costs."""

    horizon: int = 64
    mines_min: int = 10
    mines_max: int = 20
    extra_lives: int = 0
    """Mines that may explode without ending the episode."""
    is_first_safe: bool = True
    """A mine under the first uncovered cell moves away."""

    def __post_init__(self) -> None:
        Config.__post_init__(self)
        if self.extra_lives < 0:
            raise ValueError(f"extra_lives={self.extra_lives}: expected 0 or more")
        if not 1 <= self.mines_min <= self.mines_max <= CELLS // 2:
            raise ValueError(
                f"mines_min={self.mines_min}, mines_max={self.mines_max}: expected 1 <= mines_min <= "
                f"mines_max <= {CELLS // 2}; change one of them."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class MinesweeperState(State[MinesweeperConfig]):
    """The episode so far; ``mines``, ``spares`` and ``right`` are hidden."""

    mines: int
    """Mask of the mines, exploded ones included."""
    spares: tuple[int, ...]
    """Safe cells in the order in which they may take the mine under the first uncovered cell."""
    board: str
    """What the player sees, one glyph a cell."""
    lives: int
    """Extra lives left."""
    right: int = 0
    """Mines that count for the score: flagged ones, and those credited at the end."""


class MinesweeperView(NamedTuple):
    """What the player knows."""

    step_index: int
    horizon: int
    mine_count: int
    lives: int
    board: str


# --- players ------------------------------------------------------------------------------------------------


def _name(verb: str, cell: int) -> str:
    return f"{verb} ({cell // SIZE},{cell % SIZE})"


def _random(view: MinesweeperView, rng: random.Random) -> Move:
    """A uniform verb among those that are possible, then a uniform cell for it."""
    unknown, flagged = showing(view.board, UNKNOWN), showing(view.board, FLAG)
    options = {
        UNCOVER_VERB: unknown,
        FLAG_VERB: unknown if len(flagged) < view.mine_count else [],
        UNFLAG_VERB: flagged,
    }
    verb = rng.choice([verb for verb, cells in options.items() if cells])
    return Move(_name(verb, rng.choice(options[verb])), None)


def _flagger(view: MinesweeperView, rng: random.Random) -> Move:
    """Flags random cells and never uncovers; with all flags used its further flags are refused."""
    return Move(_name(FLAG_VERB, rng.choice(showing(view.board, UNKNOWN))), None)


def _expert(view: MinesweeperView, rng: random.Random) -> Move:
    """Flags what is certainly a mine, opens what is certainly safe, else opens the least risky cell."""
    unmarked = view.board.replace(FLAG, UNKNOWN)
    move = _certain(view, certain(unmarked))
    if move is None:
        chances = mine_chances(unmarked, view.mine_count)
        move = _certain(view, chances) or _guess(view, chances)
    return move


def _certain(view: MinesweeperView, chances: Mapping[int, float]) -> Move | None:
    for cell, chance in chances.items():
        if view.board[cell] == UNKNOWN and chance == 1 and view.board.count(FLAG) < view.mine_count:
            return Move(_name(FLAG_VERB, cell), 1 / view.mine_count)
    for cell, chance in chances.items():
        if chance == 0:
            if view.board[cell] == FLAG:
                return Move(_name(UNFLAG_VERB, cell), 0.0)
            return Move(_name(UNCOVER_VERB, cell), _worth(view, cell, is_safe=True))
    return None


def _guess(view: MinesweeperView, chances: Mapping[int, float]) -> Move:
    """Opens the least risky cell, corners before edges on ties."""

    def order(cell: int) -> tuple[bool, float, int, int]:
        return view.board[cell] == FLAG, round(chances[cell], 12), len(NEAR[cell]), cell

    cell = min(chances, key=order)
    if view.board[cell] == FLAG:
        return Move(_name(UNFLAG_VERB, cell), 0.0)
    return Move(_name(UNCOVER_VERB, cell), _worth(view, cell, is_safe=False))


LUCK_LIMIT = 48
"""More safe cells than this are not opened by the one last flood (34 is the most seen in 20,000 episodes)."""


def _worth(view: MinesweeperView, cell: int, *, is_safe: bool) -> float | None:
    """Reward of uncovering ``cell``: the credit for the last safe cell, else 0; None where only luck can tell.

    Luck tells when the last safe cell is a guess, and when the flood of a 0 may open all that is left.
    """
    flags, exploded = view.board.count(FLAG), view.board.count(EXPLODED)
    left = view.board.count(UNKNOWN) + flags + exploded - view.mine_count
    if left == 1 and is_safe:
        return (view.mine_count - flags - exploded) / view.mine_count
    return None if left <= LUCK_LIMIT and left <= len(_within_flood(view.board, cell)) else 0.0


def _within_flood(board: str, cell: int) -> set[int]:
    """The unknown cells a flood from ``cell`` opens at most: a cell beside a flag or an exploded mine is no 0."""
    reached, waiting = {cell}, [cell]
    while waiting:
        near = NEAR[waiting.pop()]
        if not any(board[other] in (FLAG, EXPLODED) for other in near):
            new = [other for other in near if board[other] == UNKNOWN and other not in reached]
            reached.update(new)
            waiting += new
    return reached


# --- a learner's eyes ---------------------------------------------------------------------------------------

PRIOR = 0.2
"""Chance of a mine where nothing is known; about the stated density."""
SURE, SEEN_ENOUGH = 0.9, 3
"""A cell is flagged from this chance, estimated from at least so many cases."""


class MinesweeperReader(Reader):
    """Reads the board; learns how often a cell is a mine by what the numbers beside it still need."""

    def actions(self, observation: str) -> list[str]:
        """Every unknown cell uncovered or flagged; flags taken off where nothing else is left."""
        seen = _read(observation)
        unknown = showing(seen.board, UNKNOWN)
        verbs = [UNCOVER_VERB, FLAG_VERB] if seen.board.count(FLAG) < seen.mine_count else [UNCOVER_VERB]
        named = [_name(verb, cell) for verb in verbs for cell in unknown]
        flagged = [_name(UNFLAG_VERB, cell) for cell in showing(seen.board, FLAG)]
        return named or flagged or [_name(UNCOVER_VERB, 0)]

    def facts(self, before: str, action: str, after: str) -> Iterable[Fact]:
        """Whether the uncovered cell was a mine; when the episode is over, the same for all unknown cells."""
        old, new, target = _read(before), _read(after), _target(action)
        if target is None or target[0] != UNCOVER_VERB or not is_next_step(before, after):
            return []
        if not _follows(old, new, target[1]):
            return []
        situations = _situations(old.board)
        return [(situations[cell], UNCOVER_VERB, outcome) for cell, outcome in _outcomes(old, new, target[1])]

    def choose(self, observation: str, facts: Facts, rng: random.Random) -> Move:
        """Flags what was nearly always a mine, else uncovers what was most seldom one."""
        seen = _read(observation)
        situations = _situations(seen.board)
        if not situations:
            return Move(self.actions(observation)[0], None)
        cases = {situation: _cases(situation, facts) for situation in situations.values()}
        chances = {name: mines / total if total else PRIOR for name, (mines, total) in cases.items()}
        usual = {name for name in cases if chances[name] >= SURE and cases[name][1] >= SEEN_ENOUGH}
        sure = [cell for cell, name in situations.items() if name in usual]
        if sure and seen.board.count(FLAG) < seen.mine_count:
            cell = rng.choice(sure)
            return Move(_name(FLAG_VERB, cell), round(chances[situations[cell]] / seen.mine_count, 4))
        least = min(chances.values())
        cell = rng.choice([cell for cell, name in situations.items() if chances[name] == least])
        return Move(_name(UNCOVER_VERB, cell), 0.0 if cases[situations[cell]][1] else None)

    def glance(self, observation: str, action: str) -> float:
        """A flag is worth its share of the mines, times the density of mines among the unknown cells."""
        seen, target = _read(observation), _target(action)
        unknown = seen.board.count(UNKNOWN)
        if target is None or target[0] != FLAG_VERB or not unknown:
            return 0.0
        return (seen.mine_count - seen.board.count(FLAG)) / unknown / seen.mine_count


class _Seen(NamedTuple):
    """An observation as read."""

    mine_count: int
    board: str


def _read(observation: str) -> _Seen:
    """The number of mines and the board; an empty board where there is none."""
    mines = re.search(r"Mines: (\d+)", observation)
    rows = [line.split()[2:] for line in observation.splitlines() if line.startswith("row ")]
    board = "".join(glyph for row in rows for glyph in row)
    return _Seen(int(mines[1]), board) if mines and len(board) == CELLS else _Seen(1, "")


def _follows(old: _Seen, new: _Seen, cell: int) -> bool:
    """Whether ``new`` is ``old`` with ``cell`` and perhaps more cells turned over."""
    if not old.board or not new.board or old.mine_count != new.mine_count:
        return False
    is_turned = old.board[cell] == UNKNOWN != new.board[cell]
    return is_turned and all(a in (b, UNKNOWN) for a, b in zip(old.board, new.board, strict=True))


def _outcomes(old: _Seen, new: _Seen, chosen: int) -> Iterator[tuple[int, str]]:
    """What became known of cells: the chosen one, and at the end of the episode all.

    Cells opened by a flood are left out: only safe ones are, so they would make every situation look safer.
    """
    exploded = [cell for cell in showing(new.board, EXPLODED) if old.board[cell] == UNKNOWN]
    is_lost = any(cell != chosen for cell in exploded)
    closed = new.board.count(UNKNOWN) + new.board.count(FLAG)
    is_won = closed + new.board.count(EXPLODED) == new.mine_count
    for cell in showing(old.board, UNKNOWN):
        if cell == chosen or is_lost or is_won:
            is_mine = new.board[cell] == EXPLODED or (is_won and new.board[cell] == UNKNOWN)
            yield cell, "mine" if is_mine else "safe"


def _situations(board: str) -> dict[int, str]:
    """Each unknown cell by the most a number beside it needs, as a share of that number's unknown cells."""
    shares: dict[int, list[float]] = {cell: [] for cell in showing(board, UNKNOWN)}
    for cell, glyph in enumerate(board):
        unknown = [near for near in NEAR[cell] if board[near] == UNKNOWN] if glyph in OPEN else []
        needed = int(glyph) - sum(board[near] in (FLAG, EXPLODED) for near in NEAR[cell]) if unknown else 0
        for near in unknown:
            shares[near].append(needed / len(unknown))
    return {cell: _label(values) for cell, values in shares.items()}


def _label(shares: list[float]) -> str:
    if not shares:
        return "no number beside"
    if min(shares) <= 0:
        return "a number needs none"
    most = max(shares)
    if most >= 1:
        return "a number needs all"
    return f"a number needs {'under 1/3' if most < 1 / 3 else 'under 2/3' if most < 2 / 3 else 'most'}"


def _cases(situation: str, facts: Facts) -> tuple[int, int]:
    """(mines, cases) seen in ``situation``."""
    outcomes = facts.get((situation, UNCOVER_VERB), {})
    return outcomes.get("mine", 0), sum(outcomes.values())


# --- the game -----------------------------------------------------------------------------------------------


class Minesweeper(Game[MinesweeperConfig, MinesweeperState, MinesweeperView]):
    """See the card at the top of the file."""

    id = "minesweeper"
    VERSION = 2
    unit = "share of mines flagged"
    exploration = MinesweeperConfig(extra_lives=2)
    evaluation = MinesweeperConfig()
    success_score = 1.0
    players: ClassVar[Mapping[str, Player]] = {"random": _random, "expert": _expert, "flagger": _flagger}
    reader = MinesweeperReader()
    palette: ClassVar[Mapping[str, str]] = {
        r"\?": "dim",
        r"(?<= )0": "dim",
        r"(?<= )1": "blue",
        r"(?<= )2": "green",
        r"(?<= )3": "red",
        r"(?<= )[4-8]": "magenta",
        r"\b[FX]\b": "bold red",
        r"(?m)^Step.*": "default not dim",
        r"(?m)^col.*|^row \d": "default dim",
    }

    def reset(self, config: MinesweeperConfig, seed: int) -> MinesweeperState:
        """Draws the number of mines and an order of the cells: mines come first, the spare cells follow."""
        rng = stream(seed, "layout")
        count = rng.randint(config.mines_min, config.mines_max)
        cells = rng.sample(range(CELLS), CELLS)
        mines, spares = mask(cells[:count]), tuple(cells[count:])
        return MinesweeperState(
            config=config, mines=mines, spares=spares, board=UNKNOWN * CELLS, lives=config.extra_lives
        )

    def view(self, state: MinesweeperState) -> MinesweeperView:
        """Everything but where the mines are."""
        count = state.mines.bit_count()
        return MinesweeperView(state.step_index, state.config.horizon, count, state.lives, state.board)

    def render(self, view: MinesweeperView) -> str:
        """A line of counts and the board with its headers."""
        board = view.board
        rows = [f"row {row} {' '.join(board[SIZE * row : SIZE * row + SIZE])}" for row in range(SIZE)]
        return (
            f"{numbered(view.step_index, view.horizon)}. Mines: {view.mine_count}. "
            f"Flags used: {board.count(FLAG)}. Extra lives left: {view.lives}.\n"
            f"col   {' '.join(map(str, range(SIZE)))}\n" + "\n".join(rows)
        )

    def rules(self, config: MinesweeperConfig) -> str:
        """Goal, glyphs, the three actions, what a mine costs and how the score is made."""
        first = "The first cell you uncover is never a mine. " if config.is_first_safe else ""
        mine = "Uncovering a mine ends the episode."
        if config.extra_lives:
            mine = (
                f"You have {config.extra_lives} extra lives: a mine you uncover costs one, stays visible as "
                "X, cannot be flagged and does not count as flagged. With none left it ends the episode."
            )
        unusable = "ends the episode" if config.unusable_ends else "changes nothing and costs a step"
        return (
            f"Minesweeper on {SIZE} x {SIZE} cells with {config.mines_min} to {config.mines_max} mines; the "
            f"number is shown. You have {config.horizon} steps.\n"
            "Cells: ? unknown; 0 to 8 the number of mines among the up to eight neighbours, exploded ones "
            "included; F your flag; X an exploded mine.\n"
            "Uncovering opens an unknown cell, and around a 0 its neighbours too; flags stop this. "
            f"{first}{mine}\n"
            "A flag marks an unknown cell you hold for a mine; you may have as many flags as there are "
            "mines. You are not told whether a flag is right.\n"
            "The episode also ends when all safe cells are open: the remaining unexploded mines then count "
            "as flagged; and when all unexploded mines are flagged and no flag is wrong.\n"
            "The score is the share of the mines that are flagged. The reward of a step is the change of "
            "it: 1 / mines for a right flag, minus that for removing one, 0 for a wrong flag.\n"
            f"An answer that is unreadable or not possible {unusable}.\n"
            "Action: uncover (row,column), flag (row,column) or unflag (row,column), counted from 0, "
            "for example: uncover (3,4)"
        )

    def parse(self, text: str, view: MinesweeperView) -> Parsed:
        """A verb and a cell in any brackets or none, a comma or a blank between; nothing else beside it."""
        target = _target(text)
        if target is None:
            return Parsed("unparsable", None, "Not an action such as: uncover (row,column).")
        verb, cell = target
        if cell < 0:
            return Parsed("invalid", None, "This cell is not on the board.")
        shown = view.board[cell]
        if verb == UNFLAG_VERB and shown != FLAG:
            return Parsed("illegal", None, "There is no flag on this cell.")
        if verb != UNFLAG_VERB and shown != UNKNOWN:
            return Parsed("illegal", None, "This cell is not unknown.")
        if verb == FLAG_VERB and view.board.count(FLAG) >= view.mine_count:
            return Parsed("illegal", None, "All flags are in use.")
        action = _name(verb, cell)
        return Parsed.of(text, action)

    def step(self, state: MinesweeperState, action: str) -> Outcome:
        """Uncovers, flags or unflags a cell."""
        verb, place = action.split(" ")
        cell = SIZE * int(place[1]) + int(place[3])
        if verb == UNCOVER_VERB:
            return _uncover(state, cell)
        is_mine = state.mines >> cell & 1
        if verb == FLAG_VERB:
            board, right, feedback = put(state.board, cell, FLAG), state.right + is_mine, "Flag set."
        else:
            board, right, feedback = put(state.board, cell, UNKNOWN), state.right - is_mine, "Flag removed."
        after = replace(state, board=board, right=right, step_index=state.step_index + 1)
        return _settle(state, after, feedback)

    def layout(self, state: MinesweeperState) -> str:
        """The mines, and the order of the cells that may take one."""
        return f"mines {list(members(state.mines))} spares {list(state.spares)}"

    def reward_range(self, config: MinesweeperConfig) -> tuple[float, float]:
        """A right flag removed where it counts most; every mine credited at once."""
        return -1 / config.mines_min, 1.0

    def smallest_positive_score(self, config: MinesweeperConfig) -> float:
        """One mine of the most there can be."""
        return 1 / config.mines_max


def _target(text: str) -> tuple[str, int] | None:
    """(verb, cell) of an action text; the cell is -1 off the board; None when it is not an action."""
    match = _ACTION.fullmatch(tidy(text))
    if match is None:
        return None
    row, column = whole(match["row"]), whole(match["column"])
    is_on_board = 0 <= row < SIZE and 0 <= column < SIZE
    return match["verb"].lower(), SIZE * row + column if is_on_board else -1


def _uncover(state: MinesweeperState, cell: int) -> Outcome:
    if state.config.is_first_safe and OPEN.isdisjoint(state.board):
        state = _protected(state, cell)
    step_index = state.step_index + 1
    if not state.mines >> cell & 1:
        board = flood(state.board, state.mines, cell)
        return _settle(state, replace(state, board=board, step_index=step_index), "Cell uncovered.")
    board = put(state.board, cell, EXPLODED)
    if state.lives:
        after = replace(state, board=board, lives=state.lives - 1, step_index=step_index)
        return _settle(state, after, "A mine exploded; it cost an extra life.")
    for mine in members(state.mines):
        if board[mine] == UNKNOWN:
            board = put(board, mine, EXPLODED)
    return Outcome(replace(state, board=board, step_index=step_index, end_reason="mine"), 0.0, "A mine exploded.")


def _protected(state: MinesweeperState, cell: int) -> MinesweeperState:
    """No mine under ``cell``; it never moves under a flag, so that no flag turns right by itself."""
    if not state.mines >> cell & 1:
        return state
    spare = next(spare for spare in state.spares if state.board[spare] != FLAG)
    return replace(state, mines=state.mines ^ (1 << cell | 1 << spare))


def _settle(before: MinesweeperState, after: MinesweeperState, feedback: str) -> Outcome:
    """Ends the episode where nothing is left to find, and pays the change.

    The reward is a difference of two shares rather than ``change / mines``: summed in order, such differences
    give back ``right / mines`` to the last bit.
    """
    count = after.mines.bit_count()
    flags, exploded = after.board.count(FLAG), after.board.count(EXPLODED)
    if after.board.count(UNKNOWN) + flags + exploded == count:
        after = replace(after, right=count - exploded, end_reason="all_safe_open")
    elif flags == after.right == count - exploded:
        after = replace(after, end_reason="all_mines_flagged")
    return Outcome(after, after.right / count - before.right / count, feedback)


GAME = Minesweeper()
