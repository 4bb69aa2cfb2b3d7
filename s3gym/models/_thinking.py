"""Keeps a reply apart from the thinking some models write into it: no answer is read from a thought."""

import re

OPENING = "<think>"
"""As most models write it, and templates that begin the thought for them."""
_TAG = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)


def strip_thinking(text: str) -> tuple[str, str | None]:
    """The reply without its ``<think>`` blocks, and what was thought (None when nothing was).

    An unclosed block reaches to the end. A closing tag without an opening one ends a thought that began with
    the text: chat templates that open the block themselves leave it so.
    """
    said: list[str] = []
    thought: list[str] = []
    depth = position = 0
    for tag in _TAG.finditer(text):
        (thought if depth else said).append(text[position : tag.start()])
        position = tag.end()
        if not tag[1]:
            depth += 1
        elif depth:
            depth -= 1
        else:
            thought += said
            said.clear()
    (thought if depth else said).append(text[position:])
    thinking = "".join(thought).strip()
    return "".join(said).strip() if position else text, thinking or None
