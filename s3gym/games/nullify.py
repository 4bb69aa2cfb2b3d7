"""Nullify: join numbers and operators, two units at a time, until nothing but 0 is left.

Rules: an action joins two units, of which one at least is a number: two numbers are added, an operator is applied to
    the number. Both units vanish, and the result becomes the last unit; a sum of 0 leaves nothing. Operators: ``*k``,
    ``/k``, ``floor``, ``ceil``, ``sqrt``, ``square``, ``reciprocal``. There is no root of a negative number, no
    reciprocal of 0 and no square of a number above 10000 in size. Numbers are exact fractions; a root that is none is
    cut to 12 decimals, and what is nearer to 0 than 0.000001 is 0.
Observation: step number and the units with their indices; numbers with sign, rounded to 6 decimals.
Actions: ``i j``, two different indices, counted from 0, in either order.
Verifier reward: 1 for the join that leaves nothing or a lone 0, else 0; the final score is their sum, 0 or 1.
Episode end: that join, or a board without a legal move: no number, a lone number that is not 0, a lone negative number
    with roots alone, and the like. An unusable answer changes nothing and costs the step.
Instances and splits: from 0, 3 to 7 joins are undone one after the other in exploration and 5 to 10 in evaluation,
    each of a kind drawn uniformly: a whole number added (-10 to 10), a factor (2 to 10 in size), or a function. Values
    stay within 4 decimals and 10000 in size and off 0. ``floor`` and ``ceil`` are undone by 0.01 to 0.99, and a
    fraction they cut off comes back as a number. The units are shuffled; in any order they are the same instance.
Version history: 1, first version.
Source: the mechanics of KORGym's game 39, with exact numbers, boards that can always be solved, and dead ends that end.
"""

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from itertools import combinations
from math import isclose, isqrt
from typing import ClassVar, NamedTuple

