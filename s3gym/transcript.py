"""How play is written as text and read back: the marks that separate environment and agent.

Prompts are written with these marks (``protocol.prompts``) and the scripted learner, which knows nothing but
its prompt, reads them (``models.scripted``). Wording that no program reads is not here.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

Message = dict[str, str]
"""A chat message: ``role`` (``user`` or ``assistant``) and ``content``."""

ENV = "Env: "
AGENT = "LLM: "
EPISODE_END = "(end of episode)"
EXPERIENCE_OPEN = "=== Experience from earlier episodes ==="
EXPERIENCE_CLOSE = "=== End of earlier experience ==="
CURRENT_OPEN = "=== Current state ==="
CURRENT_CLOSE = "=== Your turn ==="
NO_ACTION = "(no readable action)"
NO_SCORE = "none"

_BLOCK = re.compile(rf"^({re.escape(ENV)}|{re.escape(AGENT)})", re.MULTILINE)
_ANSWER = re.compile(r"^Answer: (?P<action>.*), Score: (?P<score>\S+)$")


class Turn(NamedTuple):
    """One transition as an agent can read it: (O, a, s, O')."""

    before: str
    action: str
    self_score: float | None
    after: str
    """Feedback, if any, and the next state."""


def answer_line(action: str | None, self_score: float | None) -> str:
    """The line an earlier answer is shown as: ``Answer: LEFT, Score: 0.5``."""
    score = NO_SCORE if self_score is None else f"{self_score:g}"
    return f"Answer: {action or NO_ACTION}, Score: {score}"


def read_answer_line(line: str) -> tuple[str, float | None] | None:
    """Inverse of ``answer_line``; None when the line is not one."""
    match = _ANSWER.match(line.strip())
    if match is None:
        return None
    score = match["score"]
    return match["action"], None if score == NO_SCORE else float(score)


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """(mark, body) for each ``Env:`` or ``LLM:`` block of a transcript, in order."""
    parts = _BLOCK.split(text)
    for mark, body in zip(parts[1::2], parts[2::2], strict=True):
        yield mark, body.strip("\n")


def turns(marked: Sequence[tuple[str, str]]) -> Iterator[Turn]:
    """The transitions of a sequence of blocks; an agent block without a state on both sides is skipped."""
    for before, answer, after in zip(marked, marked[1:], marked[2:], strict=False):
        if (before[0], answer[0], after[0]) == (ENV, AGENT, ENV) and EPISODE_END not in before[1]:
            read = read_answer_line(answer[1])
            if read is not None:
                yield Turn(before[1], read[0], read[1], after[1])


def between(text: str, start: str, end: str) -> str | None:
    """What stands between two marks, stripped; None when the first is missing."""
    if start not in text:
        return None
    return text.split(start, 1)[1].split(end, 1)[0].strip("\n")
