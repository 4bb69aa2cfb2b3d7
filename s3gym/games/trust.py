"""Trust Evolution: ten rounds of a repeated prisoner's dilemma against one unknown strategy.

Rules: both choose at once. Pay-off to the player: both collaborate +2; collaborate against cheat -1; cheat against
    collaborate +3; both cheat 0. The opponent follows one of seven deterministic strategies, never named.
Observation: the record of the rounds played, as ``player/opponent`` pairs.
Actions: ``collaborate`` or ``cheat``.
Verifier reward: the pay-off of the round; the final score is their sum (-10 to 30).
Episode end: after the last round. An unusable answer uses the round up, pays 0 and enters nobody's record.
Instances and splits: seven instances in all, one an opponent, so both phases share them and say so. Exploration is
    biased to the easier strategies; evaluation takes the opponents in turn, each once in seven episodes.
Version history: 1, first version.
Source: the mechanics of KORGym's game 26 and N. Case, "The Evolution of Trust" (2017), with copykitten and stubborn
    as their names say (retaliate after two defections in a row; win-stay, lose-shift).
"""

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from math import sqrt
from typing import ClassVar, NamedTuple

from s3gym.games.base import Config, Fact, Facts, Game, Move, Outcome, Parsed, Player, Reader, stream

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


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustConfig(Config):
    """How long a match is and whom it is played against."""

    horizon: int = 10
    opponent_weights: tuple[float, ...] | None = None
    """Chance of each strategy in the order of OPPONENTS; None takes them in turn by ``seed % 7``."""


@dataclass(frozen=True, slots=True)
class TrustState:
    """The match so far; ``opponent`` is hidden."""

    config: TrustConfig
    opponent: str
    round_index: int
    record: Record


class TrustView(NamedTuple):
    """What the player knows."""

    round_index: int
    horizon: int
    record: Record


# --- players ---------------------------------------------------------------------------------------------------


def _random(view: TrustView, rng: random.Random) -> Move:
    return Move(rng.choice((C, D)), None)


def _always(action: str) -> Player:
    def play(view: TrustView, rng: random.Random) -> Move:
        return Move(action, None)

    return play


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
    _, action, expected = _best(view.record, view.horizon - view.round_index)
    return Move(action, expected)


# --- a learner's eyes ------------------------------------------------------------------------------------------


class TrustReader(Reader):
    """Reads the record; learns how the other side answers to the last two rounds."""

    def actions(self, observation: str) -> list[str]:
        """Both choices."""
        return [C, D]

    def facts(self, before: str, action: str, after: str) -> Iterable[Fact]:
        """The other side's answer, by what the last one and the last two rounds were."""
        old, new = _read_record(before), _read_record(after)
        if len(new) != len(old) + 1 or new[: len(old)] != old or new[-1][0] != action:
            return []
        return [(_situation(old, depth), "*", new[-1][1]) for depth in (1, 2)]

    def choose(self, observation: str, facts: Facts, rng: random.Random) -> Move:
        """Plans the rest of the match over two-round situations; tries what it has never tried here."""
        record = _read_record(observation)
        rounds = _read_rounds_left(observation)
        values: dict[str, float] = {}
        plan: dict[tuple[Record, int], float] = {}
        chance = _chance_of_collaboration(record, facts)
        for action in (C, D):
            values[action] = _action_value(record, action, rounds, facts, plan)
        best = max(values.values())
        action = rng.choice([name for name in (C, D) if values[name] >= best - 1e-9])
        if chance is None:
            return Move(action, None)
        return Move(action, round(chance * PAYOFF[action, C] + (1 - chance) * PAYOFF[action, D], 3))

    def glance(self, observation: str, action: str) -> float:
        """The pay-off against a fair coin, from the stated table."""
        return (PAYOFF[action, C] + PAYOFF[action, D]) / 2 if action in (C, D) else 0.0


def _situation(record: Record, depth: int) -> str:
    recent = record[-depth:]
    return f"after {' '.join(f'{mine}/{theirs}' for mine, theirs in recent)}" if recent else "first round"


def _chance_of_collaboration(record: Record, facts: Facts) -> float | None:
    """Share of collaboration seen after such rounds, the longer memory first; None when never seen."""
    for depth in (2, 1):
        seen = facts.get((_situation(record, depth), "*"))
        if seen:
            return seen.get(C, 0) / sum(seen.values())
    return None


def _action_value(
    record: Record, action: str, rounds: int, facts: Facts, plan: dict[tuple[Record, int], float]
) -> float:
    chance = _chance_of_collaboration(record, facts)
    chance = 0.5 if chance is None else chance
    value = 0.0
    for answer, weight in ((C, chance), (D, 1 - chance)):
        if weight:
            following = (*record, (action, answer))[-2:]
            value += weight * (PAYOFF[action, answer] + _plan_value(following, rounds - 1, facts, plan))
    return value


