"""Writes the report: iterates the sections, and puts what they give into one page that needs no network.

The same tables give the same bytes: no time of writing, no counter and no order but the queries' own gets in.
"""

import base64
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from s3gym import registry, storage

if TYPE_CHECKING:
    from s3gym.warehouse import Warehouse

_HERE = Path(__file__).parent
_SECTIONS = "s3gym.report.sections"
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


def render(warehouse: "Warehouse", out: Path) -> Path:
    """Writes the report to ``out``, whole or not at all, and returns ``out``."""
    storage.write_text(out, render_text(warehouse))
    return out


def render_text(warehouse: "Warehouse") -> str:
    """The report as the text of one HTML file."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    modules = [(name, registry.load(_SECTIONS, name, "section")) for name in registry.names(_SECTIONS)]
    modules.sort(key=lambda entry: (entry[1].ORDER, entry[0]))
    built = [Section(name, module.TITLE, module.MARTS, Markup(module.build(warehouse))) for name, module in modules]
    sections = [section for section in built if section.html]
    scripts = [_libraries(), _script(_HERE / "charts.js")]
    scripts += [_script(path) for name, _ in modules if (path := _HERE / "sections" / f"{name}.js").exists()]
    page = Environment(loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined)
    return page.get_template("page.html.j2").render(
        sections=sections,
        scripts=scripts,
        script_sources=" ".join(_source(script) for script in scripts),
        runs=_runs(warehouse),
    )


def _runs(warehouse: "Warehouse") -> list[dict[str, Any]]:
    return warehouse.sql(_RUNS).to_dicts()


def _libraries() -> Markup:
    """Vega, Vega-Lite and Vega-Embed as one script, from the wheel of vl-convert."""
    import vl_convert

    # its type stub asks for an argument that it does not need
    return Markup(vl_convert.javascript_bundle())  # type: ignore[call-arg]


def _script(path: Path) -> Markup:
    return Markup(path.read_text(encoding="utf-8"))


def _source(script: str) -> str:
    """The script's own hash as a source of the content security policy: nothing else in the page may run."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
