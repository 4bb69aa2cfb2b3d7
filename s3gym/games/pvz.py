"""Plants-vs-Zombies: hold a small lawn against zombies that come in ever greater numbers.

Rules: a turn goes: planting in the order given; chilies; sunflowers; shooters in the order of planting; zombies in
    the order in which they came; new zombies; 25 sun. A zombie on a plant's cell bites it, any other moves one
    column to the left. A shooter hits the nearest zombie at or right of its column; with a torch right of it in its
    own row it hits for 2. The three-line shooter also covers the rows beside its own, where there are any.
    With t turns played, t = 0, 5, 10, ..., 1 + t // 10 zombies come in, with 4 * (t // 10) extra hit points: regular
    ones, from t = 10 roadblocks too, from t = 20 buckets and high-attack zombies as well.
Observation: step of horizon, sun, and the field with headers: plants and zombies by letter and hit points.
Actions: ``<plant> <row> <column>``, counted from 0, separated by ``;``; or ``none``. A command off the field, for a
    taken cell or too dear is skipped and reported. An answer that holds anything unreadable, or nothing that can be
    carried out, is recorded as unusable and the turn is played with nothing planted.
Verifier reward: 1 for a turn in which no zombie got through, else 0; the final score is the number of such turns.
Episode end: a zombie leaves the field to the left, after the others have moved.
    A constant list of sunflowers and nuts holds out long, because what is skipped is free and a plant that was just
    eaten can be planted again; the player ``wish_list`` is that line, to compare with.
Instances and splits: row and kind of every zombie are drawn ahead from the seed, more than 10**20 instances.
    Exploration has 3 rows and 7 columns, evaluation 5 rows and 6 columns.
Version history: 1, first version.
Source: the mechanics of KORGym's game 41, where the turn of the breach counts, a shooter aims at zombies behind it,
    one in an edge row hits that row twice, and hit points are not shown.
"""

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import inf
from typing import ClassVar, NamedTuple