def _plan_value(record: Record, rounds: int, facts: Facts, plan: dict[tuple[Record, int], float]) -> float:
    if rounds <= 0:
        return 0.0
    key = (record, rounds)
    if key not in plan:
        if _chance_of_collaboration(record, facts) is None:
            plan[key] = float(PAYOFF[D, C] * rounds)  # never seen: worth finding out
        else:
            plan[key] = max(_action_value(record, action, rounds, facts, plan) for action in (C, D))
    return plan[key]


def _read_record(text: str) -> Record:
    for line in text.splitlines():
        if line.startswith("Record") and ":" in line:
            pairs = line.split(":", 1)[1].split()
            return tuple((mine, theirs) for mine, theirs in (pair.split("/") for pair in pairs if "/" in pair))
    return ()


def _read_rounds_left(text: str) -> int:
    for line in text.splitlines():
        if line.startswith("Round "):
            words = line.rstrip(".").split()
            return int(words[3]) - int(words[1]) + 1
    return 1


# --- the game --------------------------------------------------------------------------------------------------


class Trust(Game[TrustConfig, TrustState, TrustView]):
    """See the card at the top of the file."""

    id = "trust"
    VERSION = 1
    unit = "points"
    exploration = TrustConfig(opponent_weights=EASY)
    evaluation = TrustConfig()
    is_instances_shared = True
    success_score = 15.0
    players: ClassVar[Mapping[str, Player]] = {
        "random": _random,
        "expert": _expert,
        "collaborator": _always(C),
        "cheater": _always(D),
        "tit_for_tat": _tit_for_tat,
    }
    reader = TrustReader()

    def reset(self, config: TrustConfig, seed: int) -> TrustState:
        """Draws the opponent: by the weights, or in turn when there are none."""
        if config.opponent_weights is None:
            opponent = OPPONENTS[seed % len(OPPONENTS)]
        else:
            opponent = stream(seed, "opponent").choices(OPPONENTS, weights=config.opponent_weights)[0]
        return TrustState(config, opponent, 0, ())

    def view(self, state: TrustState) -> TrustView:
        """Everything but the opponent's strategy."""
        return TrustView(state.round_index, state.config.horizon, state.record)

    def render(self, view: TrustView) -> str:
        """Round number and the record of the rounds that counted."""
        record = " ".join(f"{mine}/{theirs}" for mine, theirs in view.record) or "none"
        number = min(view.round_index + 1, view.horizon)
        return f"Round {number} of {view.horizon}.\nRecord (you/opponent): {record}"

    def rules(self, config: TrustConfig) -> str:
        """The pay-off table and the length of the match."""
        return (
            f"Trust: you play {config.horizon} rounds against one opponent. In each round both sides choose at the "
            "same time to collaborate or to cheat.\n"
            "Your points a round: both collaborate +2; you collaborate and the opponent cheats -1; you cheat and the "
            "opponent collaborates +3; both cheat 0.\n"
            "The opponent follows one fixed strategy through the whole match and may react to what you did before. "
            "An answer that is neither choice uses the round up for 0 points and is not recorded.\n"
            "The score of the match is the sum of your points. The reward of a step is the points of that round.\n"
            "Action: collaborate or cheat."
        )

    def parse(self, text: str, view: TrustView) -> Parsed:
        """One of the two words, in any case."""
        word = text.strip().strip(".'\"()[]").lower()
        if word in (C, D):
            return Parsed("ok" if text == word else "repaired", word)
        return Parsed("invalid", None, "Neither collaborate nor cheat: the round is used up.")

    def step(self, state: TrustState, action: str) -> Outcome:
        """Plays a round."""
        answer = STRATEGIES[state.opponent](state.record)
        after = replace(state, round_index=state.round_index + 1, record=(*state.record, (action, answer)))
        return Outcome(after, float(PAYOFF[action, answer]), f"The opponent chose to {answer}.", _end(after))

    def spoil(self, state: TrustState, feedback: str) -> Outcome:
        """The round is gone for 0 points; neither side remembers it."""
        after = replace(state, round_index=state.round_index + 1)
        return Outcome(after, 0.0, feedback, _end(after))

    def config_of(self, state: TrustState) -> TrustConfig:
        """The configuration."""
        return state.config

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
        weights = config.opponent_weights or UNIFORM
        choices = [C, D] if player == "random" else [None]
        mean = square = 0.0
        for opponent, weight in zip(OPPONENTS, weights, strict=True):
            lines = list(product(choices, repeat=config.horizon)) if player == "random" else [()]
            for line in lines:
                score = self._match(config, opponent, player, line)
                mean += weight * score / len(lines)
                square += weight * score**2 / len(lines)
        return mean, sqrt(max(square - mean**2, 0.0))

    def _match(self, config: TrustConfig, opponent: str, player: str, line: tuple[str | None, ...]) -> float:
        state, total = TrustState(config, opponent, 0, ()), 0.0
        unused = random.Random(0)
        for index in range(config.horizon):
            action = (line[index] if line else None) or self.players[player](self.view(state), unused).action
            outcome = self.step(state, action)
            state, total = outcome.state, total + outcome.reward
        return total


def _end(state: TrustState) -> str | None:
    return "last_round" if state.round_index >= state.config.horizon else None


GAME = Trust()
