"""The two streams: results on standard output, progress and failures on standard error; and what a person types."""

import re
import sys
from typing import Any

from rich.console import Console
from rich.text import Text

PLAIN_WIDTH = 140
"""Columns when the output goes to a file or a pipe."""
_ACTIVE = re.compile(r"\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""What a terminal obeys instead of showing it: control characters but line break and tab, marks that turn the direction
of writing, and halves of characters, which cannot be written at all."""

console = Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH, emoji=False)
errors = Console(stderr=True, width=None if sys.stderr.isatty() else PLAIN_WIDTH, emoji=False)


def plain(value: Any) -> str:
    """A value in a table: three significant digits, a dash for what is missing."""
    if value is None:
        return "-"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def inert(text: str) -> str:
    r"""The text with everything a terminal would obey written out, such as ``\x1b``."""
    return _ACTIVE.sub(lambda found: ascii(found[0])[1:-1], text)


def verbatim(text: str, style: str = "") -> None:
    """Prints text for a person: no markup, highlighting, wrapping or control character touches it."""
    console.print(Text(inert(text), style), soft_wrap=True)


def prose(text: str) -> None:
    """Prints whole sentences; a terminal breaks their lines between words."""
    console.print(Text(inert(text)), soft_wrap=not console.is_terminal)


def exact(text: str) -> None:
    """Prints text for a program, to the letter; a terminal gets it inert."""
    if sys.stdout.isatty():
        verbatim(text)
    else:
        print(text)


def ask(prompt: str) -> str | None:
    """What a person types, stripped; None at the end of input and on Ctrl-C. Piped answers are echoed."""
    try:
        text = input(prompt)
    except (EOFError, KeyboardInterrupt):
        console.print()
        return None
    if not sys.stdin.isatty():
        verbatim(text)
    return text.strip()
