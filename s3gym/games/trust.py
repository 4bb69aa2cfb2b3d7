"""Trust Evolution: ten rounds of a repeated prisoner's dilemma against one unknown strategy.

Rules: both choose at once. Pay-off to the player: both collaborate +2; collaborate against cheat -1; cheat against
    collaborate +3; both cheat 0. The opponent follows one of seven deterministic strategies, never named.
Observation: the record of the rounds played, as ``player/opponent`` pairs.
Actions: ``collaborate`` or ``cheat``.
Verifier reward: the pay-off of the round; the final score is their sum (-10 to 30).
Episode end: after the last round. An unusable answer uses the round up, pays 0 and enters nobody's record.
Instances and splits: seven instances in all, one an opponent, so both phases share them and say so. Exploration is
    biased to the easier strategies; evaluation takes the opponents in turn, each once in seven episodes.
Version history: 1, first version; 2, an answer that is neither choice is unparsable, no longer invalid.
Source: the mechanics of KORGym's game 26 and N. Case, "The Evolution of Trust" (2017), with copykitten and stubborn
    as their names say (retaliate after two defections in a row; win-stay, lose-shift).
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import pairwise, product, repeat
from math import inf, sqrt
from typing import ClassVar, Literal, NamedTuple

from s3gym.games._grammar import word
from s3gym.games.base import (
    UNUSABLE_ANSWER,
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

C, D = "collaborate", "cheat"
PAYOFF = {(C, C): 2, (C, D): -1, (D, C): 3, (D, D): 0}
Record = tuple[tuple[str, str], ...]
"""(player, opponent) a round."""


def _copycat(record: Record) -> str:
    return record[-1][0] if record else C


def _pink(record: Record) -> str:
    return C


def _cheater(record: Record) -> str:
    return D


def _grudger(record: Record) -> str:
    return D if any(mine == D for mine, _ in record) else C


def _detective(record: Record) -> str:
    opening = (C, D, C, C)
    if len(record) < len(opening):
        return opening[len(record)]
    return record[-1][0] if any(mine == D for mine, _ in record) else D


def _copykitten(record: Record) -> str:
    return D if len(record) >= 2 and record[-1][0] == record[-2][0] == D else C


def _stubborn(record: Record) -> str:
    if not record:
        return C
    mine, own = record[-1]
    return own if mine == C else (D if own == C else C)


STRATEGIES: dict[str, Callable[[Record], str]] = {
    "copycat": _copycat,
    "pink": _pink,
    "cheater": _cheater,
    "grudger": _grudger,
    "detective": _detective,
    "copykitten": _copykitten,
    "stubborn": _stubborn,
}
OPPONENTS = tuple(STRATEGIES)
EASY = (0.20, 0.30, 0.05, 0.10, 0.05, 0.20, 0.10)
"""Exploration weights, in the order of OPPONENTS: the easier a strategy, the more often it is met."""
UNIFORM = (1 / 7,) * 7
_PAIR = re.compile(rf"\b({C}|{D})/({C}|{D})\b")
_ROUND = re.compile(r"\bRound (\d+) of (\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustConfig(Config):
    """How long a match is and whom it is played against."""

    MOST_STEPS: ClassVar[int] = 14
    """The expert weighs every line of play that is left, and so does the exact anchor."""
    horizon: int = 10
    opponent_weights: tuple[float, ...] | None = None
    """Chance of each strategy in the order of OPPONENTS; None takes them in turn by ``seed % 7``."""

    def __post_init__(self) -> None:
        Config.__post_init__(self)
        if self.opponent_weights is not None and not _are_weights(self.opponent_weights):
            raise ValueError(
                f"opponent_weights is {self.opponent_weights!r}, expected {len(OPPONENTS)} non-negative numbers with a "
                f"positive sum: give one for each of {', '.join(OPPONENTS)}, or leave them out to take all in turn"
            )


def _are_weights(given: object) -> bool:
    return (
        isinstance(given, tuple)
        and len(given) == len(OPPONENTS)
        and all(type(weight) in (int, float) and weight >= 0 for weight in given)
        and 0 < sum(given) < inf
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustState(State[TrustConfig]):
    """The match so far; ``opponent`` is hidden. A step is a round."""

    opponent: str
    record: Record = ()


class TrustView(NamedTuple):
    """What the player knows."""

    step_index: int
    horizon: int
    record: Record


# --- players ---------------------------------------------------------------------------------------------------


def _random(view: TrustView, rng: random.Random) -> Move:
    return Move(rng.choice((C, D)), None)


def _always(action: str) -> Player:
    def play(view: TrustView, rng: random.Random) -> Move:
        return Move(action, None)

    return play


def _steady(view: TrustView, rng: random.Random) -> Move:
    """Random, but once only for each kind of last round: as it then reacted it goes on to react in this match.

    So a match shows what a way to play is worth, not only a choice.
    """
    record = view.record
    kind = record[-1:]
    earlier = [mine for index, (mine, _) in enumerate(record) if record[:index][-1:] == kind]
    return Move(earlier[0] if earlier else rng.choice((C, D)), None)


def _tit_for_tat(view: TrustView, rng: random.Random) -> Move:
    return Move(view.record[-1][1] if view.record else C, None)


@cache
def _best(record: Record, rounds: int) -> tuple[float, str, float]:
    """Expectimax over the strategies that fit ``record``: (value, action, its expected pay-off this round).

    The prior is uniform and strategies are deterministic, so the posterior is uniform over those that fit.
    """
    if rounds == 0:
        return 0.0, C, 0.0
    alive = [name for name in OPPONENTS if _fits(name, record)]
    best: tuple[float, str, float] | None = None
    for action in (C, D):
        answers = [STRATEGIES[name](record) for name in alive]
        value = now = 0.0
        for answer in sorted(set(answers)):
            chance = answers.count(answer) / len(alive)
            now += chance * PAYOFF[action, answer]
            value += chance * (PAYOFF[action, answer] + _best((*record, (action, answer)), rounds - 1)[0])
        if best is None or value > best[0] + 1e-12:
            best = (value, action, now)
    assert best is not None
    return best


@cache
def _fits(name: str, record: Record) -> bool:
    if not record:
        return True
    return _fits(name, record[:-1]) and STRATEGIES[name](record[:-1]) == record[-1][1]


def _expert(view: TrustView, rng: random.Random) -> Move:
    _, action, expected = _best(view.record, view.horizon - view.step_index)
    return Move(action, expected)


# --- a learner's eyes ------------------------------------------------------------------------------------------


KINDS: tuple[Record, ...] = ((), *(((mine, theirs),) for mine in (C, D) for theirs in (C, D)))
"""What the round before may have been; nothing before the first."""
Habit = dict[Record, str]
"""The latest answer in a match after each kind of round; what never came up is left out."""
Chances = tuple[float, ...]
"""How likely the other side collaborates, in the order of KINDS."""


class TrustReader(Reader):
    """Reads the record; takes the other side for any of those met whose answers fit this match.

    It knows the stated pay-offs. How anyone answers it learns from facts alone: one match met, one way to answer to
    the round before.
    """

    def actions(self, observation: str) -> list[str]:
        """Both choices."""
        return [C, D]

    def facts(self, before: str, action: str, after: str) -> Iterable[Fact]:
        """The answer, after the whole record before it: so matches can be told apart when facts are counted."""
        old, new = _read_record(before), _read_record(after)
        if not is_next_step(before, after) or len(new) != len(old) + 1 or new[:-1] != old or new[-1][0] != action:
            return []
        return [(f"after {_write(old)}" if old else "first round", action, new[-1][1])]

    def choose(self, observation: str, facts: Facts, rng: random.Random) -> Move:
        """What is worth most on average over those it may be playing; a coin where one choice was never tried."""
        record = _read_record(observation)
        kind, rounds = KINDS.index(record[-1:]), _read_rounds_left(observation)
        matches = sorted(_matches(facts))  # sums must not depend on the order of facts
        others = _possible_others([_habit(match) for match in matches], _habit(record))
        values = {action: sum(_value(chances, kind, action, rounds) for chances in others) for action in (C, D)}
        action = max(values, key=lambda name: values[name])
        is_tried = {C, D} <= {name for match in matches for name in _choices(match, KINDS[kind])}
        if rounds > 1 and not is_tried:  # what the last round would teach comes too late for this match
            action = rng.choice((C, D))
        if not matches:
            return Move(action, None)
        chance = sum(chances[kind] for chances in others) / len(others)
        return Move(action, round(chance * PAYOFF[action, C] + (1 - chance) * PAYOFF[action, D], 3))

    def glance(self, observation: str, action: str) -> float:
        """The pay-off against a fair coin, from the stated table."""
        return (PAYOFF[action, C] + PAYOFF[action, D]) / 2 if action in (C, D) else 0.0

    def expect(self, observation: str, action: str) -> float | None:
        """The pay-off against the share of collaboration that followed rounds like the last one in this match.

        With one round more, a collaboration in proportion to that of the whole match, which begins at one of two.
        """
        if action not in (C, D):
            return None
        record = _read_record(observation)
        answers = [theirs for _, theirs in record]
        alike = [after[1] for before, after in pairwise(record) if before == record[-1]]
        overall = (answers.count(C) + 1) / (len(answers) + 2)
        chance = (alike.count(C) + overall) / (len(alike) + 1)
        return round(chance * PAYOFF[action, C] + (1 - chance) * PAYOFF[action, D], 3)


def _matches(facts: Facts) -> Iterator[Record]:
    """The matches the facts come from, this one too: each record as often as it was not played on."""
    seen: Counter[Record] = Counter()
    played_on: Counter[Record] = Counter()
    for (situation, action), answers in facts.items():
        old = _read_record(situation)
        for answer, count in answers.items():
            seen[(*old, (action, answer))] += count
            played_on[old] += count
    for record, count in seen.items():
        yield from repeat(record, count - played_on[record])


@lru_cache(maxsize=4096)
def _habit(match: Record) -> Habit:
    return {match[:index][-1:]: answer for index, (_, answer) in enumerate(match)}


@lru_cache(maxsize=4096)
def _choices(match: Record, kind: Record) -> set[str]:
    return {mine for index, (mine, _) in enumerate(match) if match[:index][-1:] == kind}


def _possible_others(habits: list[Habit], own: Habit) -> list[Chances]:
    """All who do not contradict this match; where one was never seen, it is taken to be like the others."""
    fitting = [habit for habit in habits if all(habit.get(kind, answer) == answer for kind, answer in own.items())]
    overall = _share([answer for habit in habits for answer in habit.values()], 0.5)
    usual = {kind: _share([habit[kind] for habit in habits if kind in habit], overall) for kind in KINDS}
    return [
        tuple(float(habit[kind] == C) if kind in habit else usual[kind] for kind in KINDS) for habit in fitting or [own]
    ]


def _share(answers: list[str], otherwise: float) -> float:
    return answers.count(C) / len(answers) if answers else otherwise


@lru_cache(maxsize=65_536)
def _best_value(chances: Chances, kind: int, rounds: int) -> float:
    """Points to expect of the rounds left against one who is known."""
    return max(_value(chances, kind, action, rounds) for action in (C, D)) if rounds > 0 else 0.0


def _value(chances: Chances, kind: int, action: str, rounds: int) -> float:
    return sum(
        chance * (PAYOFF[action, answer] + _best_value(chances, KINDS.index(((action, answer),)), rounds - 1))
        for answer, chance in ((C, chances[kind]), (D, 1 - chances[kind]))
    )


def _write(record: Record) -> str:
    return " ".join(f"{mine}/{theirs}" for mine, theirs in record)


@lru_cache(maxsize=4096)
def _read_record(text: str) -> Record:
    return tuple(_PAIR.findall(text))


def _read_rounds_left(text: str) -> int:
    found = _ROUND.search(text)
    return int(found[2]) - int(found[1]) + 1 if found else 1


# --- the game --------------------------------------------------------------------------------------------------


class Trust(Game[TrustConfig, TrustState, TrustView]):
    """See the card at the top of the file."""

    id = "trust"
    VERSION = 2
    unit = "points"
    exploration = TrustConfig(opponent_weights=EASY)
    evaluation = TrustConfig()
    is_length_fixed = True
    is_instances_shared = True
    success_score = 15.0
    training_signal: ClassVar[Literal["score", "return"]] = "return"
    players: ClassVar[Mapping[str, Player]] = {
        "random": _random,
        "steady": _steady,
        "expert": _expert,
        "collaborator": _always(C),
        "cheater": _always(D),
        "tit_for_tat": _tit_for_tat,
    }
    reader = TrustReader()
    palette: ClassVar[Mapping[str, str]] = {r"\bcollaborate\b": "green", r"\bcheat\b": "red"}

    def reset(self, config: TrustConfig, seed: int) -> TrustState:
        """Draws the opponent: by the weights, or in turn when there are none."""
        if config.opponent_weights is None:
            opponent = OPPONENTS[seed % len(OPPONENTS)]
        else:
            opponent = stream(seed, "opponent").choices(OPPONENTS, weights=config.opponent_weights)[0]
        return TrustState(config=config, opponent=opponent)

    def view(self, state: TrustState) -> TrustView:
        """Everything but the opponent's strategy."""
        return TrustView(state.step_index, state.config.horizon, state.record)

    def render(self, view: TrustView) -> str:
        """Round number and the record of the rounds that counted."""
        number = numbered(view.step_index, view.horizon, "Round")
        return f"{number}.\nRecord (you/opponent): {_write(view.record) or 'none'}"

    def rules(self, config: TrustConfig) -> str:
        """The pay-off table and the length of the match."""
        unusable = "ends the match" if config.unusable_ends else "uses the round up for 0 points and is not recorded"
        return (
            f"Trust: you play {config.horizon} rounds against one opponent. In each round both sides choose at the "
            "same time to collaborate or to cheat.\n"
            "Your points a round: both collaborate +2; you collaborate and the opponent cheats -1; you cheat and the "
            "opponent collaborates +3; both cheat 0.\n"
            "The opponent follows one fixed strategy through the whole match and may react to what you did before. "
            f"An answer that is neither choice {unusable}.\n"
            "The score of the match is the sum of your points. The reward of a step is the points of that round.\n"
            "Action: collaborate or cheat."
        )

    def parse(self, text: str, view: TrustView) -> Parsed:
        """One of the two words, in any case."""
        action = word(text, (C, D))
        if action is None:
            return Parsed("unparsable", None, "Neither collaborate nor cheat: the round is used up.")
        return Parsed.of(text, action)

    def step(self, state: TrustState, action: str) -> Outcome:
        """Plays a round."""
        answer = STRATEGIES[state.opponent](state.record)
        after = _advance(state, (*state.record, (action, answer)), None)
        return Outcome(after, float(PAYOFF[action, answer]), f"The opponent chose to {answer}.")

    def spoil(self, state: TrustState, feedback: str) -> Outcome:
        """The round is gone for 0 points; neither side remembers it."""
        end_reason = UNUSABLE_ANSWER if state.config.unusable_ends else None
        return Outcome(_advance(state, state.record, end_reason), 0.0, feedback)

    def layout(self, state: TrustState) -> str:
        """The opponent and the length of the match."""
        return f"{state.opponent} {state.config.horizon}"

    def reward_range(self, config: TrustConfig) -> tuple[float, float]:
        """Lowest and highest pay-off."""
        return -1.0, 3.0

    def smallest_positive_score(self, config: TrustConfig) -> float:
        """One point."""
        return 1.0

    def strata(self, config: TrustConfig) -> int:
        """Seven where opponents are taken in turn."""
        return len(OPPONENTS) if config.opponent_weights is None else 1

    def exact_anchor(self, config: TrustConfig, player: str) -> tuple[float, float] | None:
        """Every line of play weighted by its chance; deterministic players have one line an opponent."""
        if player == "steady":
            return None
        weights = config.opponent_weights or UNIFORM
        lines: list[tuple[str, ...]] = [*product((C, D), repeat=config.horizon)] if player == "random" else [()]
        mean = square = 0.0
        for opponent, weight in zip(OPPONENTS, weights, strict=True):
            chance = weight / sum(weights) / len(lines)
            for line in lines:
                score = self._match(config, opponent, player, line)
                mean += chance * score
                square += chance * score**2
        return mean, sqrt(max(square - mean**2, 0.0))

    def _match(self, config: TrustConfig, opponent: str, player: str, line: tuple[str, ...]) -> float:
        state, total = TrustState(config=config, opponent=opponent), 0.0
        unused = random.Random(0)
        for index in range(config.horizon):
            action = line[index] if line else self.players[player](self.view(state), unused).action
            outcome = self.step(state, action)
            state, total = outcome.state, total + outcome.reward
        return total


def _advance(state: TrustState, record: Record, end_reason: str | None) -> TrustState:
    """The next round; there is none after the last."""
    step_index = state.step_index + 1
    if step_index >= state.config.horizon:
        end_reason = end_reason or "last_round"
    return replace(state, step_index=step_index, record=record, end_reason=end_reason)


GAME = Trust()