from s3gym.games._grammar import CELL, tidy, whole
from s3gym.games._nullify import (
    ADDEND_MAX,
    CEIL,
    CENT,
    FLOOR,
    FUNCTIONS,
    NUMBER,
    OVER,
    RECIPROCAL,
    SCALE,
    SQRT,
    SQUARE,
    TIMES,
    Piece,
    find_chain,
    sources,
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

ADDENDS = tuple((NUMBER, sign * size * SCALE) for size in range(1, ADDEND_MAX + 1) for sign in (1, -1))
FACTORS = tuple((kind, sign * size) for kind in (TIMES, OVER) for size in range(2, 11) for sign in (1, -1))
GROUPS: tuple[tuple[Piece, ...], ...] = (ADDENDS, FACTORS, tuple((kind, 0) for kind in FUNCTIONS))
"""What a board is made of; each group as likely as the others."""
TRIES = 10
"""Draws from a group before another group is drawn: from 0 no factor leads anywhere."""
STEPS_LIMIT = 10
"""Most joins a board may be made of: longer ones are more than the expert can search."""

SQUARE_LIMIT = 10_000
"""Largest size of a number that may be squared, so that numbers stay readable."""
TINY = 10**6
"""What is nearer to 0 than its reciprocal is 0."""
ROOT_DIGITS = 10**12
ZERO = Fraction(0)

JOINED = "Joined."
VANISHED = "The two cancelled out."
NOTHING_LEFT = "Nothing is left but 0."
DEAD_END = "No legal move is left."
NO_PAIR = "Not two indices such as: 0 3"
NO_UNIT = "There is no unit with this index."
SAME_UNIT = "A unit cannot be joined with itself."
NO_NUMBER = "Two operators cannot be joined: one unit must be a number."
NO_ROOT = "A negative number has no square root."
NO_RECIPROCAL = "0 has no reciprocal."
NO_SQUARE = f"A number above {SQUARE_LIMIT} in size cannot be squared."

_ACTION = re.compile(CELL)


@dataclass(frozen=True, slots=True, kw_only=True)
class NullifyConfig(Config):
    """How many joins a board is made of."""

    horizon: int = 50
    steps_min: int
    steps_max: int

    def __post_init__(self) -> None:
        Config.__post_init__(self)
        if not 1 <= self.steps_min <= self.steps_max <= STEPS_LIMIT:
            raise ValueError(
                f"steps_min={self.steps_min}, steps_max={self.steps_max}: expected 1 <= steps_min <= steps_max <= "
                f"{STEPS_LIMIT}; change one of them."
            )


class Unit(NamedTuple):
    """A number or an operator."""

    kind: str
    """``number``, ``*``, ``/``, or the name of a function."""
    amount: Fraction
    """The number, or the factor of ``*`` and ``/``; 0 for a function."""
    text: str
    """As shown; a number with six decimals may be rounded."""


Units = tuple[Unit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NullifyState(State[NullifyConfig]):
    """One moment of an episode; the certificate is hidden."""

    units: Units
    certificate: tuple[int, ...]
    """A way to 0 from the start board, as indices there: a number, and the units it takes in one after the other."""


class NullifyView(NamedTuple):
    """What the player knows."""

    step_index: int
    horizon: int
    units: Units


# --- arithmetic ---------------------------------------------------------------------------------------------


def number(value: Fraction) -> Unit:
    """The unit of a number."""
    return Unit(NUMBER, value, _shown(value))


@cache
def operator(kind: str, factor: int = 0) -> Unit:
    """The unit of an operator."""
    return Unit(kind, Fraction(factor), f"{kind}{factor}" if factor else kind)


def _shown(value: Fraction) -> str:
    """The number with its sign; six decimals, or fewer where they say it exactly."""
    top, bottom = value.numerator, value.denominator
    if bottom == 1:
        return f"{top:+d}" if top else "0"
    millionths = (2 * abs(top) * 10**6 + bottom) // (2 * bottom)
    text = f"{'-' if top < 0 else '+'}{millionths // 10**6}.{millionths % 10**6:06d}"
    return text if 10**6 % bottom else text.rstrip("0")


def applied(kind: str, amount: Fraction, value: Fraction) -> Fraction:
    """``value`` joined with a unit against which there is no objection."""
    if kind == NUMBER:
        result = value + amount
    elif kind == TIMES:
        result = value * amount
    elif kind == OVER:
        result = value / amount
    elif kind == FLOOR:
        return Fraction(value.numerator // value.denominator)
    elif kind == CEIL:
        return Fraction(-(-value.numerator // value.denominator))
    elif kind == SQRT:
        result = _root(value)
    elif kind == SQUARE:
        result = value * value
    else:
        result = 1 / value
    return result if abs(result.numerator) * TINY >= result.denominator else ZERO


def _root(value: Fraction) -> Fraction:
    """The square root: exact where it is a fraction, else cut to 12 decimals."""
    top, bottom = isqrt(value.numerator), isqrt(value.denominator)
    if top * top == value.numerator and bottom * bottom == value.denominator:
        return Fraction(top, bottom)
    return Fraction(isqrt(value.numerator * ROOT_DIGITS**2 // value.denominator), ROOT_DIGITS)


def _objection(value: Fraction, kind: str) -> str:
    """Why a number cannot be joined with a unit of this kind; empty when it can."""
    if kind == SQRT and value.numerator < 0:
        return NO_ROOT
    if kind == RECIPROCAL and not value.numerator:
        return NO_RECIPROCAL
    if kind == SQUARE and abs(value.numerator) > SQUARE_LIMIT * value.denominator:
        return NO_SQUARE
    return ""


def _objection_to_pair(units: Units, first: int, second: int) -> str:
    one, other = units[first], units[second]
    if one.kind == NUMBER:
        return _objection(one.amount, other.kind)
    return _objection(other.amount, one.kind) if other.kind == NUMBER else NO_NUMBER


def after_join(units: Units, first: int, second: int) -> Units:
    """The units after a legal join: both are gone, and their result, unless it is a sum of 0, is the last."""
    one, other = units[first], units[second]
    if one.kind != NUMBER:
        one, other = other, one
    value = applied(other.kind, other.amount, one.amount)
    if first > second:
        first, second = second, first
    rest = units[:first] + units[first + 1 : second] + units[second + 1 :]
    return rest if other.kind == NUMBER and not value.numerator else (*rest, number(value))


def _is_nullified(units: Units) -> bool:
    return not units or (len(units) == 1 and units[0].kind == NUMBER and not units[0].amount.numerator)


def _is_dead(units: Units) -> bool:
    """Whether no two units can be joined; two numbers always can."""
    numbers = [unit.amount for unit in units if unit.kind == NUMBER]
    if len(numbers) != 1:
        return not numbers
    return all(unit.kind == NUMBER or bool(_objection(numbers[0], unit.kind)) for unit in units)


def actions_along(chain: Sequence[int]) -> list[str]:
    """The actions that join all units in the order of ``chain``, which are indices before the first of them."""
    actions = [f"{chain[0]} {chain[1]}"]
    for count in range(2, len(chain)):
        place = chain[count] - sum(used < chain[count] for used in chain[:count])
        actions.append(f"{len(chain) - count} {place}")  # the result so far is the last unit
    return actions


# --- boards -------------------------------------------------------------------------------------------------


def _made_board(steps: int, rng: random.Random) -> list[Piece]:
    """A number, and what takes it to 0 in this order, with so many joins undone from there."""
    value = 0
    chain: list[Piece] = []
    for _ in range(steps):
        value, pieces = _undone(value, rng)
        chain[:0] = pieces
    return [(NUMBER, value), *chain]


def _undone(value: int, rng: random.Random) -> tuple[int, list[Piece]]:
    """A value that is not 0, and what takes it to ``value``: one piece, or floor or ceil and what they cut off."""
    while True:
        group = rng.choice(GROUPS)
        for _ in range(TRIES):
            piece = rng.choice(group)
            fraction = value % SCALE if piece[0] in (FLOOR, CEIL) else 0
            if fraction and piece[0] == CEIL:
                fraction -= SCALE
            spans = sources(piece, value - fraction, value - fraction)
            if spans:
                low, high = rng.choice(spans)
                before = low + CENT * rng.randrange((high - low) // CENT + 1)
                if before:
                    return before, [piece, (NUMBER, fraction)] if fraction else [piece]


@lru_cache(maxsize=4096)
def _unit(piece: Piece) -> Unit:
    kind, amount = piece
    return number(Fraction(amount, SCALE)) if kind == NUMBER else operator(kind, amount)


# --- players ------------------------------------------------------------------------------------------------


def _random(view: NullifyView, rng: random.Random) -> Move:
    """A uniform number with a uniform other unit, among those that can be joined."""
    units = view.units
    numbers = [index for index, unit in enumerate(units) if unit.kind == NUMBER]
    while True:
        first, second = rng.choice(numbers), rng.randrange(len(units))
        if first != second and not _objection(units[first].amount, units[second].kind):
            return Move(f"{first} {second}", None)


def _expert(view: NullifyView, rng: random.Random) -> Move:
    """The first join on a way to 0; any where none is found."""
    action = _planned(view.units) or _random(view, rng).action
    return Move(action, _reward(view.units, action))


def _planned(units: Units) -> str | None:
    pieces = tuple(_piece(unit) for unit in units)
    chain = None if None in pieces or len(units) < 2 else find_chain(pieces)
    return actions_along(chain)[0] if chain else None


def _piece(unit: Unit) -> Piece | None:
    """The unit as the search takes it; None for a number between ten-thousandths."""
    if unit.kind != NUMBER:
        return unit.kind, unit.amount.numerator
    amount = unit.amount * SCALE
    return (NUMBER, amount.numerator) if amount.denominator == 1 else None


def _reward(units: Units, action: str) -> float:
    """1 for a legal join after which nothing but 0 is left."""
    first, second = map(int, action.split())
    # a join takes two units away at most, and only one may stay, a 0
    if len(units) > 3 or _objection_to_pair(units, first, second):
        return 0.0
    return 1.0 if _is_nullified(after_join(units, first, second)) else 0.0


# --- a learner's eyes ---------------------------------------------------------------------------------------

OUTCOMES = {
    NUMBER: "sum",
    TIMES: "product",
    OVER: "quotient",
    FLOOR: "rounded down",
    CEIL: "rounded up",
    SQRT: "square root",
    SQUARE: "square",
    RECIPROCAL: "reciprocal",
}
"""What a join may turn out to be: words for facts."""
WITH_AMOUNT = (NUMBER, TIMES, OVER)
"""Kinds that show a number, so that what they do may depend on it; functions show none."""
JOIN = ("any join", "*")
_UNIT = re.compile(
    r"^\d+: (?:(?P<number>0|[+-]\d+(?:\.\d+)?)|(?P<factor>[*/])(?P<size>-?[1-9]\d*)"
    rf"|(?P<function>{'|'.join(FUNCTIONS)}))$",
    re.MULTILINE,
)


class NullifyReader(Reader):
    """Reads the units; learns by trying what each kind of unit makes of a number, and plans with that.

    It can calculate, but not tell by its sign or name what a unit does.
    """

    def actions(self, observation: str) -> list[str]:
        """All pairs that the rules allow."""
        return _pairs(_read(observation)) or ["0 1"]

    def facts(self, before: str, action: str, after: str) -> Iterable[Fact]:
        """How many units are gone, and what the join was if its result can be explained in one way only."""
        old, new = _read(before), _read(after)
        pair = _ACTION.fullmatch(action)
        if pair is None or not is_next_step(before, after):
            return []
        first, second = sorted(map(whole, pair.groups()))
        if not 0 <= first < second < len(old):
            return []
        rest = old[:first] + old[first + 1 : second] + old[second + 1 :]
        if new[: len(rest)] != rest or len(new) > len(rest) + 1:
            return []
        gone = [(*JOIN, f"{len(old) - len(new)} fewer")]
        value, other = sorted((old[first], old[second]), key=lambda unit: unit.kind != NUMBER)
        outcomes = _explanations(value, other, new[-1]) if len(new) > len(rest) else []
        return [*gone, (f"number with {other.kind}", "*", outcomes[0])] if len(outcomes) == 1 else gone

    def choose(self, observation: str, facts: Facts, rng: random.Random) -> Move:
        """The first join on a way to 0 by what is known; else one that is not known yet, else any."""
        units = _read(observation)
        pairs = _pairs(units)
        if not pairs:
            return Move(self.actions(observation)[0], None)
        known = _known(facts)
        untried = [pair for pair in pairs if _operand(units, pair) not in known]
        believed = tuple(_as_known(unit, known) for unit in units)
        plan = None if untried or known.get(NUMBER, NUMBER) != NUMBER else _planned(believed)
        action = plan or rng.choice(untried or pairs)
        if JOIN not in facts or (action in untried and len(units) <= 3):
            return Move(action, None)
        return Move(action, _reward(believed, action))

    def glance(self, observation: str, action: str) -> float:
        """1 when the rules say that this join leaves nothing but 0."""
        units = _read(observation)
        return _reward(units, action) if action in _pairs(units) else 0.0


def _read(observation: str) -> Units:
    return tuple(_read_unit(found) for found in _UNIT.finditer(observation))


def _read_unit(found: re.Match[str]) -> Unit:
    if found["number"]:
        return Unit(NUMBER, Fraction(found["number"]), found["number"])
    return operator(found["function"]) if found["function"] else operator(found["factor"], int(found["size"]))


def _pairs(units: Units) -> list[str]:
    """The actions that the rules allow."""
    pairs = combinations(range(len(units)), 2)
    return [f"{first} {second}" for first, second in pairs if not _objection_to_pair(units, first, second)]


def _operand(units: Units, action: str) -> str:
    """The kind of unit that an action joins a number with."""
    first, second = (units[int(index)].kind for index in action.split())
    return second if first == NUMBER else first


def _possible(kind: str) -> tuple[str, ...]:
    """The kinds whose effect a kind may have."""
    return WITH_AMOUNT if kind in WITH_AMOUNT else FUNCTIONS


def _explanations(value: Unit, other: Unit, seen: Unit) -> list[str]:
    """All outcomes that would look like ``seen``, as far as rounded numbers tell."""
    return [
        OUTCOMES[kind]
        for kind in _possible(other.kind)
        if not _objection(value.amount, kind)
        and (kind != OVER or other.amount)
        and isclose(applied(kind, other.amount, value.amount), seen.amount, rel_tol=1e-5, abs_tol=1e-5)
    ]


def _known(facts: Facts) -> dict[str, str]:
    """For each kind of unit seen at work, the kind that by the rules does what it was seen to do most often."""
    known = {}
    for kind in OUTCOMES:
        seen = facts.get((f"number with {kind}", "*"), {})
        effects = [effect for effect in _possible(kind) if OUTCOMES[effect] in seen]
        if effects:
            known[kind] = max(effects, key=lambda effect: seen[OUTCOMES[effect]])
    return known


def _as_known(unit: Unit, known: Mapping[str, str]) -> Unit:
    return unit if unit.kind == NUMBER else unit._replace(kind=known.get(unit.kind, unit.kind))


# --- the game -----------------------------------------------------------------------------------------------


class Nullify(Game[NullifyConfig, NullifyState, NullifyView]):
    """See the card at the top of the file."""

    id = "nullify"
    VERSION = 1
    unit = "boards solved"
    exploration = NullifyConfig(steps_min=3, steps_max=7)
    evaluation = NullifyConfig(steps_min=5, steps_max=10)
    success_score = 1.0
    players: ClassVar[Mapping[str, Player]] = {"random": _random, "expert": _expert}
    reader = NullifyReader()
    palette: ClassVar[Mapping[str, str]] = {
        r"(?m)^\d+:": "dim",
        r"(?m)(?<=: )(?:0|[+-][\d.]+)$": "bold green",
        r"(?m)(?<=: )(?:[*/]-?\d+|[a-z]+)$": "cyan",
    }

    def reset(self, config: NullifyConfig, seed: int) -> NullifyState:
        """Makes a board backwards from 0 and shuffles it."""
        rng = stream(seed, "layout")
        pieces = _made_board(rng.randint(config.steps_min, config.steps_max), rng)
        certificate = list(range(len(pieces)))
        rng.shuffle(certificate)
        units = [unit for _, unit in sorted(zip(certificate, map(_unit, pieces), strict=True))]
        return NullifyState(config=config, units=tuple(units), certificate=tuple(certificate))

    def view(self, state: NullifyState) -> NullifyView:
        """Everything but the certificate."""
        return NullifyView(state.step_index, state.config.horizon, state.units)

    def render(self, view: NullifyView) -> str:
        """Step number, and a line for each unit."""
        lines = [f"{index}: {unit.text}" for index, unit in enumerate(view.units)]
        return f"{numbered(view.step_index, view.horizon)}.\n" + ("\n".join(lines) or "No unit is left.")

    def rules(self, config: NullifyConfig) -> str:
        """Units, joins, what is not allowed, and how an episode ends."""
        unusable = "ends the episode" if config.unusable_ends else "changes nothing and uses the step up"
        return (
            "Nullify: a list of units, numbers and operators, each with its index. In each of at most "
            f"{config.horizon} steps you join two units, until nothing but 0 is left.\n"
            "Numbers have a sign, such as +5 or -0.25. Operators: *k times k; /k divided by k; floor, the whole number "
            "at or below; ceil, the whole number at or above; sqrt, the square root; square, the number times itself; "
            "reciprocal, 1 divided by the number.\n"
            "You join two numbers, which adds them, or a number and an operator, which applies it to the number; the "
            "order of the two makes no difference. Both are taken off the list, later units move up, and the result is "
            "put at the end. A sum of 0 vanishes instead; any other result of 0 stays. Two operators cannot be "
            "joined.\n"
            "There is no square root of a negative number, no reciprocal of 0, and no square of a number above "
            f"{SQUARE_LIMIT} in size. Numbers are exact and shown to 6 decimals; a root that is no fraction is cut to "
            "12 decimals, and what is nearer to 0 than 0.000001 is 0.\n"
            "The board was made so that it can be solved. The episode ends when the list is empty or holds a single 0, "
            "which is the goal, and when no join is possible any more, such as with a single other number or with "
            "operators alone.\n"
            f"An answer that is unreadable or not possible {unusable}.\n"
            "The reward of a step is 1 when it reaches the goal, else 0; the score of the episode is their sum.\n"
            "Action: two indices, counted from 0, for example: 0 3"
        )

    def parse(self, text: str, view: NullifyView) -> Parsed:
        """Two indices in any brackets or none, a comma or a blank between."""
        pair = _ACTION.fullmatch(tidy(text))
        if pair is None:
            return Parsed("unparsable", None, NO_PAIR)
        first, second = whole(pair["row"]), whole(pair["column"])
        if not (0 <= first < len(view.units) and 0 <= second < len(view.units)):
            return Parsed("invalid", None, NO_UNIT)
        if first == second:
            return Parsed("illegal", None, SAME_UNIT)
        objection = _objection_to_pair(view.units, first, second)
        if objection:
            return Parsed("illegal", None, objection)
        action = f"{first} {second}"
        return Parsed.of(text, action)

    def step(self, state: NullifyState, action: str) -> Outcome:
        """Joins two units."""
        first, second = action.split()
        units = after_join(state.units, int(first), int(second))
        feedback = JOINED if len(units) == len(state.units) - 1 else VANISHED
        end_reason, reward = None, 0.0
        if _is_nullified(units):
            end_reason, reward, feedback = "nullified", 1.0, NOTHING_LEFT
        elif _is_dead(units):
            end_reason, feedback = "no_legal_move", DEAD_END
        after = NullifyState(
            config=state.config,
            step_index=state.step_index + 1,
            end_reason=end_reason,
            units=units,
            certificate=state.certificate,
        )
        return Outcome(after, reward, feedback)

    def layout(self, state: NullifyState) -> str:
        """The units in a fixed order."""
        return " ".join(sorted(unit.text for unit in state.units))

    def reward_range(self, config: NullifyConfig) -> tuple[float, float]:
        """Nothing, or a board solved."""
        return 0.0, 1.0

    def smallest_positive_score(self, config: NullifyConfig) -> float:
        """One board solved."""
        return 1.0


GAME = Nullify()
