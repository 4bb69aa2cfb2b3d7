"""What missing work will take: calls, tokens and dollars, each with a lowest and a highest.

Both ends are meant to hold. An episode has one step at least (its horizon, where its game says that it always lasts so
long), and its horizon at most. Prompts grow within it and with the experience, as ``protocol.prompts`` and the pathways
write them. A reply has one token at least and ``max_output_tokens`` at most. How long states and answers are is seen by
playing a few episodes. Not in it: calls made again after a failure. Counted like the others though they cost nothing:
calls that the journal can answer.
"""

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

from s3gym.games.base import Config, Game
from s3gym.models.base import Model, estimate_tokens
from s3gym.models.prices import FREE, Prices
from s3gym.pathways.memory import memory_messages
from s3gym.pathways.training import correction_messages
from s3gym.plan import Stage
from s3gym.protocol.prompts import judgment_messages, step_messages
from s3gym.protocol.rollout import WRITTEN_LIMIT
from s3gym.subjects import Subject
from s3gym.transcript import AGENT, ENV, EPISODE_END, answer_line, env_text, experience_block

SHORTER, LONGER = 0.5, 1.25
"""States may be so many times as long as the shortest and the longest that were seen."""
ESTIMATED_LOW = 0.9
"""Fewest tokens for one of the stated estimate: prose has up to 4.3 characters each."""
PIECE_HIGH = 1.5
"""Most tokens for a piece of text, where no tokenizer is at hand: 1.4 on the densest board of our games."""
EXACT_MARGIN = 0.05
"""With a tokenizer: the tokens of a text are not quite the sum of those of its parts."""
MESSAGE_TOKENS = 8
"""Most tokens that mark a message and its role."""
CHANCE_SEEDS = (1, 2, 3)

_PIECE = re.compile(r"[A-Za-z]{1,5}|\d|[^\w\s]|\n| {2}")
_SHORTEST_ANSWER = answer_line("A", None)
_LONGEST_SCORE = -1234.56
_PROSE = ("some words " * WRITTEN_LIMIT)[:WRITTEN_LIMIT]


class Span(NamedTuple):
    """The lowest and the highest amount."""

    low: float
    high: float

    def plus(self, *others: "Span") -> "Span":
        """Both ends summed."""
        return Span(self.low + sum(other.low for other in others), self.high + sum(other.high for other in others))

    def times(self, count: float) -> "Span":
        """Both ends, ``count`` times."""
        return Span(self.low * count, self.high * count)


NOTHING, ONCE = Span(0, 0), Span(1, 1)
Measure = Callable[[str], Span]
"""Tokens of a text."""
Work = Iterable[tuple[Stage, Sequence[tuple[int, int]]]]
"""Stages, each with the episode ranges it still lacks, as ``plan.missing`` gives them."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What one model, or all of them, will take."""

    model_id: str
    intervention: str | None
    """What it adds to what is done without any; None for all of them."""
    is_free: bool
    """A scripted player: its calls cost nothing, and no tokens are reported of them."""
    calls: Span
    prompt_tokens: Span
    completion_tokens: Span
    """Reasoning included."""
    dollars: Span | None
    """None where a price is unknown."""


def estimate(work: Work, prices: Mapping[str, Prices | None]) -> list[Estimate]:
    """One estimate a model and intervention, in the order of the work.

    What cells with an intervention share with those without is counted once, as ``main``.

    Args:
        work: what is missing.
        prices: model id to what its tokens cost; None where that is unknown.
    """
    sizes: dict[tuple[Subject, Model], _Sizes] = {}
    models: dict[str, Model] = {}
    takings: dict[tuple[str, str], list[tuple[Span, Span, Span]]] = {}
    for stage, gaps in work:
        subject = stage.subject
        model = models.setdefault(stage.model.model_id, stage.model)
        own = sizes.setdefault((subject, model), _Sizes(subject, model))
        for first, last in gaps:
            for calls, prompts in _calls(stage, first, last, own):
                replies = Span(calls.low, calls.high * subject.decoding.max_output_tokens)
                takings.setdefault((model.model_id, subject.intervention), []).append((calls, prompts, replies))
    estimates = []
    for (name, intervention), taken in takings.items():
        calls, prompts, replies = (NOTHING.plus(*column) for column in zip(*taken, strict=True))
        rate = FREE if models[name].is_free else prices.get(name)
        estimates.append(
            Estimate(
                name, intervention, models[name].is_free, calls, prompts, replies, _dollars(prompts, replies, rate)
            )
        )
    return estimates


