"""Plays episodes and writes down what can be seen from outside; what the tests over all games share."""

import itertools
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

STEPS = 12
"""Steps looked at where whole episodes would tell no more; experts of some games are slow."""
Choose = Callable[[Any, str], str | None]
"""From view and observation to the answer; None stops."""


class Played(NamedTuple):
    """One step as seen from outside."""

    before: str
    answer: str
    status: str
    action: str | None
    reward: float
    feedback: str
    end_reason: str | None
    after: str


def follow(game: Any, config: Any, seed: int, choose: Choose) -> Iterator[Played]:
    """Plays to the end, to the horizon, or until ``choose`` has nothing more to say."""
    state = game.reset(config, seed)
    for _ in range(config.horizon):
        view = game.view(state)
        before = game.render(view)
        answer = choose(view, before)
        if answer is None:
            return
        taken = game.take(state, answer)
        outcome = taken.outcome
        state = outcome.state
        after = game.render(game.view(state))
        yield Played(
            before, answer, taken.status, taken.action, outcome.reward, outcome.feedback, outcome.end_reason, after
        )
        if outcome.end_reason:
            return


def by_texts(texts: Iterable[str]) -> Choose:
    """Says ``texts`` in turn."""
    rest = iter(texts)
    return lambda view, before: next(rest, None)


def by_player(game: Any, name: str, seed: int) -> Choose:
    """Says what a scripted player plays."""
    rng = random.Random(seed)
    return lambda view, before: game.players[name](view, rng).action


def played(game: Any, config: Any, seed: int = 1, player: str = "random", count: int = STEPS) -> list[Played]:
    """The first steps of a scripted player's episode."""
    return list(itertools.islice(follow(game, config, seed, by_player(game, player, seed)), count))


def states(game: Any, config: Any, seed: int = 2, player: str = "random", count: int = STEPS) -> list[Any]:
    """The start of an episode and the states after it, as long as it goes on."""
    found, rng = [game.reset(config, seed)], random.Random(seed)
    for _ in range(min(count, config.horizon) - 1):
        outcome = game.take(found[-1], game.players[player](game.view(found[-1]), rng).action).outcome
        if outcome.end_reason:
            break
        found.append(outcome.state)
    return found
