r"""The one parser of the answer contract, ``Answer: <ACTION>, Score: <SELF-SCORE>`` on a line of its own.

The last such line counts. Around it, markdown, quotes, LaTeX wrappers, full stops and an echoed ``LLM:`` are
taken off and noted as a repair. Nothing is guessed: what the action means is for the game's grammar, and a
score is a number as a whole or none. The action ends at the *last* ``Score:``: actions may hold commas.
Any text is safe and read in linear time.
"""

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

_LINE_START = " \t#>-+•_'‘’"
_EDGES = " \t,;.|<>_~'‘’，。"
_BEFORE_NUMBER = " \t<_'‘’(["
_DROPPED = '*`$"“”„«»\u200b\ufeff'
_TYPOGRAPHY = str.maketrans({**dict.fromkeys(_DROPPED, ""), "{": " ", "}": " ", "\u00a0": " ", "\u2212": "-"})
_FRACTION = re.compile(r"\\[dt]?frac\{(\d{1,20})\}\{(\d{1,20})\}")
_LATEX = re.compile(r"\\(?:[a-zA-Z]+|[()\[\],;:! ])")
_ECHO = re.compile(r"llm\s*:\s*", re.IGNORECASE)
_ANSWER = re.compile(r"(?:final )?answer[\s_]*[:：]", re.IGNORECASE)
_SCORE = re.compile(r"(?<![a-z])(?:self[-_ ]?)?score[\s_]*[:=：]", re.IGNORECASE)
_AS_ASKED = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]\d+)?|none")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?", re.IGNORECASE)
_DIVISION = re.compile(r"([-+]?\d+) ?/ ?(\d+)")
_LONGEST_NUMBER = 40
"""Characters; nothing longer is read as a score."""
_LINES_AFTER = 5
"""How far behind ``Answer:`` the rest of an answer may begin, blank lines and fences included."""


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
    lines = reply.splitlines()
    found = []
    for index, line in enumerate(lines):
        if "answer" not in line.lower():
            continue
        plain = _plain(line)
        start = _ANSWER.match(plain)
        if start:
            near = map(_plain, lines[index + 1 : index + 1 + _LINES_AFTER])
            after = [text for text in near if text]
            found.append(_read(line.strip(), plain[start.end() :].strip(_EDGES), after))
    found = [answer for answer in found if answer.action]
    if not found:
        return NO_ANSWER
    last = found[-1]
    is_disputed = any(answer[:2] != last[:2] for answer in found)
    return last._replace(is_repaired=last.is_repaired or is_disputed)


def _plain(line: str) -> str:
    """A line without typography; empty when there was nothing else."""
    if "\\" in line:
        line = _LATEX.sub(" ", _FRACTION.sub(r"\1/\2", line))
    line = line.translate(_TYPOGRAPHY).lstrip(_LINE_START)
    return _ECHO.sub("", line, count=1).strip(_EDGES) if _ECHO.match(line) else line.strip(_EDGES)


def _read(line: str, body: str, after: Sequence[str]) -> Answer:
    """The answer on ``line``, of which ``body`` is left; action or score may be on a line after it."""
    if not body and after and not _ANSWER.match(after[0]):
        body, *after = after
    if after and _SCORE.match(after[0]) and not _SCORE.search(body):
        body = f"{body}, {after[0]}"
    *_, score_at = [None, *_SCORE.finditer(body)]
    action, score = (body[: score_at.start()], body[score_at.end() :]) if score_at else (body, "")
    action = " ".join(action.strip(_EDGES).split())
    score = score.rstrip(_EDGES + ")]").lstrip(_BEFORE_NUMBER)
    is_exact = line == f"Answer: {action}, Score: {score}" and _AS_ASKED.fullmatch(score) is not None
    return Answer(action, _number(score), not is_exact) if action else NO_ANSWER


def _number(text: str) -> float | None:
    if len(text) > _LONGEST_NUMBER:
        return None
    division = _DIVISION.fullmatch(text)
    if division and int(division[2]):
        return int(division[1]) / int(division[2])
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    return value if math.isfinite(value) else None
