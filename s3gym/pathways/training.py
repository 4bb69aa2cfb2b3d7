"""Training: steps the agent itself scored highly become the rows its weights are trained on.

Here is which steps those are, and how a better action is asked for; training them is the back end's. A step reaches
this module without its verifier reward: there is no field for it.
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from statistics import fmean
from typing import Literal

from s3gym.config import TrainingSettings
from s3gym.games.base import USABLE
from s3gym.models.base import TRUNCATED
from s3gym.transcript import Message

VERSION = 1
"""Covers the rules and the wording below."""
IS_CONTROL = False
IS_MODEL_ASKED = False
IS_TRAINED = True

Reason = Literal[
    "ranked_high",  # kept: in the share that ranks highest
    "above_threshold",  # kept: the rule ``above``
    "corrected",  # the model gave a better answer, and that is trained on
    "failed_call",
    "truncated_reply",  # cut off at the token limit
    "unusable_action",  # unparsable, invalid, illegal or ambiguous
    "no_self_score",
    "unknown_return",  # a later step of its episode has no self-score
    "ranked_low",  # below the share
    "below_threshold",
    "not_corrected",  # asked for a better action, the model gave none
    "too_long",  # more than ``row_tokens``
    "retokenised",  # its text, read again, gives other tokens than were written
]
"""The rule that decided, in a word."""

CORRECTABLE: tuple[Reason, ...] = ("ranked_low", "below_threshold")
"""Filtered because the agent itself thinks little of it: a better action may be asked for."""

CORRECTION = """\
You do not think highly of the action you gave: your own estimate of its reward was {self_score:g}, and other \
actions of yours in these episodes stand higher.
Decide again in the same state, on a different action that is better. What you write now will stand in place of the \
answer above, so write as if you saw the state for the first time: mention neither that answer nor this message. \
Finish with one line in the form that was asked for."""

DECIMALS = 9
"""Of a sum of scores: what differs by rounding alone is equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Considered:
    """One exploration step as the selection sees it."""

    episode_id: str
    step_index: int
    self_score: float | None
    action_status: str | None
    """None when the call failed."""
    finish_reason: str | None
    feedback: str | None
    """What the environment answered it, as the agent read it before the next step."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What becomes of a step."""

    decision: Literal["kept", "corrected", "filtered"]
    reason: Reason
    signal: float | None
    """What the step was ranked by; None where it had no rank."""
    weight: float | None = None
    """Of its loss, above 0, 1 on average; None when filtered."""


def select(
    steps: Sequence[Considered], settings: TrainingSettings, game_signal: Literal["score", "return"], seed: int
) -> list[Choice]:
    """Which steps are trained on: one choice a step, in order.

    Steps without a known signal or a usable whole answer have no rank and are never kept; shares are of those that
    have one. Scores are ranked together. Returns are ranked among the steps that were decided on with the same
    feedback, because what is still to come depends on where an episode stands as much as on the action.

    The share is rounded up, and steps that equal the last of it are kept with it: which of them were better, nobody
    can tell. For the same reason the lowest are never kept, unless the share is 1: scores that tell nothing apart train
    nothing.

    Args:
        steps: of all episodes the update rests on, each episode's in order.
        settings: the rule, the share or threshold, the signal.
        game_signal: the signal where the settings say ``auto``.
        seed: of ``shuffle_scores``.
    """
    rng = random.Random(seed)
    scores = [step.self_score for step in steps]
    if settings.shuffle_scores:
        scores = _dealt_anew(scores, rng)
    is_return = (game_signal if settings.signal == "auto" else settings.signal) == "return"
    signals = _returns(steps, scores) if is_return else scores
    rivals = _feedback_before(steps) if is_return else [None] * len(steps)

    choices: dict[int, Choice] = {}
    groups: dict[str | None, dict[int, float]] = defaultdict(dict)
    for index, (step, score, signal) in enumerate(zip(steps, scores, signals, strict=True)):
        reason = _unfit(step, score, signal)
        if reason is None and signal is not None:
            groups[rivals[index]][index] = signal
        elif reason is not None:
            choices[index] = Choice("filtered", reason, signal)
    for ranked in groups.values():
        if settings.rule == "above":
            choices |= _above(ranked, settings.threshold)
        else:
            choices |= _top(ranked, settings.share)
    if settings.rule == "weighted":
        choices |= _weighted(choices, groups.values())
    return [choices[index] for index in range(len(steps))]


