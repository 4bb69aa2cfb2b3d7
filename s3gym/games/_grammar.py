"""What the grammars of actions share: which spellings of the same action are tolerated, in every game alike.

Whole texts match or nothing does: trailing prose is turned down, never guessed at.
"""

import re

WHOLE = r"-?[0-9]{1,9}(?:\.0*)?"
"""A whole number in ASCII digits, an integral decimal such as ``5.0`` too; no ``1e9``, no thousands separators."""
COMMA = r"(?: ?, ?| )"
"""Between two numbers: a comma, blanks, or both."""
CELL = rf"[(\[{{<]? ?(?P<row>{WHOLE}){COMMA}(?P<column>{WHOLE}) ?[)\]}}>]?"
"""``(row,column)`` in any brackets or none."""
_AROUND = " .,;:!'\"`*"
"""Punctuation and marks that may stand around an action."""
_BLANKS = re.compile(r"\s+")


def tidy(text: str) -> str:
    """``text`` with each run of white space as one blank, and without the marks around it."""
    return _BLANKS.sub(" ", text).strip(_AROUND)


def whole(digits: str) -> int:
    """The number that ``WHOLE`` matched."""
    return int(digits.partition(".")[0])
