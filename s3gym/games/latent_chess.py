"""Latent chess: pieces move by hidden rules; foretell where each will stand next.

Rules: all pieces move at once, each by a rule of its own: a cycle of two or three steps, a step turned by a quarter
    each time, a king direction in growing lengths, a straight line reflected at the edges, one of two steps by the
    colour or the half of the board it stands on, the previous step of another piece (as it is, negated or
    transposed), or a king step towards or away from another piece. Other edges wrap; pieces do not block each other.
    No piece ever stands still, and none has a history that two rules explain which then disagree within the horizon.
Observation: step of horizon, the cells of every piece from the oldest board to the current one, which count, and a
    drawing of the current board. The history grows by each board that comes true.
Actions: ``A:(row,column), B:(row,column)`` and so on, any pieces in any order, counted from 0. The last mention of a
    letter counts; unknown letters and cells off the board are ignored, and the feedback says so.
Verifier reward: the share of all pieces that were named on the cell they moved to; the final score is the mean, 0 to 1.
Episode end: only the horizon. An unusable answer names nothing and costs the step; the next board appears all the same.
Instances and splits: start cells distinct and uniform, families uniform (a setting), parameters uniform among those
    that pass the two conditions. Exploration has 12 pieces, evaluation 22, so the phases share no instance.
Version history: 1, first version.
Source: our own design after a published description that names hidden movement rules, a history of seven steps and
    22 pieces; published figures fit 15 scored pieces (``pieces=15``) and are not comparable without saying so.
"""

import random
import re
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf
from string import ascii_uppercase as LETTERS
from typing import ClassVar, NamedTuple

