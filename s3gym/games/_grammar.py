"""What the grammars of actions share: which spellings of the same action are tolerated, in every game alike.

Whole texts match or nothing does: trailing prose is turned down, never guessed at.
"""

from collections.abc import Iterable

WHOLE = r"-?[0-9]{1,9}(?:\.0*)?"
"""A whole number in ASCII digits, an integral decimal such as ``5.0`` too; no ``1e9``, no thousands separators."""
COMMA = r"(?: ?, ?| )"
"""Between two numbers: a comma, blanks, or both."""
CELL = rf"[(\[{{<]? ?(?P<row>{WHOLE}){COMMA}(?P<column>{WHOLE}) ?[)\]}}>]?"
"""``(row,column)`` in any brackets or none."""
_AROUND = " .,;:!'\"`*"
"""Punctuation and marks that may stand around an action."""
_OPENING, _CLOSING = frozenset("([{<"), frozenset(")]}>")


def tidy(text: str) -> str:
    """``text`` with each run of white space as one blank, without the marks and the pair of brackets around it."""
    bare = " ".join(text.split()).strip(_AROUND)
    return bare[1:-1].strip(_AROUND) if _is_enclosed(bare) else bare


def _is_enclosed(text: str) -> bool:
    """Whether the first character is a bracket that the last one closes, of whatever kinds they are."""
    if text[:1] not in _OPENING or text[-1] not in _CLOSING:
        return False
    depth = 0
    for place, mark in enumerate(text):
        depth += (mark in _OPENING) - (mark in _CLOSING)
        if depth == 0:
            return place == len(text) - 1
    return False


def word(text: str, words: Iterable[str]) -> str | None:
    """The one of ``words`` that ``text`` is, in any case."""
    bare = tidy(text)
    if not bare.isascii():  # letters of other scripts may have ASCII capitals
        return None
    return next((known for known in words if known.lower() == bare.lower()), None)


def whole(digits: str) -> int:
    """The number that ``WHOLE`` matched."""
    return int(digits.partition(".")[0])