def most_calls(work: Work) -> int:
    """The highest number of calls alone, for which nothing has to be played."""
    calls = 0
    for stage, gaps in work:
        subject, is_asked, is_corrected = stage.subject, _is_asked(stage), _is_corrected(stage)
        for first, last in gaps:
            if stage.kind == "evaluate":
                calls += (last - first) * subject.evaluation.horizon
            elif stage.kind == "explore":
                calls += (last - first) * subject.exploration.horizon + (last - first - 1) * is_asked
            elif stage.kind == "self_judge":
                calls += last - first
            else:
                calls += is_asked + is_corrected * (last - first) * subject.exploration.horizon
    return calls


def total(estimates: Sequence[Estimate]) -> Estimate:
    """All of them; of free ones the calls alone."""
    paid = [each for each in estimates if not each.is_free]
    dollars = [each.dollars for each in paid if each.dollars is not None]
    return Estimate(
        "total",
        None,
        not paid,
        NOTHING.plus(*(each.calls for each in estimates)),
        NOTHING.plus(*(each.prompt_tokens for each in paid)),
        NOTHING.plus(*(each.completion_tokens for each in paid)),
        NOTHING.plus(*dollars) if len(dollars) == len(paid) else None,
    )


def _dollars(prompts: Span, replies: Span, prices: Prices | None) -> Span | None:
    """At the lowest a provider's cache serves every prompt token, at the highest each is put into it."""
    if prices is None:
        return None
    return Span(
        prompts.low * min(prices.prompt_usd, prices.cached_usd) + replies.low * prices.completion_usd,
        prompts.high * max(prices.prompt_usd, prices.written_usd) + replies.high * prices.completion_usd,
    )


def _calls(stage: Stage, first: int, last: int, sizes: "_Sizes") -> Iterator[tuple[Span, Span]]:
    """Calls and prompt tokens of what makes episodes ``first`` to ``last`` of a stage, piece by piece."""
    is_asked = _is_asked(stage)
    if stage.kind == "evaluate":
        experience = sizes.experience(stage.checkpoint if stage.experience else 0)
        yield from [sizes.evaluation.episode(experience)] * (last - first)
    elif stage.kind == "explore":
        for index in range(first, last):
            if is_asked and index > first:  # before the first, ``build_experience`` made the call
                yield ONCE, sizes.memory_call(index)
            yield sizes.exploration.episode(sizes.experience(index))
    elif stage.kind == "self_judge":
        yield from [(ONCE, sizes.judge_call)] * (last - first)
    elif is_asked:
        yield ONCE, sizes.memory_call(last)
    elif _is_corrected(stage):
        yield from [sizes.corrections] * (last - first)


def _is_asked(stage: Stage) -> bool:
    """Whether the model is asked for its experience: an explorer carries none from episode to episode."""
    subject = stage.subject
    is_given = subject.replaced.guide or (stage.kind == "explore" and subject.explorer)
    return subject.pathway.IS_MODEL_ASKED and not is_given


def _is_corrected(stage: Stage) -> bool:
    return stage.subject.pathway.IS_TRAINED and stage.subject.training.correct