from s3gym.games._grammar import CELL, tidy, whole
from s3gym.games._motion import (
    FAMILIES,
    SHORTEST_HISTORY,
    SIZE,
    SOCIAL,
    STEPS,
    STILL,
    Cell,
    Path,
    Step,
    colour,
    draw_path,
    fitting,
    half,
    moved,
    path_of,
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

EMPTY, SHARED = ".*"
UNIFORM = (1.0,) * len(FAMILIES)
NAMES = {(row, column): f"({row},{column})" for row in range(SIZE) for column in range(SIZE)}
"""The cells of the board, row by row, as they are written."""

MOVED = "The pieces moved."
IGNORED = "The pieces moved. Unknown letters and cells off the board were ignored."
NO_PIECES = "No pieces and cells could be read: nothing was named, and the pieces moved."
NOTHING_KNOWN = "Only unknown letters or cells off the board: nothing was named, and the pieces moved."

LONGEST_HISTORY = 100

_MENTION = re.compile(rf"['\"]?(?P<letter>[A-Za-z])['\"]? ?(?:[:=]|->)? ?{CELL} ?[,;]? ?(?=['\"A-Za-z]|\Z)")
Named = dict[str, Cell]
"""Letter -> cell, as last mentioned; neither needs to exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentChessConfig(Config):
    """How many pieces there are, and how much of their past is shown."""

    horizon: int = 5
    pieces: int = 22
    """1 to 26; 15 is the scale that published figures fit."""
    history: int = 7
    """Steps made before the first answer: one board more is shown."""
    family_weights: tuple[float, ...] = UNIFORM
    """How often each family is drawn, in the order of FAMILIES; the first piece has none to look at."""

    def __post_init__(self) -> None:
        Config.__post_init__(self)
        if not 1 <= self.pieces <= len(LETTERS):
            raise ValueError(f"pieces is {self.pieces}, expected 1 to {len(LETTERS)}: each needs a letter")
        if not SHORTEST_HISTORY <= self.history <= LONGEST_HISTORY:
            raise ValueError(
                f"history is {self.history}, expected {SHORTEST_HISTORY} to {LONGEST_HISTORY} steps: "
                "fewer fit several rules"
            )
        if self.unusable_ends or self.end_policy != "invalid":
            raise ValueError(
                f"unusable_ends is {self.unusable_ends}, end_policy {self.end_policy!r}, expected false and 'invalid': "
                "the final score is a mean over steps, which an early end could raise"
            )
        if not _are_weights(self.family_weights):
            raise ValueError(
                f"family_weights is {self.family_weights!r}, expected {len(FAMILIES)} non-negative numbers, not all 0 "
                f"without {' and '.join(SOCIAL)}: give one for each of {', '.join(FAMILIES)}"
            )


def _are_weights(given: object) -> bool:
    return (
        isinstance(given, tuple)
        and len(given) == len(FAMILIES)
        and all(type(weight) in (int, float) and 0 <= weight < inf for weight in given)
        and sum(_first_weights(given)) > 0
        and sum(given) < inf
    )


def _first_weights(weights: tuple[float, ...]) -> list[float]:
    """The weights for a piece that has none before it."""
    return [0.0 if family in SOCIAL else weight for family, weight in zip(FAMILIES, weights, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentChessState(State[LatentChessConfig]):
    """A moment of an episode. No answer moves a piece, so all paths are drawn ahead."""

    paths: tuple[tuple[Cell, ...], ...]
    """The cells of each piece through history and horizon; what lies ahead is hidden, and no rule is kept."""


class LatentChessView(NamedTuple):
    """What the player knows."""

    step_index: int
    horizon: int
    seen: tuple[tuple[Cell, ...], ...]
    """The cells of each piece from the oldest board to the current one."""


def _read_named(text: str) -> Named:
    """All mentions of a text, the last of each letter; empty when anything else is in it."""
    text = tidy(text)
    if text[:1] in ("[", "(", "{"):  # a mention starts with a letter, so this one is around them all
        text = text[1:-1].strip()
    named: Named = {}
    position = 0
    while position < len(text):
        mention = _MENTION.match(text, position)
        if mention is None:
            return {}
        named[mention["letter"].upper()] = whole(mention["row"]), whole(mention["column"])
        position = mention.end()
    return named


def _write_named(named: Mapping[str, Cell]) -> str:
    return ", ".join([f"{letter}:({row},{column})" for letter, (row, column) in named.items()])


def _known(named: Named, letters: Container[str]) -> Named:
    """The mentions of pieces and cells that exist."""
    return {letter: cell for letter, cell in named.items() if letter in letters and cell in NAMES}


# --- players ---------------------------------------------------------------------------------------------------


def _foretelling(guess: Callable[[Path], Step]) -> Player:
    """A player that takes each piece by itself."""

    def play(view: LatentChessView, rng: random.Random) -> Move:
        cells = [moved(path[-1], guess(path_of(path))) for path in view.seen]
        return Move(_write_named(dict(zip(LETTERS, cells, strict=False))), None)

    return play


def _periodic(path: Path) -> Step:
    """What it did a period ago: the shortest one up to 4 that the history repeats, else 1."""
    steps = path.steps
    return steps[-next((period for period in (1, 2, 3, 4) if steps[period:] == steps[:-period]), 1)]


def _random(view: LatentChessView, rng: random.Random) -> Move:
    cells = rng.choices(list(NAMES), k=len(view.seen))
    return Move(_write_named(dict(zip(LETTERS, cells, strict=False))), None)


def _expert(view: LatentChessView, rng: random.Random) -> Move:
    """By any rule that explains the whole path: where the ambiguity filter was passed, all of them agree."""
    paths = [path_of(cells) for cells in view.seen]
    named: Named = {}
    for index, path in enumerate(paths):
        rule = next(fitting(path, paths[:index]), None)
        step = rule.step(path.cells, len(path.steps), paths) if rule else None
        if step is not None:
            named[LETTERS[index]] = moved(path.cells[-1], step)
    return Move(_write_named(named), len(named) / len(paths))


# --- a learner's eyes ------------------------------------------------------------------------------------------

OCCASIONS: Mapping[str, Callable[[int, Cell], int]] = {
    "1 step ago": lambda time, cell: 0,
    "2 steps ago": lambda time, cell: time % 2,
    "3 steps ago": lambda time, cell: time % 3,
    "4 steps ago": lambda time, cell: time % 4,
    "last on this colour": lambda time, cell: colour(cell),
    "last in this half": lambda time, cell: half(cell),
}
"""When a piece may have done what it does now: the last time at which this number was the same."""
RIGHT, WRONG = "right", "wrong"
ENOUGH = 12
"""How often a situation must have been seen; one episode alone tells little then."""
_SEEN = re.compile(r"^([A-Z]):((?: \(\d{1,2},\d{1,2}\))+)$", re.MULTILINE)
_NUMBER = re.compile(r"\d+")


class LatentChessReader(Reader):
    """Reads the cells; learns which repetition to trust, given which of them the history of a piece shows."""

    def actions(self, observation: str) -> list[str]:
        """All pieces move alike, by each of the possible steps."""
        seen = _read_seen(observation) or {LETTERS[0]: ((0, 0),)}
        return [_write_named({letter: moved(cells[-1], step) for letter, cells in seen.items()}) for step in STEPS]

    def glance(self, observation: str, action: str) -> float:
        """Each piece has so many steps to choose from, and standing still is none of them."""
        seen, named = _read_seen(observation), _read_named(action)
        ways = [path_of((seen[letter][-1], cell)).steps[0] for letter, cell in _known(named, seen).items()]
        return sum(way in STEPS for way in ways) / len(STEPS) / len(seen) if seen else 0.0

    def facts(self, before: str, action: str, after: str) -> Iterable[Fact]:
        """For each piece, which repetitions its history showed and whether each of them held once more."""
        old, new = _read_seen(before), _read_seen(after)
        if not old or not is_next_step(before, after) or {letter: cells[:-1] for letter, cells in new.items()} != old:
            return
        for letter, cells in old.items():
            situation, guesses = _look(cells)
            for occasion, step in guesses.items():
                yield situation, occasion, RIGHT if moved(cells[-1], step) == new[letter][-1] else WRONG

    def choose(self, observation: str, facts: Facts, rng: random.Random) -> Move:
        """What held most often in the like situation; any step at all while that was seen too seldom to go by."""
        named: Named = {}
        chances: list[float] = []
        for letter, cells in _read_seen(observation).items():
            situation, guesses = _look(cells)
            known = [(_share(facts.get((situation, occasion), {})), step) for occasion, step in guesses.items()]
            chance, step = max([*known, (1 / len(STEPS), rng.choice(STEPS))], key=lambda pair: pair[0])
            named[letter] = moved(cells[-1], step)
            chances.append(chance)
        if not named:
            return Move(rng.choice(self.actions(observation)), None)
        return Move(_write_named(named), round(sum(chances) / len(chances), 3) if facts else None)


def _share(seen: Mapping[str, int]) -> float:
    """How often it held; 0 for what was not seen often enough."""
    count = sum(seen.values())
    return seen.get(RIGHT, 0) / count if count >= ENOUGH else 0.0


@lru_cache(maxsize=4096)
def _look(cells: tuple[Cell, ...]) -> tuple[str, dict[str, Step]]:
    """Which repetitions the whole history shows, and the next step by each that has something to repeat."""
    path = path_of(cells)
    shown: list[str] = []
    guesses: dict[str, Step] = {}
    for name, occasion in OCCASIONS.items():
        numbers = [occasion(time, cell) for time, cell in enumerate(cells)]
        done = dict(zip(numbers, path.steps, strict=False))
        if all(done[number] == step for number, step in zip(numbers, path.steps, strict=False)):
            shown.append(name)
        if numbers[-1] in done:
            guesses[name] = done[numbers[-1]]
    return f"shows {', '.join(shown) or 'no repetition'}", guesses


@lru_cache(maxsize=512)
def _read_seen(text: str) -> dict[str, tuple[Cell, ...]]:
    """Letter -> cells, oldest first; empty when the text does not show that."""
    seen: dict[str, tuple[Cell, ...]] = {}
    for letter, cells in _SEEN.findall(text):
        numbers = [int(number) for number in _NUMBER.findall(cells)]
        seen[letter] = tuple(zip(numbers[::2], numbers[1::2], strict=True))
    return seen if all(cell in NAMES for cells in seen.values() for cell in cells) else {}


# --- the game --------------------------------------------------------------------------------------------------


class LatentChess(Game[LatentChessConfig, LatentChessState, LatentChessView]):
    """See the card at the top of the file."""

    id = "latent_chess"
    VERSION = 1
    unit = "share of pieces"
    exploration = LatentChessConfig(pieces=12)
    evaluation = LatentChessConfig()
    is_length_fixed = True
    score_aggregation = "mean"
    success_score = 0.9  # repeating the past hardly reaches it
    players: ClassVar[Mapping[str, Player]] = {
        "random": _random,
        "expert": _expert,
        "still": _foretelling(lambda path: STILL),
        "constant": _foretelling(lambda path: path.steps[-1]),
        "period": _foretelling(_periodic),
    }
    reader = LatentChessReader()
    palette: ClassVar[Mapping[str, str]] = {
        r"(?m)^  [ \d]+$|^[ \d]\d(?=  )": "dim",
        r"(?<= )\.(?=\s|$)": "dim",
        r"\b[A-Z]\b": "cyan",
        r"(?<= )\*": "red",
    }

    def reset(self, config: LatentChessConfig, seed: int) -> LatentChessState:
        """Draws the pieces one after the other: a family, then start cells and rules of it until one will do."""
        rng = stream(seed, "layout")
        paths: list[Path] = []
        for _ in range(config.pieces):
            weights = config.family_weights if paths else _first_weights(config.family_weights)
            paths.append(draw_path(rng, weights, paths, config.history, config.horizon))
        return LatentChessState(config=config, paths=tuple([path.cells for path in paths]))

    def view(self, state: LatentChessState) -> LatentChessView:
        """The boards that have come true."""
        config = state.config
        count = config.history + 1 + state.step_index
        return LatentChessView(state.step_index, config.horizon, tuple([cells[:count] for cells in state.paths]))

    def render(self, view: LatentChessView) -> str:
        """Step, the cells of each piece, and the current board."""
        lines = [
            f"{numbered(view.step_index, view.horizon)}.",
            "Cells of each piece, oldest first; the last one is where it stands now.",
        ]
        glyphs = dict.fromkeys(NAMES, EMPTY)
        for letter, cells in zip(LETTERS, view.seen, strict=False):
            lines.append(f"{letter}: {' '.join([NAMES[cell] for cell in cells])}")
            glyphs[cells[-1]] = letter if glyphs[cells[-1]] == EMPTY else SHARED
        board = list(glyphs.values())
        lines.append("   " + " ".join([f"{column:2}" for column in range(SIZE)]))
        for row in range(SIZE):
            lines.append(f"{row:2}  " + "  ".join(board[row * SIZE : row * SIZE + SIZE]))
        return "\n".join(lines)

    def rules(self, config: LatentChessConfig) -> str:
        """What is told of how pieces move, and what may be named."""
        last = SIZE - 1
        return (
            f"Latent chess: {config.pieces} pieces move on a board of {SIZE} x {SIZE} cells. For {config.horizon} "
            "steps you foretell where each of them will stand next. A cell is written (row,column); rows 0 to "
            f"{last} run top to bottom, columns 0 to {last} from left to right.\n"
            "In each step all pieces move at once, each by a rule of its own, which is not told, leaves nothing to "
            "chance and stays the same. It may go by what the piece did before, by where it stands, or by a piece with "
            "an earlier letter. Every piece moves in every step, by 3 rows and 3 columns at most. Beyond an edge the "
            "board goes on at the opposite one, unless the rule turns the piece back. Pieces never block each other "
            "and may share a cell.\n"
            f"You see the cells of each piece over {config.history} steps before your first answer and over all steps "
            "since, and the current board: . empty, a letter for a piece, * for several on one cell.\n"
            "Name the next cell of as many pieces as you like, in any order. A letter named twice counts by its last "
            "mention; unknown letters and cells off the board are ignored. Then the pieces move, whatever you named. "
            "An answer that cannot be read names nothing and uses the step up.\n"
            "The reward of a step is the share of all pieces that you named on the cell they moved to. The score of "
            "the episode is the mean of the rewards of its steps.\n"
            "Action: A:(row,column), B:(row,column) and so on."
        )

    def parse(self, text: str, view: LatentChessView) -> Parsed:
        """Letters and cells in usual spellings; what does not exist stays in the action, for the feedback to tell."""
        named = _read_named(text)
        if not named:
            return Parsed("unparsable", None, NO_PIECES)
        if not _known(named, LETTERS[: len(view.seen)]):
            return Parsed("invalid", None, NOTHING_KNOWN)
        action = _write_named(named)
        return Parsed.of(text, action)

    def step(self, state: LatentChessState, action: str) -> Outcome:
        """Moves the pieces and counts those named right."""
        named = _read_named(action)
        known = _known(named, LETTERS[: len(state.paths)])
        after = replace(state, step_index=state.step_index + 1)
        time = state.config.history + after.step_index
        hits = sum(cells[time] == known.get(letter) for letter, cells in zip(LETTERS, state.paths, strict=False))
        return Outcome(after, hits / len(state.paths), MOVED if known == named else IGNORED)

    def layout(self, state: LatentChessState) -> str:
        """How much of the paths is history, and the paths: whatever rules made them, the task is the same."""
        paths = [" ".join([NAMES[cell] for cell in cells]) for cells in state.paths]
        return "\n".join([str(state.config.history), *paths])

    def reward_range(self, config: LatentChessConfig) -> tuple[float, float]:
        """No piece or all."""
        return 0.0, 1.0

    def smallest_positive_score(self, config: LatentChessConfig) -> float:
        """One piece in one step."""
        return 1 / (config.pieces * config.horizon)


GAME = LatentChess()
