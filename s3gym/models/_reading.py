"""What a scripted agent can read in its prompt: the state, the episode so far, and what it was told of earlier ones."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from s3gym.models.base import Request
from s3gym.transcript import (
    AGENT,
    CURRENT_CLOSE,
    CURRENT_OPEN,
    ENV,
    EXPERIENCE_CLOSE,
    EXPERIENCE_OPEN,
    Turn,
    between,
)

Facts = dict[tuple[str, str], Counter[str]]
"""(situation, action) -> outcome -> how often it was seen; see ``games.base.Fact``."""

_HEADING = "Seen (situation | action | outcome | times):"
_FACT = re.compile(r"^- (?P<situation>[^|\n]*) \| (?P<action>[^|\n]*) \| (?P<outcome>[^|\n]*) \| (?P<count>\d+)$", re.M)


def experience(request: Request) -> str:
    """What stands before the prompt from earlier episodes; empty when nothing does."""
    return between(request.messages[0]["content"], EXPERIENCE_OPEN, EXPERIENCE_CLOSE) or ""


def rules(request: Request) -> str:
    """The rules that a step's prompt states."""
    question = request.messages[-1]["content"].split(CURRENT_OPEN, 1)[0]
    return question.rsplit(EXPERIENCE_CLOSE, 1)[-1].strip()


def current_env(request: Request) -> str:
    """The state to decide on, below the feedback of the last step."""
    return between(request.messages[-1]["content"], CURRENT_OPEN, CURRENT_CLOSE) or ""


def current_blocks(request: Request) -> Sequence[tuple[str, str]]:
    """The current episode so far, its last state included."""
    marked = []
    for message in request.messages[:-1]:
        mark = AGENT if message["role"] == "assistant" else ENV
        body = message["content"].rsplit(EXPERIENCE_CLOSE, 1)[-1].strip("\n").removeprefix(ENV)
        marked.append((mark, body))
    return [*marked, (ENV, current_env(request))]


def counted(seen: Iterable[Turn], reader: Any) -> Facts:
    """What transitions show, as a game's reader says it."""
    facts: Facts = {}
    for turn in seen:
        for situation, action, outcome in _facts_of_turn(turn.before, turn.action, turn.after, reader):
            facts.setdefault((situation, action), Counter())[outcome] += 1
    return facts


@lru_cache(maxsize=4096)  # a step sees all earlier steps of its episode again
def _facts_of_turn(before: str, action: str, after: str, reader: Any) -> tuple[tuple[str, str, str], ...]:
    return tuple(reader.facts(before, action, after))


def combined(earlier: Facts, current: Facts) -> Facts:
    """Both together; neither is changed."""
    if not current:
        return earlier
    merged = {key: Counter(outcomes) for key, outcomes in earlier.items()}
    for key, outcomes in current.items():
        merged.setdefault(key, Counter()).update(outcomes)
    return merged


def noted(facts: Facts) -> str:
    """Facts as a memory text."""
    lines = [
        f"- {situation} | {action} | {outcome} | {count}"
        for (situation, action), outcomes in sorted(facts.items())
        for outcome, count in sorted(outcomes.items())
    ]
    return "\n".join([_HEADING, *lines])


def recalled(text: str) -> Facts:
    """Inverse of ``noted``; empty where ``text`` holds no such line."""
    facts: Facts = {}
    for match in _FACT.finditer(text):
        facts.setdefault((match["situation"], match["action"]), Counter())[match["outcome"]] += int(match["count"])
    return facts
