r"""The one parser of the answer contract, ``Answer: <ACTION>, Score: <SELF-SCORE>`` on a line of its own.

The last such line counts. Around it, markdown, quotes, LaTeX wrappers, full stops and an echoed ``LLM:`` are taken
off and noted as a repair; nothing is guessed: what the action means is for the game's grammar, and a score is a
number as a whole or none. The action ends at the *last* ``Score:``, since actions may hold commas. Any text is safe
and read in linear time.
"""

import math
import re
from typing import NamedTuple

_FRACTION = re.compile(r"\\[dt]?frac\{(\d{1,20})\}\{(\d{1,20})\}")
_LATEX = re.compile(r"\\(?:[a-zA-Z]+|[()\[\],;:! ])")
_MARKS = str.maketrans(dict.fromkeys('*`$"“”„«»', "") | {"{": " ", "}": " ", "\u2212": "-"})
_LINE_START = " \t#>-+•_'‘’"
_EDGES = " \t\r,;.|<>_~'‘’"
_ANSWER = re.compile(r"(?:final )?answer[\s_]*[:\uff1a]", re.IGNORECASE)
_ECHO = re.compile(r"(?:llm[\s_]*:\s*)+", re.IGNORECASE)
_SCORE = re.compile(r"(?<![a-z])(?:self[-_ ]?)?score[\s_]*[:=\uff1a]", re.IGNORECASE)
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?", re.IGNORECASE)
_DIVISION = re.compile(r"([-+]?\d+) ?/ ?(\d+)")
_AS_ASKED = re.compile(r"-?\d+(?:\.\d+)?|none")
_LONGEST_NUMBER = 40
"""Characters; nothing longer is read as a score."""


class Answer(NamedTuple):
    """What was read from a reply."""

    action: str | None
    """Text for the game's grammar; None when there is no answer line, or nothing on it."""
    self_score: float | None
    """None where it is missing, not a finite number, or without an action."""
    is_repaired: bool
    """True when the line was not exactly as asked, or several answer lines disagree."""


NO_ANSWER = Answer(None, None, False)


def parse_answer(reply: str) -> Answer:
    """Reads the answer of a reply whose thinking is already taken out; any text is safe."""
    raw = [line.strip() for line in reply.splitlines()]
    lines = [(line, clean) for line in raw if (clean := _clean(line))]
    found = [
        answer
        for index, (line, clean) in enumerate(lines)
        if (start := _ANSWER.match(clean))
        and (
            answer := _read(line, clean[start.end() :], [text for _, text in lines[index + 1 : index + 3]])
        ).action
    ]
    if not found:
        return NO_ANSWER
    last = found[-1]
    is_disputed = any(answer[:2] != last[:2] for answer in found)
    return last._replace(is_repaired=last.is_repaired or is_disputed)


def _clean(line: str) -> str:
    """A line without what is typography; empty when nothing else was there."""
    line = _LATEX.sub(" ", _FRACTION.sub(r"\1/\2", line)) if "\\" in line else line
    line = line.translate(_MARKS).lstrip(_LINE_START)
    return _ECHO.sub("", line, count=1).strip(_EDGES) if line[:3].lower() == "llm" else line.strip(_EDGES)


def _read(line: str, body: str, following: list[str]) -> Answer:
    """The answer on ``line``, whose cleaned text after the colon is ``body``; either part may be on the next line."""
    following = following if not any(_ANSWER.match(text) for text in following[:1]) else []
    if not body.strip(_EDGES) and following:
        body, *following = following
    scores = list(_SCORE.finditer(body))
    if not scores and following and _SCORE.match(following[0]):
        body = f"{body}, {following[0]}"
        scores = list(_SCORE.finditer(body))
    end = scores[-1] if scores else None
    action = " ".join((body[: end.start()] if end else body).strip(_EDGES).split())
    score = body[end.end() :].strip(_EDGES + "()[]") if end else ""
    is_exact = line == f"Answer: {action}, Score: {score}" and bool(_AS_ASKED.fullmatch(score))
    return Answer(action, _number(score), not is_exact) if action else NO_ANSWER


def _number(text: str) -> float | None:
    if len(text) > _LONGEST_NUMBER:
        return None
    if _NUMBER.fullmatch(text):
        value = float(text)
    elif (division := _DIVISION.fullmatch(text)) and int(division[2]):
        value = int(division[1]) / int(division[2])
    else:
        return None
    return value if math.isfinite(value) else None
