"""Tries a model out before a run is paid for: one tiny episode, again, with other seeds, and with a temperature.

``try_out`` asks, ``findings`` judges what came; only the first needs a model. Nothing is kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, NamedTuple

from s3gym.games.base import EVALUATION, USABLE, Game
from s3gym.models._cards import Card
from s3gym.models.base import Decoding, Model
from s3gym.models.prices import FREE, PER_MILLION
from s3gym.protocol.asking import Asker
from s3gym.protocol.rollout import Part, play
from s3gym.protocol.splits import hashed
from s3gym.records import Step

STEPS = 2
"""Of the episode: the second prompt shows what was answered to the first."""
TEMPERATURE = 0.5
"""No provider's default."""
ATTEMPTS = 2
"""Of a call: one failure may pass, and a dead endpoint is told of soon."""
USUAL_CALLS = 3 * STEPS + 1
MOST_CALLS = ATTEMPTS * USUAL_CALLS
QUOTED = 160
"""Characters of a reply that are quoted."""
YES, PARTLY, NO, UNKNOWN = "yes", "partly", "no", "unknown"

_UNREACHED = ("connection", "timeout")


class Finding(NamedTuple):
    """One thing that works, or does not."""

    name: str
    verdict: str
    """``yes``, ``partly``, ``no`` or ``unknown``; of the latency, its figure."""
    told: str
    """What was seen, and what to do."""
    is_needed: bool = False
    """Whether no run goes without it."""

    @property
    def is_failure(self) -> bool:
        """Whether a run with this model is of no use."""
        return self.is_needed and self.verdict == NO


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The steps of each episode that was tried; empty where it was not."""

    first: Sequence[Step] = ()
    again: Sequence[Step] = ()
    """The same, with the same seeds."""
    reseeded: Sequence[Step] = ()
    """The same, with other seeds."""
    warmed: Sequence[Step] = ()
    """The first step with ``TEMPERATURE``."""

    @property
    def answered(self) -> list[Step]:
        """All steps whose call was answered."""
        steps = (*self.first, *self.again, *self.reseeded, *self.warmed)
        return [step for step in steps if step.error_kind is None]


async def try_out(model: Model, game: Game[Any, Any, Any], decoding: Decoding) -> Trial:
    """Plays: ``USUAL_CALLS`` calls, one after the other, each again where it fails; none after one failed for good."""
    asker = Asker(model, attempts=ATTEMPTS)

    async def episode(seeds: str, decoding: Decoding, steps: int = STEPS) -> Sequence[Step]:
        part = Part(
            stage_key="check",
            phase=EVALUATION,
            checkpoint=0,
            episode_index=0,
            seed=0,
            experience=None,
            history_tokens_dropped=0,
            decoding=decoding,
            decoding_seed=lambda step: hashed(seeds, step),
        )
        return (await play(game, replace(game.evaluation, horizon=steps), asker, part))[1]

    first = await episode("first", decoding)
    if _error(first):
        return Trial(first=first)
    # one after the other: in a batch with others some servers answer otherwise, whatever the seed
    again = await episode("first", decoding)
    reseeded = await episode("other", decoding)
    return Trial(
        first=first,
        again=again,
        reseeded=reseeded,
        warmed=await episode("first", replace(decoding, temperature=TEMPERATURE), 1),
    )


def findings(card: Card, trial: Trial, lacking: str | None = None, is_free: bool = False) -> list[Finding]:
    """What works, in the order a person wants to know.

    Args:
        card: what is known without asking.
        trial: what came.
        lacking: why nothing was asked; None when something was.
        is_free: whether it is a scripted player.
    """
    return [
        _key(card, trial, lacking),
        _reachable(card, trial),
        _contract(trial),
        _tokens(trial, is_free),
        _price(card, trial),
        _context(card),
        _seed(trial),
        _temperature(trial, is_free),
        _reasoning(trial),
        _latency(trial),
    ]


def _key(card: Card, trial: Trial, lacking: str | None) -> Finding:
    error, unset = _error(trial.first), " or ".join(card.missing_keys)
    verdict, told = YES, "nothing is missing"
    if lacking is not None:
        verdict, told = NO, lacking
    elif error and error.error_kind == "authentication":
        verdict, told = NO, f"set the environment variable {unset}" if unset else str(error.error_message)
    elif error and unset:
        verdict, told = UNKNOWN, f"not set: {unset}"
    return Finding("key and set-up", verdict, told, is_needed=True)


def _reachable(card: Card, trial: Trial) -> Finding:
    error = _error(trial.first)
    verdict, told = YES, f"{len(trial.answered)} calls were answered" if not error else "a call came back as an error"
    if not trial.first or (error and error.error_kind == "authentication" and card.missing_keys):
        verdict, told = UNKNOWN, "nothing was asked"
    elif error and error.error_kind in _UNREACHED:
        verdict, told = NO, _words(error)
    return Finding("reachable", verdict, told, is_needed=True)


def _contract(trial: Trial) -> Finding:
    name, error = "answer contract", _error(trial.first)
    if error and error.error_kind not in (*_UNREACHED, "authentication"):
        return Finding(name, NO, f"no answer came: {_words(error)}", is_needed=True)
    if error or not trial.first:
        return Finding(name, UNKNOWN, "not tried", is_needed=True)
    usable = [step for step in trial.first if step.action_status in USABLE]
    unusable = [step for step in trial.first if step not in usable]
    repaired = [step for step in usable if step.action_status == "repaired"]
    unscored = [step for step in usable if step.self_score is None]
    told = [f"{len(usable)} of {len(trial.first)} answers are usable"]
    if repaired:
        told.append(f"{len(repaired)} of them only after repair, such as {_quoted(repaired[0])}")
    if unscored:
        told.append(f"{len(unscored)} without a self-score, without which judging is not measured")
    if unusable:
        told.append(f"{unusable[0].action_status}: {_quoted(unusable[0])}")
    verdict = NO if not usable else PARTLY if unusable or unscored else YES
    return Finding(name, verdict, "; ".join(told), is_needed=True)


def _tokens(trial: Trial, is_free: bool) -> Finding:
    name, steps = "tokens reported", trial.answered
    if is_free or not steps:
        return Finding(name, UNKNOWN, "a scripted player has none" if is_free else "no answer came")
    counted = [step for step in steps if step.prompt_tokens is not None and step.completion_tokens is not None]
    if not counted:
        return Finding(name, NO, "none; a run has only estimates of prompts, and costs are unknown")
    prompt, completion = (
        sum(getattr(step, field) for step in counted) for field in ("prompt_tokens", "completion_tokens")
    )
    cached = [step.cached_tokens for step in counted if step.cached_tokens is not None]
    told = f"{prompt} prompt ({sum(cached) if cached else 'unknown'} cached), {completion} completion"
    verdict = YES if len(counted) == len(steps) else PARTLY
    return Finding(name, verdict, f"{told}, in {len(counted)} of {len(steps)} answers")


def _price(card: Card, trial: Trial) -> Finding:
    name, prices = "price known", card.prices
    costs = [step.cost_usd for step in trial.answered if step.cost_usd is not None]
    spent = f"this check cost ${sum(costs):.2g}" if costs else ""
    if prices == FREE:
        return Finding(name, YES, "free")
    if prices is not None:
        kinds = {"prompt": prices.prompt_usd, "cached": prices.cached_usd, "completion": prices.completion_usd}
        listed = ", ".join(f"${usd * PER_MILLION:.4g} {kind}" for kind, usd in kinds.items())
        return Finding(name, YES, "; ".join(filter(None, (f"{listed} a million tokens, by litellm's list", spent))))
    if costs:
        return Finding(name, YES, f"told with the answers; {spent}")
    return Finding(name, UNKNOWN, "in no list; a run has no costs unless its config gives prices")


def _context(card: Card) -> Finding:
    if card.context_tokens is None:
        return Finding("context size known", UNKNOWN, "in no list; keep history_token_limit well below it")
    return Finding("context size known", YES, f"{card.context_tokens:,} tokens")


def _seed(trial: Trial) -> Finding:
    name = "seed honoured"
    if not trial.again:
        return Finding(name, UNKNOWN, "not tried")
    if "seed" in _dropped(trial.first):
        return Finding(name, NO, "it takes none; what it draws by chance differs between runs")
    error = _error(trial.again) or _error(trial.reseeded)
    if error:
        return Finding(name, UNKNOWN, f"a call failed: {_words(error)}")
    if _said(trial.first) != _said(trial.again):
        return Finding(name, NO, "the same seed gave another answer")
    if _said(trial.first) == _said(trial.reseeded):
        return Finding(name, UNKNOWN, "the same answers, whatever the seed")
    return Finding(name, YES, f"{len(trial.first)} answers came again word by word, and others with another seed")


def _temperature(trial: Trial, is_free: bool) -> Finding:
    name = "temperature accepted"
    if is_free or not trial.warmed:
        return Finding(name, UNKNOWN, "a scripted player has none" if is_free else "not tried")
    error = _error(trial.warmed)
    if error:
        return Finding(name, NO, _words(error))
    if "temperature" in _dropped(trial.warmed):
        return Finding(name, NO, "it uses its own; leave temperature out")
    return Finding(name, YES, f"{TEMPERATURE} was taken")


def _reasoning(trial: Trial) -> Finding:
    name, steps = "reasoning apart", trial.answered
    if not steps:
        return Finding(name, UNKNOWN, "no answer came")
    tokens = sum(step.reasoning_tokens or 0 for step in steps)
    counted = f", {tokens} tokens reported" if tokens else ""
    thinking = [step for step in steps if step.reasoning]
    if not thinking:
        return Finding(name, NO, f"none was returned{counted}")
    characters = sum(len(step.reasoning or "") for step in thinking)
    return Finding(name, YES, f"in {len(thinking)} of {len(steps)} answers, {characters} characters{counted}")


def _latency(trial: Trial) -> Finding:
    seconds = [step.latency_seconds for step in trial.answered if step.latency_seconds is not None]
    if not seconds:
        return Finding("latency", UNKNOWN, "no call was timed")
    return Finding("latency", f"{median(seconds):.2f} s", f"median of {len(seconds)}, at most {max(seconds):.2f} s")


def _error(steps: Sequence[Step]) -> Step | None:
    """The step whose call failed; it is the last of its episode."""
    return next((step for step in steps if step.error_kind is not None), None)


def _words(error: Step) -> str:
    return f"{error.error_kind}: {error.error_message}"


def _dropped(steps: Sequence[Step]) -> set[str]:
    """Parameters that were asked for and not sent."""
    dropped = [step.dropped_parameters or "" for step in steps]
    return {name for names in dropped for name in names.split(", ")}


def _said(steps: Sequence[Step]) -> list[tuple[str | None, str | None]]:
    return [(step.reply, step.reasoning) for step in steps]


def _quoted(step: Step) -> str:
    """The end of a reply, where its answer is; for a terminal it is not yet inert."""
    text = " ".join((step.reply or "").split())
    return repr(text if len(text) <= QUOTED else f"...{text[-QUOTED:]}")