def correction_messages(prompt: Sequence[Message], reply: str, self_score: float) -> tuple[Message, ...]:
    """The call for a better action: the step as it was asked and answered, and what the agent thinks of it.

    Args:
        prompt: the messages the step was asked with.
        reply: what was answered, whole.
        self_score: the estimate in it.
    """
    question = CORRECTION.format(self_score=self_score)
    return (*prompt, {"role": "assistant", "content": reply}, {"role": "user", "content": question})


def corrected(choice: Choice, before: str | None, after: str | None) -> Choice:
    """What becomes of a step that a better action was asked for.

    Args:
        choice: its choice so far, one of the ``CORRECTABLE``.
        before: the action that was played.
        after: the action of the new answer; None when the call failed or there is no usable one in it.
    """
    if after is None or after == before:
        return replace(choice, reason="not_corrected")
    return Choice("corrected", "corrected", choice.signal, 1.0)


def _dealt_anew(scores: Sequence[float | None], rng: random.Random) -> list[float | None]:
    """The same scores, among the same steps, in another order."""
    given = [score for score in scores if score is not None]
    rng.shuffle(given)
    deal = iter(given)
    return [None if score is None else next(deal) for score in scores]


def _returns(steps: Sequence[Considered], scores: Sequence[float | None]) -> list[float | None]:
    """By step, the sum of the scores from it to the end of its episode; None where one of them is missing."""
    returns: list[float | None] = []
    to_come: dict[str, float | None] = defaultdict(float)
    for step, score in zip(reversed(steps), reversed(scores), strict=True):
        later = to_come[step.episode_id]
        to_come[step.episode_id] = None if score is None or later is None else score + later
        returns.append(to_come[step.episode_id])
    return [None if value is None else round(value, DECIMALS) for value in reversed(returns)]


def _feedback_before(steps: Sequence[Considered]) -> list[str | None]:
    """By step, the feedback it was decided on with; None at the first of its episode."""
    last: dict[str, str | None] = {}
    before = []
    for step in steps:
        before.append(last.get(step.episode_id))
        last[step.episode_id] = step.feedback
    return before


def _unfit(step: Considered, score: float | None, signal: float | None) -> Reason | None:
    """Why a step cannot be trained on whatever the others are; None when it can."""
    if step.action_status is None:
        return "failed_call"
    if step.finish_reason == TRUNCATED:
        return "truncated_reply"
    if step.action_status not in USABLE:
        return "unusable_action"
    if score is None:
        return "no_self_score"
    return "unknown_return" if signal is None else None


def _above(ranked: Mapping[int, float], threshold: float) -> dict[int, Choice]:
    return {
        index: Choice("kept", "above_threshold", signal, 1.0)
        if signal > threshold
        else Choice("filtered", "below_threshold", signal)
        for index, signal in ranked.items()
    }


def _top(ranked: Mapping[int, float], share: float) -> dict[int, Choice]:
    """The highest ``share`` of steps that are ranked together, by index."""
    order = sorted(ranked.values(), reverse=True)
    count = ceil(Fraction(str(share)) * len(order))  # 0.07 of 100 are 7, which floating point would make 8
    cut = order[count - 1]
    return {
        index: Choice("kept", "ranked_high", signal, 1.0)
        if share == 1 or (signal >= cut and signal > order[-1])
        else Choice("filtered", "ranked_low", signal)
        for index, signal in ranked.items()
    }


def _weighted(choices: Mapping[int, Choice], groups: Iterable[Mapping[int, float]]) -> dict[int, Choice]:
    """The kept, weighted by how far each stands above the lowest it is ranked with; who does not is not kept.

    Where none does, there is nothing to weight by.
    """
    heights = {
        index: signal - min(ranked.values())
        for ranked in groups
        for index, signal in ranked.items()
        if choices[index].decision == "kept"
    }
    raised = [height for height in heights.values() if height > 0]
    if not raised:
        return {}
    mean = fmean(raised)
    return {
        index: replace(choices[index], weight=height / mean)
        if height > 0
        else Choice("filtered", "ranked_low", choices[index].signal)
        for index, height in heights.items()
    }
