"""How play is written as text and read back: the marks that separate environment and agent.

Prompts are written with these marks (``protocol.prompts``) and the scripted learner, which knows nothing but
its prompt, reads them (``models.scripted``). Wording that no program reads is not here.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

Message = dict[str, str]
"""A chat message: ``role`` (``user`` or ``assistant``) and ``content``."""

ENV = "Env: "
AGENT = "LLM: "
FEEDBACK = "Feedback: "
EPISODE_END = "(end of episode)"
EXPERIENCE_OPEN = "=== Experience from earlier episodes ==="
EXPERIENCE_CLOSE = "=== End of earlier experience ==="
CURRENT_OPEN = "=== Current state ==="
CURRENT_CLOSE = "=== Your turn ==="
NO_ACTION = "(no readable action)"
NO_SCORE = "none"

_BLOCK = re.compile(rf"^({re.escape(ENV)}|{re.escape(AGENT)})", re.MULTILINE)
_ANSWER = re.compile(rf"^Answer: (?P<action>.*), Score: (?P<score>{NO_SCORE}|-?\d+(?:\.\d+)?(?:e[-+]\d+)?)$")


@dataclass(frozen=True, slots=True)
class PastStep:
    """One finished step as it is shown later."""

    env: str
    """Feedback of the step before, if any, and the state the agent saw."""
    answer: str
    """The answer line, made by ``answer_line``; thinking and prose are not carried on."""


@dataclass(frozen=True, slots=True)
class PastEpisode:
    """One finished episode as it is shown later."""

    episode_id: str
    steps: tuple[PastStep, ...]
    final_env: str
    """Feedback of the last step and the state after it."""

    def segments(self, number: int | None = None) -> list[str]:
        """The transcript in pieces of one step each; the last carries the end of the episode, and its number if any."""
        pieces = [f"{ENV}{step.env}\n{AGENT}{step.answer}\n" for step in self.steps]
        if pieces:
            end = EPISODE_END if number is None else f"{EPISODE_END[:-1]} {number})"
            pieces[-1] += f"{ENV}{self.final_env}\n{end}\n"
        return pieces


class Turn(NamedTuple):
    """One transition as an agent can read it: (O, a, s, O')."""

    before: str
    action: str
    self_score: float | None
    after: str
    """Feedback, if any, and the next state."""


def env_text(feedback: str | None, observation: str) -> str:
    """What the environment says: the feedback of the last step, if any, above the state."""
    return f"{FEEDBACK}{feedback}\n{observation}" if feedback else observation


def experience_block(content: str) -> str:
    """Experience from earlier episodes, between its marks."""
    return f"{EXPERIENCE_OPEN}\n{content.rstrip()}\n{EXPERIENCE_CLOSE}"


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
        if (before[0], answer[0], after[0]) == (ENV, AGENT, ENV):
            read = read_answer_line(answer[1])
            if read is not None:
                yield Turn(before[1], read[0], read[1], after[1])


def between(text: str, start: str, end: str) -> str | None:
    """What stands between two marks, stripped; None when the first is missing."""
    if start not in text:
        return None
    return text.split(start, 1)[1].split(end, 1)[0].strip("\n")