class _Sizes:
    """How many tokens the prompts of one cell have."""

    def __init__(self, subject: Subject, model: Model) -> None:
        self._subject = subject
        self._rules = subject.game.rules(subject.exploration)
        self._count = model.count_tokens
        self._is_explorer = model is subject.explorer
        is_exact = self._count(self._rules) != estimate_tokens(self._rules)
        self._measure = self._exact if is_exact else self._estimated

    @cached_property
    def exploration(self) -> "_Play":
        """An exploration episode."""
        return _Play(self._subject.game, self._subject.exploration, self._measure)

    @cached_property
    def evaluation(self) -> "_Play":
        """A held-out episode."""
        return _Play(self._subject.game, self._subject.evaluation, self._measure)

    def experience(self, episode_count: int) -> Span:
        """What is read of so many exploration episodes."""
        if not episode_count or self._subject.pathway.IS_TRAINED or self._is_explorer:
            return NOTHING
        replaced = self._subject.replaced
        if replaced.guide and not replaced.is_measured:
            content = self._measure(replaced.guide(self._subject.game.id).text)
        else:
            content = self._memory if self._subject.pathway.IS_MODEL_ASKED else self._history(episode_count)
        return content.plus(self._measure(experience_block("")))

    def memory_call(self, episode_count: int) -> Span:
        """The prompt of the call that sums up so many episodes."""
        content = self._history(episode_count)
        if self._subject.run.memory_source == "recursive" and episode_count > 1:
            content = self._history(1).plus(self._memory)
        return content.plus(self._message(memory_messages(self._rules, "")[0]["content"]))

    @property
    def corrections(self) -> tuple[Span, Span]:
        """Calls and prompts of those that ask for better actions in an episode: at most one a step."""
        calls, prompts = self.exploration.episode(NOTHING)
        (question,) = correction_messages((), "", -1234.56)[-1:]
        again = self._subject.decoding.max_output_tokens + self._message(question["content"]).high
        return Span(0, calls.high), Span(0, prompts.high + calls.high * again)

    @cached_property
    def judge_call(self) -> Span:
        """The prompt of the look back on one episode."""
        (message,) = judgment_messages(self._rules, "", self._subject.game.success_score)
        return self.exploration.transcript.plus(self._message(message["content"]))

    @property
    def _memory(self) -> Span:
        return Span(1, self._subject.decoding.max_output_tokens)

    def _history(self, episode_count: int) -> Span:
        """Transcripts up to the limit, which holds in the model's own count; whole steps are cut."""
        whole, limit = self.exploration.transcript.times(episode_count), self._subject.run.history_token_limit
        counted = self._counted.transcript.times(episode_count)
        fewest, most = self.exploration.density(self._counted)
        cut = Span(max(0.0, limit - self._counted.longest_segment) * fewest, limit * most)
        return Span(min(whole.low, cut.low), whole.high if counted.high <= limit else min(whole.high, cut.high))

    @cached_property
    def _counted(self) -> "_Play":
        """An exploration episode in the count that the limit holds in."""
        return _Play(self._subject.game, self._subject.exploration, lambda text: ONCE.times(self._count(text)))

    def _message(self, text: str) -> Span:
        return self._measure(text).plus(Span(0, MESSAGE_TOKENS))

    def _exact(self, text: str) -> Span:
        counted = self._count(text)
        return Span(counted * (1 - EXACT_MARGIN), counted * (1 + EXACT_MARGIN))

    def _estimated(self, text: str) -> Span:
        return Span(self._count(text) * ESTIMATED_LOW, max(self._count(text), PIECE_HIGH * len(_PIECE.findall(text))))


