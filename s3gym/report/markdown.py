"""The report as Markdown, as GitHub shows it: the sections of the page, word for word and number for number.

It reads the HTML that the sections build, so that there is no second set of numbers. Charts become links to images,
where there are any; what needs a browser, the viewer of episodes, is left out.
"""

import re
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser

from s3gym.report.render import Page

_LEFT_OUT = {"script", "style", "svg"}
_VOID = {"br", "img", "input", "hr", "wbr"}
_SPECIAL = re.compile(r"[\\`*<>|&~]|(?<![^\W_])_|_(?![^\W_])|\](?=\()")
"""What Markdown would read as more than itself: an underscore inside a word is none."""


def markdown(page: Page, images: Sequence[str] = ()) -> str:
    """The report as one text.

    Args:
        page: What the sections built.
        images: Where the image of each chart is, in the order of the charts; empty without images.
    """
    parts = ["# Does the agent get better from its own experience?", *(escaped(line) for line in page.header)]
    left = iter(images)
    for section in page.sections:
        marts = ", ".join(f"`{mart}`" for mart in section.marts)
        parts += [f"## {escaped(section.title)}", *_blocks(section.html, left), f"*Reads {marts}.*"]
    return "\n\n".join(parts) + "\n"


def escaped(text: str) -> str:
    """Text that Markdown shows as it is, in one line."""
    return _SPECIAL.sub(r"\\\g<0>", " ".join(text.split()))


def _blocks(html: str, images: Iterator[str]) -> list[str]:
    reader = _Reader(images)
    reader.feed(html)
    reader.close()
    return reader.blocks


class _Reader(HTMLParser):
    """Turns the HTML of a section, made of what ``fragments`` and ``charts`` write, into blocks of Markdown."""

    def __init__(self, images: Iterator[str]) -> None:
        super().__init__()
        self.blocks: list[str] = []
        self._images = images
        self._skipped = 0  # elements that are open inside one that is left out, itself among them
        self._words: list[str] = []
        self._table: list[list[str]] = []
        self._list: list[str] = []
        self._link = ""
        self._described = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if self._skipped or tag in _LEFT_OUT or given.get("id") == "viewer" or given.get("class") == "key":
            self._skipped += tag not in _VOID
        elif tag in ("p", "h3", "h4", "li", "dt", "dd", "caption", "th", "td", "figcaption"):
            self._words = ["**"] if given.get("scope") == "rowgroup" else []
        elif tag == "tr":
            self._table.append([])
        elif tag == "div" and given.get("role") == "img":
            self._described = given["aria-label"]
        elif tag == "a":
            self._link = given["href"]
            self._words.append("[")
        elif tag in ("code", "strong"):
            self._words.append(_mark(tag))

    def handle_endtag(self, tag: str) -> None:
        if self._skipped:
            self._skipped -= tag not in _VOID
            return
        if tag in ("code", "strong"):
            self._words.append(_mark(tag))
        elif tag == "a":
            self._words.append(f"]({self._link})")
        elif tag in ("p", "h3", "h4"):
            self._add({"p": "", "h3": "### ", "h4": "#### "}[tag] + self._text())
        elif tag in ("li", "dt", "dd"):
            self._list.append(self._text())
        elif tag == "ul":
            self._add("\n".join(f"- {item}" for item in self._list))
            self._list = []
        elif tag == "dl":
            pairs = zip(self._list[::2], self._list[1::2], strict=True)
            self._add("\n".join(f"- **{name}** {told}" for name, told in pairs))
            self._list = []
        elif tag == "caption":
            self._add(f"**{self._text()}**")
        elif tag in ("th", "td"):
            if self._words[:1] == ["**"]:
                self._words.append("**")
            self._table[-1].append(self._text())
        elif tag == "table":
            self._add(_grid(self._table))
            self._table = []
        elif tag == "figure":
            caption = self._text()
            image = next(self._images, None)
            self._add(f"![{escaped(self._described)}](<{image}>)\n{caption}" if image else f"*Chart: {caption}*")

    def handle_data(self, data: str) -> None:
        if not self._skipped:
            self._words.append(data if self._words and self._words[-1] == "`" else _SPECIAL.sub(r"\\\g<0>", data))

    def _text(self) -> str:
        return " ".join("".join(self._words).split())

    def _add(self, block: str) -> None:
        if block:
            self.blocks.append(block)


def _mark(tag: str) -> str:
    return "`" if tag == "code" else "**"


def _grid(rows: Sequence[Sequence[str]]) -> str:
    """A table of which the first row is the head; a row of one cell, the name of a group, is filled up."""
    width = len(rows[0])
    lines = ["| " + " | ".join([*row, *[""] * (width - len(row))]) + " |" for row in rows]
    return "\n".join([lines[0], "| " + " | ".join(["---"] * width) + " |", *lines[1:]])