from s3gym.games._grammar import CELL, tidy, whole, word
from s3gym.games._lawn import (
    CHILI,
    NUT,
    OFF_FIELD,
    PEASHOOTER,
    PLANTS,
    SUN_OF_SUNFLOWER,
    SUNFLOWER,
    TAKEN,
    THREE_LINE,
    TOO_DEAR,
    TORCH,
    ZOMBIES,
    Command,
    Lawn,
    Plant,
    Zombie,
    act,
    free_cells,
    place,
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

FIRST_SUN, SUN_A_TURN = 50, 25
WAVE_EVERY, STRONGER_EVERY, HP_MORE = 5, 10, 4
"""Turns between waves; turns after which waves have one zombie more, and each zombie that many hit points more."""
KINDS_FROM = {0: "N", 10: "NR", 20: "NRBI"}
"""First turn -> the kinds of zombies that come in from then on, all equally likely."""
NAMES = {
    SUNFLOWER: "sunflower",
    PEASHOOTER: "peashooter",
    THREE_LINE: "three-line shooter",
    NUT: "wall-nut",
    TORCH: "torch stump",
    CHILI: "fire chili",
    "N": "regular",
    "R": "roadblock",
    "B": "bucket",
    "I": "high-attack",
}
EFFECTS = {
    SUNFLOWER: f"{SUN_OF_SUNFLOWER} sun a turn, the first included",
    PEASHOOTER: "hits a zombie of its row for 1 a turn",
    THREE_LINE: "the same in its row and in each row beside it",
    NUT: "only stands in the way",
    TORCH: "shooters left of it in its row hit for 2; a second torch adds nothing",
    CHILI: "in the turn it is planted it removes all zombies of its row, and itself",
}
DRAWN_AHEAD = 64
"""Turns whose zombies are drawn at least, so that short episodes are different instances as well."""
NOTHING = "none"
BREACH = "A zombie reached the house."
STATUS_OF = {OFF_FIELD: "invalid", TAKEN: "illegal", TOO_DEAR: "illegal"}
"""Why a command is skipped -> what an answer is of which nothing can be carried out."""

_NOTHING = (NOTHING, "nothing", "no action", "pass")
_COMMAND = re.compile(rf"[(\[{{<]? ?(?P<letter>[{''.join(PLANTS)}])(?: ?[,:])? ?{CELL}", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class PvzConfig(Config):
    """The field, and what is shown of it."""

    horizon: int = 64
    rows: int
    columns: int
    is_hp_shown: bool = True
    """Whether the hit points of plants and zombies are shown."""

    def __post_init__(self) -> None:
        Config.__post_init__(self)
        for name in ("rows", "columns"):
            if not 1 <= getattr(self, name) <= 10:
                raise ValueError(f"{name} = {getattr(self, name)}: expected 1 to 10")


@dataclass(frozen=True, slots=True, kw_only=True)
class PvzState(State[PvzConfig]):
    """One moment of an episode; ``coming`` is hidden."""

    lawn: Lawn
    coming: tuple[tuple[int, str], ...]
    """(row, letter) of every zombie in the order in which they come in; those that have come in too."""


class PvzView(NamedTuple):
    """What the player knows."""

    step_index: int
    horizon: int
    is_hp_shown: bool
    lawn: Lawn
    """Where hit points are hidden, everything has those its kind starts with."""


# --- players ------------------------------------------------------------------------------------------------


def _write(commands: Iterable[Command]) -> str:
    return "; ".join([f"{letter} {row} {column}" for letter, row, column in commands]) or NOTHING


def _nothing(view: PvzView, rng: random.Random) -> Move:
    return Move(NOTHING, None)


def _random(view: PvzView, rng: random.Random) -> Move:
    """Every other turn, a uniform plant it can pay for on a uniform free cell."""
    lawn = view.lawn
    if rng.random() < 0.5:
        letters = [letter for letter, kind in PLANTS.items() if kind.cost <= lawn.sun]
        cells = free_cells(lawn)
        if letters and cells:
            return Move(_write([_command(lawn, rng.choice(letters), rng.choice(cells))]), None)
    return Move(NOTHING, None)


def _command(lawn: Lawn, letter: str, cell: int) -> Command:
    return Command(letter, *divmod(cell, lawn.columns))


class _Hand:
    """The commands of one turn as they are decided, and the lawn they lead to."""

    def __init__(self, lawn: Lawn) -> None:
        self.lawn = lawn
        self.commands: list[Command] = []

    def plant(self, letters: str, cells: Iterable[int]) -> bool:
        """Plants the first of ``letters`` it can pay for on the first free one of ``cells``; whether it could."""
        free = free_cells(self.lawn)
        letter = next((letter for letter in letters if PLANTS[letter].cost <= self.lawn.sun), None)
        cell = next((cell for cell in cells if cell in free), None)
        if letter is None or cell is None:
            return False
        command = _command(self.lawn, letter, cell)
        self.lawn, _ = place(self.lawn, [command])
        self.commands.append(command)
        return True


class _Roles(NamedTuple):
    """Plants by what they are good for; each empty where none is known."""

    earns: str = ""
    burns: str = ""
    """Clears its row."""
    holds: str = ""
    """Keeps a zombie busy."""


STATED = _Roles(earns=SUNFLOWER, burns=CHILI, holds=NUT)
"""What the expert makes use of; it has no need of shooters."""
BUILD = (SUNFLOWER, PEASHOOTER, SUNFLOWER, PEASHOOTER, TORCH, NUT)
"""What the shooter build has in each column, from the house outwards."""


def _plan(lawn: Lawn, roles: _Roles) -> _Hand:
    """Earners near the house, a holder before them, and a burner at the last moment.

    That is when a zombie bites an earner or stands at the house.
    """
    hand, columns, lanes = _Hand(lawn), lawn.columns, _lanes(lawn)
    front = (columns + 1) // 2
    earners = {plant.cell for plant in lawn.plants if plant.letter in roles.earns}
    order = _most_urgent_first(lanes)
    for row in order:
        cells = _row(lawn, row)
        is_at_house = 0 in lanes[row]
        if is_at_house or any(cells[column] in earners for column in lanes[row]):
            if hand.plant(roles.burns, cells):
                lanes[row] = []
            elif is_at_house:
                hand.plant(roles.holds + roles.earns, cells[:1])
        elif lanes[row] and min(lanes[row]) <= front + 1:
            hand.plant(roles.holds, [cells[min(front, *lanes[row])]])
    for column, row in product(range(front), reversed(order)):
        if not {column, column + 1} & {*lanes[row]}:  # nothing bites it in the turn after this one
            hand.plant(roles.earns, [_row(lawn, row)[column]])
    return hand


def _lanes(lawn: Lawn) -> list[list[int]]:
    """Columns of the zombies in each row."""
    lanes: list[list[int]] = [[] for _ in range(lawn.rows)]
    for zombie in lawn.zombies:
        row, column = divmod(zombie.cell, lawn.columns)
        lanes[row].append(column)
    return lanes


def _most_urgent_first(lanes: Sequence[Sequence[int]]) -> list[int]:
    """Rows by how near a zombie is to the house."""
    return sorted(range(len(lanes)), key=lambda row: min(lanes[row], default=inf))


def _row(lawn: Lawn, row: int) -> range:
    return range(row * lawn.columns, (row + 1) * lawn.columns)


def _expert(view: PvzView, rng: random.Random) -> Move:
    hand = _plan(view.lawn, STATED)
    _, is_through = act(hand.lawn)
    return Move(_write(hand.commands), 0.0 if is_through else 1.0)


def _shooter(view: PvzView, rng: random.Random) -> Move:
    """The same build in every row, the most urgent row first; a chili or a nut where a zombie is at the house."""
    hand, lanes = _Hand(view.lawn), _lanes(view.lawn)
    order = _most_urgent_first(lanes)
    for row in order:
        if 0 in lanes[row]:
            hand.plant(CHILI + NUT, _row(view.lawn, row))
    for (column, letter), row in product(enumerate(BUILD[: view.lawn.columns]), order):
        if letter != NUT or lanes[row]:
            hand.plant(letter, [_row(view.lawn, row)[column]])
    return Move(_write(hand.commands), None)


def _wish_list(view: PvzView, rng: random.Random) -> Move:
    """Sunflowers near the house and nuts before them, whatever the zombies do: what one answer for ever would make."""
    hand, columns = _Hand(view.lawn), view.lawn.columns
    for column, row in product(range(columns), range(view.lawn.rows)):
        hand.plant(SUNFLOWER if column < (columns + 1) // 2 else NUT, [_row(view.lawn, row)[column]])
    return Move(_write(hand.commands), None)


# --- a learner's eyes ---------------------------------------------------------------------------------------

GROWN, MET, BITTEN = "on the field", "zombies in its row", "a zombie on it"
AT_DOOR, CLEAR = "a zombie free to enter", "no zombie free to enter"
ENOUGH = 3
"""A plant is taken to be good for something from so many cases on."""
_CELLS = re.compile(r"^row \d (.+)$", re.MULTILINE)
_SUN = re.compile(r"\bSun: (\d+)\.")


class PvzReader(Reader):
    """Reads the field; learns which plants bring sun, clear a row, hit zombies or hold them."""

    def actions(self, observation: str) -> list[str]:
        """Every plant it can pay for on every free cell, and nothing."""
        lawn = _read(observation)
        if lawn is None:
            return [NOTHING]
        letters = [letter for letter, kind in PLANTS.items() if kind.cost <= lawn.sun]
        places = product(letters, free_cells(lawn))
        return [NOTHING, *(_write([_command(lawn, letter, cell)]) for letter, cell in places)]

    def facts(self, before: str, action: str, after: str) -> Iterable[Fact]:
        """Whether plants brought sun, what befell the zombies they met, and whether one reached the house."""
        old, new = _read(before), _read(after)
        if old is None or new is None or (old.rows, old.columns) != (new.rows, new.columns):
            return []
        planted, _ = place(old, _read_commands(action) or [])
        stood = {plant.cell: plant.letter for plant in planted.plants}
        if not is_next_step(before, after) or any(stood.get(each.cell) != each.letter for each in new.plants):
            return []
        danger = AT_DOOR if _is_open(old, planted) else CLEAR
        if BREACH in after:
            return [(danger, "*", "lost")]
        facts = [(danger, "*", "survived")]
        if stood:
            is_more = new.sun - planted.sun > SUN_A_TURN
            facts.append((GROWN, _kinds(stood.values()), "more sun" if is_more else "no more sun"))
        return [*facts, *_meetings(old, stood, new)]

    def choose(self, observation: str, facts: Facts, rng: random.Random) -> Move:
        """Makes use of what is known to be good for something, and tries the rest."""
        lawn = _read(observation)
        if lawn is None or not facts:
            return Move(_try(_Hand(lawn), [*PLANTS], rng) if lawn else NOTHING, None)
        known, untried = _roles(facts)
        hand = _plan(lawn, known)
        action = _try(hand, untried, rng)
        seen = facts.get((AT_DOOR if _is_open(lawn, hand.lawn) else CLEAR, "*"), {})
        return Move(action, round(seen.get("survived", 0) / sum(seen.values()), 3) if seen else 0.5)

    def glance(self, observation: str, action: str) -> float:
        """1 unless a zombie could walk into the house."""
        lawn = _read(observation)
        return 0.0 if lawn is None or _is_open(lawn, place(lawn, _read_commands(action) or [])[0]) else 1.0


def _read(observation: str) -> Lawn | None:
    """The lawn as shown; what has no hit points shown has those its kind starts with."""
    sun, table = _SUN.search(observation), [line.split() for line in _CELLS.findall(observation)]
    if sun is None or not table or len({len(row) for row in table}) != 1:
        return None
    plants, zombies = [], []
    for cell, text in enumerate(name for row in table for name in row):
        for name in text.split("+") if text != "." else ():
            letter, hp = name[0], name[1:]
            if letter in PLANTS:
                plants.append(Plant(cell, letter, int(hp or PLANTS[letter].hp)))
            elif letter in ZOMBIES:
                zombies.append(Zombie(cell, letter, int(hp or ZOMBIES[letter].hp)))
    return Lawn(len(table), len(table[0]), int(sun[1]), tuple(plants), tuple(zombies))


def _is_open(lawn: Lawn, planted: Lawn) -> bool:
    """Whether a zombie in column 0 has no plant in its way, and nothing was planted in its row."""
    free = {*free_cells(lawn)}
    new = {cell // lawn.columns for cell in free.difference(free_cells(planted))}
    doors = {zombie.cell for zombie in lawn.zombies if zombie.cell % lawn.columns == 0}
    return any(cell in free and cell // lawn.columns not in new for cell in doors)


def _kinds(letters: Iterable[str]) -> str:
    return "".join(sorted({*letters}))


def _meetings(old: Lawn, stood: Mapping[int, str], new: Lawn) -> Iterator[Fact]:
    """What befell the zombies of each row with plants, and those on a plant."""
    for row in range(old.rows):
        cells = _row(old, row)
        kinds = _kinds(stood[cell] for cell in cells if cell in stood)
        hp = sum(zombie.hp for zombie in old.zombies if zombie.cell in cells)
        if kinds and hp and cells[-1] not in stood:  # so all have left the last column, where new ones come in
            left = sum(zombie.hp for zombie in new.zombies if zombie.cell in cells[:-1])
            yield MET, kinds, "cleared" if not left else "hit" if left < hp else "unhurt"
    places = {zombie.cell for zombie in new.zombies}
    for zombie in old.zombies:
        if zombie.cell in stood and places & {*_row(old, zombie.cell // old.columns)}:
            yield BITTEN, stood[zombie.cell], "held" if zombie.cell in places else "gone"


def _roles(facts: Facts) -> tuple[_Roles, str]:
    """What plants are good for, and which are not yet tried enough to tell."""
    cases: dict[tuple[str, str], Counter[str]] = {}
    for (situation, kinds), outcomes in facts.items():
        for letter in (*kinds, "all"):
            cases.setdefault((situation, letter), Counter()).update(outcomes)

    def seen(situation: str, letter: str) -> Counter[str]:
        return cases.get((situation, letter), Counter())

    def known(situation: str, outcome: str, least: float) -> list[str]:
        """Plants with which it came to ``outcome`` in at least that share of enough cases."""
        enough = [letter for letter in PLANTS if seen(situation, letter).total() >= ENOUGH]
        return [x for x in enough if seen(situation, x)[outcome] >= least * seen(situation, x).total()]

    richest = seen(GROWN, "all")["more sun"]
    earns = [letter for letter in known(GROWN, "more sun", 1) if seen(GROWN, letter)["more sun"] == richest]
    burns = known(MET, "cleared", 1)
    holds = max(known(BITTEN, "held", 0.5), key=lambda letter: PLANTS[letter].hp, default="")
    untried = [letter for letter in PLANTS if seen(MET, letter).total() < ENOUGH]
    return _Roles("".join(earns), "".join(burns), holds), "".join(untried)


def _try(hand: _Hand, letters: Sequence[str], rng: random.Random) -> str:
    """The commands so far and one more, of any of ``letters`` on any cell, if it can be paid."""
    cells = free_cells(hand.lawn)
    if letters and cells:
        hand.plant(rng.choice(letters), [rng.choice(cells)])
    return _write(hand.commands)


# --- the game -----------------------------------------------------------------------------------------------


class Pvz(Game[PvzConfig, PvzState, PvzView]):
    """See the card at the top of the file."""

    id = "pvz"
    VERSION = 1
    unit = "turns survived"
    exploration = PvzConfig(rows=3, columns=7)
    evaluation = PvzConfig(rows=5, columns=6)
    success_score = 64.0
    players: ClassVar[Mapping[str, Player]] = {
        "random": _random,
        "expert": _expert,
        "nothing": _nothing,
        "shooter": _shooter,
        "wish_list": _wish_list,
    }
    reader = PvzReader()
    palette: ClassVar[Mapping[str, str]] = {
        rf"\b[{''.join(PLANTS)}]\d*\b": "green",
        rf"\b[{''.join(ZOMBIES)}]\d*\b": "red",
    }

    def reset(self, config: PvzConfig, seed: int) -> PvzState:
        """An empty field; every zombie that may come is drawn ahead."""
        rng = stream(seed, "chance")
        turns = max(config.horizon, DRAWN_AHEAD)
        letters: list[str] = []
        for kinds, stop in zip(KINDS_FROM.values(), [*KINDS_FROM, turns][1:], strict=True):
            letters += rng.choices(kinds, k=_arrived(stop) - len(letters))
        rows = rng.choices(range(config.rows), k=len(letters))
        lawn = Lawn(config.rows, config.columns, FIRST_SUN, (), ())
        return PvzState(config=config, lawn=lawn, coming=tuple(zip(rows, letters, strict=True)))

    def view(self, state: PvzState) -> PvzView:
        """Everything but the zombies to come."""
        config, lawn = state.config, state.lawn
        if not config.is_hp_shown:
            plants = tuple(plant._replace(hp=PLANTS[plant.letter].hp) for plant in lawn.plants)
            zombies = tuple(zombie._replace(hp=ZOMBIES[zombie.letter].hp) for zombie in lawn.zombies)
            lawn = lawn._replace(plants=plants, zombies=zombies)
        return PvzView(state.step_index, config.horizon, config.is_hp_shown, lawn)

    def render(self, view: PvzView) -> str:
        """Step, sun and the field; what shares a cell is joined by ``+``, the plant first."""
        rows, columns, sun, plants, zombies = view.lawn
        cells = ["."] * (rows * columns)
        for cell, letter, hp in plants:
            cells[cell] = f"{letter}{hp}" if view.is_hp_shown else letter
        for cell, letter, hp in zombies:
            name = f"{letter}{hp}" if view.is_hp_shown else letter
            cells[cell] = name if cells[cell] == "." else f"{cells[cell]}+{name}"
        field = _template(rows, columns, max(map(len, cells))) % tuple(cells)
        return f"{numbered(view.step_index, view.horizon)}. Sun: {sun}.\n{field}"

    def rules(self, config: PvzConfig) -> str:
        """Field, plants, zombies, the order of a turn, and what an answer is."""
        plants = "; ".join(
            f"{letter} {NAMES[letter]}, {kind.cost} sun, {kind.hp} hp: {EFFECTS[letter]}"
            for letter, kind in PLANTS.items()
        )
        zombies = "; ".join(f"{letter} {NAMES[letter]}, {kind.hp} hp" for letter, kind in ZOMBIES.items())
        _, second, third = [1 + turn for turn in KINDS_FROM]
        unusable = "ends the episode" if config.unusable_ends else "is played as none"
        shown = "with their hit points (hp)" if config.is_hp_shown else "without their hit points (hp)"
        return (
            f"Plants-vs-Zombies: you hold a field of {config.rows} rows and {config.columns} columns for at most "
            f"{config.horizon} steps. A step is a turn. Rows 0 to {config.rows - 1} run top to bottom, columns 0 to "
            f"{config.columns - 1} from your house on the left to where zombies come in on the right.\n"
            f"The field shows plants and zombies by letter, {shown}; what shares a cell is joined by +, and . is an "
            "empty cell.\n"
            f"Plants: {plants}.\n"
            f"Zombies: {zombies}. A bite takes 1 hp, that of I takes {ZOMBIES['I'].bite}.\n"
            f"You start with {FIRST_SUN} sun. Each turn, in this order: 1. You plant, in the order you name; a cell "
            "holds one plant, and a zombie in it does not matter. 2. Chilies. 3. Sunflowers. 4. Shooters in the order "
            "of planting; each hits the nearest zombie at or right of its own column. 5. Zombies in the order in "
            "which they came: one in a cell with a plant bites it, any other moves one column to the left. "
            f"6. New zombies. 7. You get {SUN_A_TURN} sun.\n"
            f"New zombies come into the last column in steps 1, {1 + WAVE_EVERY}, {1 + 2 * WAVE_EVERY} and so on, "
            f"each in a random row: 1 at a time at first, and one more at a time after every {STRONGER_EVERY} steps, "
            f"when new zombies also have {HP_MORE} hp more. They are N at first, N or R from step {second}, any kind "
            f"from step {third}.\n"
            "When a zombie leaves column 0 to the left, it reaches the house: the others still move, and the episode "
            "ends.\n"
            "The score of the episode is the number of turns in which no zombie reached the house. The reward of a "
            "step is 1 for such a turn, else 0.\n"
            "A command that is off the field, for a cell with a plant or too dear is skipped and the others are "
            "carried out. An answer that cannot be read as a whole, or of which nothing can be carried out, "
            f"{unusable}.\n"
            "Action: commands separated by ; each a plant's letter, a row and a column, for example: X 2 0; W 1 3 - "
            f"or {NOTHING} to plant nothing."
        )

    def parse(self, text: str, view: PvzView) -> Parsed:
        """Commands separated by semicolons, each with any brackets or none."""
        if text == NOTHING:
            return Parsed("ok", NOTHING)
        plain = tidy(text)
        if plain.count(";") >= view.lawn.rows * view.lawn.columns:
            return Parsed("invalid", None, "More commands than the field has cells: nothing planted.")
        commands = _read_commands(plain)
        if commands is None:
            if word(text, _NOTHING):
                return Parsed("repaired", NOTHING)
            return Parsed("unparsable", None, "Neither commands nor none: nothing planted.")
        _, refusals = place(view.lawn, commands)
        if len(refusals) == len(commands):
            return Parsed(STATUS_OF[refusals[0]], None, f"Nothing planted: {_reasons(refusals)}.")
        action = _write(commands)
        return Parsed.of(text, action)

    def step(self, state: PvzState, action: str) -> Outcome:
        """Plants what can be planted and plays the turn."""
        if action == NOTHING:
            return _turn(state, state.lawn, "")
        lawn, refusals = place(state.lawn, _read_commands(action) or [])
        return _turn(state, lawn, f"Skipped: {_reasons(refusals)}." if refusals else "")

    def spoil(self, state: PvzState, feedback: str) -> Outcome:
        """The turn is played with nothing planted, unless an unusable answer ends the episode."""
        if state.config.unusable_ends:
            return super().spoil(state, feedback)
        return _turn(state, state.lawn, feedback)

    def layout(self, state: PvzState) -> str:
        """The size of the field and the zombies to come."""
        coming = " ".join(f"{letter}{row}" for row, letter in state.coming)
        return f"{state.lawn.rows} x {state.lawn.columns}: {coming}"

    def reward_range(self, config: PvzConfig) -> tuple[float, float]:
        """A lost turn, a survived one."""
        return 0.0, 1.0

    def smallest_positive_score(self, config: PvzConfig) -> float:
        """One turn."""
        return 1.0

    def exact_anchor(self, config: PvzConfig, player: str) -> tuple[float, float] | None:
        """Without plants the first zombie walks straight through: as many turns as there are columns."""
        return (float(min(config.columns, config.horizon)), 0.0) if player == "nothing" else None


def _turn(state: PvzState, planted: Lawn, feedback: str) -> Outcome:
    """All that happens after planting."""
    (rows, columns, sun, plants, zombies), is_through = act(planted)
    config, turn = state.config, state.step_index
    if not is_through:
        sun += SUN_A_TURN
        if turn % WAVE_EVERY == 0:
            more = HP_MORE * (turn // STRONGER_EVERY)
            wave = state.coming[_arrived(turn) : _arrived(turn + 1)]
            zombies += tuple([Zombie(row * columns + columns - 1, kind, ZOMBIES[kind].hp + more) for row, kind in wave])
    after = PvzState(
        config=config,
        step_index=turn + 1,
        end_reason="breach" if is_through else None,
        lawn=Lawn(rows, columns, sun, plants, zombies),
        coming=state.coming,
    )
    return Outcome(after, 0.0, BREACH) if is_through else Outcome(after, 1.0, feedback)


@cache
def _arrived(turn: int) -> int:
    """How many zombies come in before ``turn``."""
    return sum(1 + wave // STRONGER_EVERY for wave in range(0, turn, WAVE_EVERY))


def _read_commands(text: str) -> list[Command] | None:
    """The commands of a tidy text; None when anything in it is none."""
    commands = []
    for piece in text.split(";"):
        match = _COMMAND.fullmatch(piece.strip())
        if match is None:
            return None
        letter, row, column = match.groups()
        commands.append(Command(letter.upper(), whole(row), whole(column)))
    return commands


def _reasons(refusals: Sequence[str]) -> str:
    """Each reason once, in the order in which they came up."""
    return ", ".join(dict.fromkeys(refusals))


@cache
def _template(rows: int, columns: int, width: int) -> str:
    """A format for the cells of a field, with its headers."""
    line = f" %-{width}s" * (columns - 1) + " %s"
    return "\n".join([f"column{line % (*range(columns),)}", *(f"row {row} {line}" for row in range(rows))])


GAME = Pvz()
