"""The two streams: results on standard output, progress and failures on standard error."""

import sys
from typing import Any

from rich.console import Console

PLAIN_WIDTH = 140
"""Columns when the output goes to a file or a pipe."""

console = Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH)
errors = Console(stderr=True, width=None if sys.stderr.isatty() else PLAIN_WIDTH)


def plain(value: Any) -> str:
    """A value in a table: three significant digits, a dash for what is missing."""
    if value is None:
        return "-"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def verbatim(text: str) -> None:
    """Prints text that no markup, highlighting or wrapping touches."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)