class _Play:
    """How many tokens an episode of one configuration has, by one measure."""

    def __init__(self, game: Game[Any, Any, Any], config: Config, measure: Measure) -> None:
        horizon = config.horizon
        is_certain = game.is_length_fixed and not config.unusable_ends
        self._steps = horizon if is_certain and config.end_policy == "invalid" else 1, horizon
        self._question = measure(step_messages(None, (), game.rules(config), "")[0]["content"])
        seen = sample(game, config)
        self.answers = [measure(_SHORTEST_ANSWER), measure(answer_line(_PROSE, _LONGEST_SCORE))]
        self.answers += [measure(answer_line(action, _LONGEST_SCORE)) for action in seen.longest_actions]
        self.states = [[measure(ENV + text) for text in texts] for texts in seen.states]
        self._answer = Span(self.answers[0].low, LONGER * max(answer.high for answer in self.answers))
        shortest = min(state.low for states in self.states for state in states)
        lows = [min((state.low for state in states), default=shortest) for states in self.states]
        highs = [max((state.high for state in states), default=0.0) for states in self.states]
        self._states = [
            Span(SHORTER * low, LONGER * high) for low, high in zip(lows, accumulate(highs, max), strict=True)
        ]
        self._marks = measure(f"{AGENT}\n\n").plus(measure(f"{EPISODE_END}\n"))

    @property
    def longest_segment(self) -> float:
        """Most tokens of a step of a transcript, the last one's closing state included."""
        return 2 * max(state.high for state in self._states) + self._answer.high + self._marks.high

    @cached_property
    def transcript(self) -> Span:
        """One episode as later prompts show it."""
        low, high = (
            sum(state[end] for state in self._states[: steps + 1]) + steps * self._answer[end]
            for end, steps in enumerate(self._steps)
        )
        return Span(low, high + self._steps[1] * self._marks.high)

    def density(self, counted: "_Play") -> Span:
        """Tokens for one of another measure, over all kinds of text."""
        own = [text for texts in (*self.states, self.answers) for text in texts]
        other = [text for texts in (*counted.states, counted.answers) for text in texts]
        pairs = list(zip(own, other, strict=True))
        return Span(min(a.low / b.high for a, b in pairs), max(a.high / b.low for a, b in pairs))

    def episode(self, experience: Span) -> tuple[Span, Span]:
        """Steps of an episode, and the tokens of all their prompts."""
        prompts = []
        for end, steps in enumerate(self._steps):
            fixed = self._question[end] + experience[end]
            earlier = accumulate((state[end] + self._answer[end] for state in self._states[:steps]), initial=0.0)
            now = (state[end] for state in self._states[:steps])
            prompts.append(sum(fixed + before + state for before, state in zip(earlier, now, strict=False)))
        marks = MESSAGE_TOKENS * self._steps[1] ** 2  # 1 + 3 + 5 + ... messages
        return Span(*self._steps), Span(prompts[0], prompts[1] + marks)


@dataclass(frozen=True, slots=True)
class Sample:
    """What a few episodes showed."""

    states: tuple[tuple[str, ...], ...]
    """By step: the texts of the environment; the last is the one after the horizon."""
    longest_actions: tuple[str, ...]
    """Of each episode."""


@lru_cache(maxsize=64)
def sample(game: Game[Any, Any, Any], config: Config) -> Sample:
    """Plays the expert, chance, and one who often cannot be read, on seeds of their own."""
    states: list[list[str]] = [[] for _ in range(config.horizon + 1)]
    longest = []
    for player, seed in (("expert", 1), *(("random", seed) for seed in CHANCE_SEEDS), ("unreadable", 1)):
        rng, state, feedback, actions = random.Random(seed), game.reset(config, seed), None, [""]
        for index in range(config.horizon):
            view = game.view(state)
            states[index].append(env_text(feedback, game.render(view)))
            is_readable = player != "unreadable" or index % 2 == 0
            text = game.players["random" if player == "unreadable" else player](view, rng).action
            taken = game.take(state, text if is_readable else _PROSE)
            actions.append(taken.action or "")
            state, feedback = taken.outcome.state, taken.outcome.feedback
            if taken.outcome.end_reason is not None:
                break
        states[state.step_index].append(env_text(feedback, game.render(game.view(state))))
        longest.append(max(actions, key=len))
    return Sample(tuple(map(tuple, states)), tuple(longest))
