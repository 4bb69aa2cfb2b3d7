"""Makes the report: iterates the sections, and puts what they give into one page that needs no network.

The same tables give the same bytes: no time of writing, no counter and no order but the queries' own gets in.
"""

import base64
import hashlib
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup

from s3gym import registry, storage

if TYPE_CHECKING:
    from s3gym.warehouse import Warehouse

_HERE = Path(__file__).parent
_SECTIONS = "s3gym.report.sections"
_BUNDLE = "import sys, vl_convert; sys.stdout.buffer.write(vl_convert.javascript_bundle().encode())"
_RUNS = """
    select distinct runs.run_id, runs.scale, strftime(runs.requested_at, '%-d %B %Y, %H:%M UTC') as requested
    from int_selected_cells as cells
    inner join stg_runs as runs on runs.run_id = cells.run_id
    order by runs.run_id
"""


class Section(NamedTuple):
    """One section as the page shows it."""

    name: str
    """Its module, and its anchor in the page."""
    title: str
    marts: tuple[str, ...]
    """Views it reads."""
    html: Markup


class Page(NamedTuple):
    """What all forms of the report are made of."""

    header: tuple[str, ...]
    """Sentences that say which run is shown, and which part of it."""
    sections: tuple[Section, ...]
    """Those with something to say, in their order."""


def render(warehouse: "Warehouse", out: Path) -> Path:
    """Writes the report as HTML to ``out``, whole or not at all, and returns ``out``."""
    storage.write_text(out, render_text(warehouse))
    return out


def render_text(warehouse: "Warehouse") -> str:
    """The report as the text of one HTML file."""
    return html(build(warehouse))


def build(warehouse: "Warehouse") -> Page:
    """What the sections say of the cells that are selected."""
    modules = [(name, registry.load(_SECTIONS, name, "section")) for name in registry.names(_SECTIONS)]
    modules.sort(key=lambda entry: (entry[1].ORDER, entry[0]))
    built = [Section(name, module.TITLE, module.MARTS, Markup(module.build(warehouse))) for name, module in modules]
    return Page(tuple(_header(warehouse)), tuple(section for section in built if section.html))


def html(page: Page) -> str:
    """The page as the text of one HTML file."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    own = (_HERE / "sections" / f"{section.name}.js" for section in page.sections)
    scripts = [
        drawing_library().result(),
        _script(_HERE / "charts.js"),
        *(_script(path) for path in own if path.exists()),
    ]
    environment = Environment(loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined)
    return environment.get_template("page.html.j2").render(
        header=page.header,
        sections=page.sections,
        scripts=scripts,
        script_sources=" ".join(_source(script) for script in scripts),
    )


def _header(warehouse: "Warehouse") -> list[str]:
    runs = warehouse.sql(_RUNS).to_dicts()
    if not runs:
        return ["s3gym; no run has been made in this data folder yet."]
    told = "; ".join(f"run {run['run_id']}, scale {run['scale']}, requested {run['requested']}" for run in runs)
    selection = warehouse.selection
    limits = [
        f"{name} {', '.join(names)}"
        for name, names in (("model", selection.models), ("game", selection.games))
        if names
    ]
    if selection.since:
        limits.append(f"runs since {selection.since:%-d %B %Y}")
    if not limits:
        return [f"s3gym, {told}"]
    return [
        f"s3gym, {told}",
        f"A part of all that was measured: {'; '.join(limits)}. Verdicts are corrected for the comparisons shown here, "
        "which are fewer, so that they may differ from those of the whole.",
    ]


@cache
def drawing_library() -> Future[Markup]:
    """Vega, Vega-Lite and Vega-Embed as one script, from the wheel of vl-convert.

    That takes it seconds in which no other Python runs, so a process of its own does it: who calls this early has the
    script when the sections are built.
    """

    def bundled() -> Markup:
        made = subprocess.run([sys.executable, "-c", _BUNDLE], stdout=subprocess.PIPE, check=True)
        return Markup(made.stdout.decode())

    worker = ThreadPoolExecutor(1)
    bundle = worker.submit(bundled)
    worker.shutdown(wait=False)
    return bundle


def _script(path: Path) -> Markup:
    return Markup(path.read_text(encoding="utf-8"))


def _source(script: str) -> str:
    """The script's own hash as a source of the content security policy: nothing else in the page may run."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
