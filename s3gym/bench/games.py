"""Environment steps per second of a game: CPU time on one core, a random policy, no model.

Two loops are timed: ``loop`` resets, lets the policy choose and applies its answer; ``loop + prompt`` also makes the
texts an agent would be shown. Where the time goes is measured apart, on moments recorded from a pass, so that no
clock runs inside the loops.
"""

import random
from collections.abc import Callable
from time import process_time
from typing import Any, NamedTuple

from s3gym.games.base import Config, Game

POLICY = "random"
PASS_SECONDS = 2.0
"""A pass over a slow game begins no new episode after so much CPU time."""

Moment = tuple[Any, Any, str]
"""(state, view, chosen action) of one step."""


class Pass(NamedTuple):
    """Whole episodes, seeded 0, 1, 2, ..., played in one go."""

    step_count: int
    episode_count: int
    seconds: float
    """CPU time."""

    @property
    def steps_per_second(self) -> float:
        """Steps per CPU second."""
        return self.step_count / self.seconds


class Parts(NamedTuple):
    """CPU seconds that the parts of one pass take, each timed alone."""

    reset: float
    player: float
    """The view and the random policy."""
    step: float
    text: float
    """An observation a step and the rules once an episode."""

    def shares(self) -> dict[str, float]:
        """Each part's share of their sum."""
        return {name: seconds / sum(self) for name, seconds in self._asdict().items()}


class Speed(NamedTuple):
    """One game's best passes."""

    game: str
    phase: str
    loop: Pass
    prompt: Pass
    parts: Parts

    @property
    def resets_per_second(self) -> float:
        """Start states per CPU second."""
        return self.loop.episode_count / self.parts.reset


def measure(game: Game[Any, Any, Any], phase: str, steps: int, repeat: int, on_repeat: Callable[[], None]) -> Speed:
    """The best of ``repeat`` rounds, taken in turn so that a bad moment of the machine hits all alike.

    Args:
        game: what is played.
        phase: on which of its configurations.
        steps: a pass ends with the first episode that reaches so many.
        repeat: rounds, at least 1.
        on_repeat: called after each.
    """
    config = getattr(game, phase)
    loops, prompts, parts = [], [], []
    for _ in range(repeat):
        loops.append(play(game, config, steps))
        prompts.append(play(game, config, steps, is_shown=True))
        parts.append(time_parts(game, config, loops[0].step_count))
        on_repeat()
    best_parts = Parts(*(min(seconds) for seconds in zip(*parts, strict=True)))
    return Speed(game.id, phase, _best(loops), _best(prompts), best_parts)


def play(
    game: Game[Any, Any, Any],
    config: Config,
    steps: int,
    *,
    is_shown: bool = False,
    seconds: float = PASS_SECONDS,
    moments: list[Moment] | None = None,
) -> Pass:
    """Plays episodes seeded 0, 1, 2, ... to their ends until ``steps`` are taken or ``seconds`` are over; one at least.

    The policy has one generator for the whole pass, as the reference's had; every pass plays the same. ``moments``,
    when given, is filled with the steps played.
    """
    player, rng = game.players[POLICY], random.Random(0)
    step_count = seed = 0
    started = process_time()
    while not seed or (step_count < steps and process_time() - started < seconds):
        state = game.reset(config, seed)
        if is_shown:
            game.rules(config)
        while state.end_reason is None and state.step_index < config.horizon:
            view = game.view(state)
            if is_shown:
                game.render(view)
            action = player(view, rng).action
            if moments is not None:
                moments.append((state, view, action))
            state = game.take(state, action).outcome.state
            step_count += 1
        seed += 1
    return Pass(step_count, seed, process_time() - started)


def time_parts(game: Game[Any, Any, Any], config: Config, steps: int) -> Parts:
    """The parts of a pass, each over all its moments in a loop of its own."""
    moments: list[Moment] = []
    player, rng = game.players[POLICY], random.Random(0)
    seeds = range(play(game, config, steps, seconds=float("inf"), moments=moments).episode_count)

    def reset() -> None:
        for seed in seeds:
            game.reset(config, seed)

    def choose() -> None:
        for state, _, _ in moments:
            player(game.view(state), rng)

    def step() -> None:
        for state, _, action in moments:
            game.take(state, action)

    def text() -> None:
        for _ in seeds:
            game.rules(config)
        for _, view, _ in moments:
            game.render(view)

    return Parts(*(_cpu_seconds(part) for part in (reset, choose, step, text)))


def _cpu_seconds(work: Callable[[], None]) -> float:
    started = process_time()
    work()
    return process_time() - started


def _best(passes: list[Pass]) -> Pass:
    return max(passes, key=lambda one: one.steps_per_second)
