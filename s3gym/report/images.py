"""The charts of the report as files: the page's own specifications, in its light colours, drawn by vl-convert."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from s3gym import storage
from s3gym.report.charts import figures_in
from s3gym.report.render import Page

FORMATS = ("svg", "png")
WIDTH = 640
"""Pixels; in the page a chart is as wide as its place."""
SCALE = 2
"""Pixels of a PNG for one of the page."""
_CSS = Path(__file__).with_name("page.css")


def write(page: Page, folder: Path, form: str) -> list[Path]:
    """Draws every chart into ``folder`` as ``<section>-<number>-<description>.<form>``, in the order of the page."""
    import vl_convert

    colours = _colours()
    written = []
    for section in page.sections:
        for number, (caption, description, specification) in enumerate(figures_in(section.html), start=1):
            what = description.partition(". ")[0]  # what follows says where else to look on the page
            path = folder / f"{section.name}-{number:02}-{_slug(what)}.{form}"
            spec = standalone(specification, caption, what, colours)
            if form == "png":
                storage.write_bytes(path, vl_convert.vegalite_to_png(spec, scale=SCALE))
            else:
                storage.write_text(path, vl_convert.vegalite_to_svg(spec))
            written.append(path)
    return written


def standalone(specification: str, caption: str, what: str, colours: dict[str, str]) -> dict[str, Any]:
    """A chart that needs no page: its colours said, its width fixed, with a title and a key to its colours."""
    text = re.sub(r"var\((--[\w-]+)\)", lambda found: colours[found[1]], specification)
    spec: dict[str, Any] = json.loads(text)
    colour = {"color": colours["--ink"], "subtitleColor": colours["--muted"]}
    spec |= {"width": WIDTH, "title": {"text": caption, "subtitle": what, "anchor": "start", **colour}}
    spec["config"] = {
        **spec["config"],
        "background": colours["--surface"],
        "legend": {"labelColor": colours["--muted"], "symbolOpacity": 1},
    }
    keyed: dict[str, Any] = _keyed(spec)
    return keyed


def _keyed(value: Any) -> Any:
    """The same with a legend for colours, which the page shows once for many charts."""
    if isinstance(value, dict):
        found = {name: _keyed(item) for name, item in value.items()}
        colour = found.get("color")
        if isinstance(colour, dict) and "field" in colour:
            found["color"] = colour | {"legend": {"orient": "bottom", "title": None}}
        return found
    return [_keyed(item) for item in value] if isinstance(value, Sequence) and not isinstance(value, str) else value


def _colours() -> dict[str, str]:
    """The page's variables in its light scheme: those of the first block."""
    block = re.search(r":root \{(.*?)\}", _CSS.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    return dict(re.findall(r"(--[\w-]+): ([^;]+);", block[1]))


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60].strip("-")
