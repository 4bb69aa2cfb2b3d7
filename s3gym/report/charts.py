"""Charts as figures of the page: an altair chart becomes a JSON specification that the page draws.

A chart is made once and filled with the rows of each figure: altair checks a chart slowly, and small charts
side by side differ in nothing else. Colours are CSS variables of the page, so that one specification serves
light and dark. The libraries that draw (vega, vega-lite, vega-embed) are embedded once, by ``render``.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from s3gym.report.fragments import Row, embedded_json, pathway_colour

if TYPE_CHECKING:
    import altair as alt


AXIS = 40
"""Pixels kept for the axis below a chart."""
THEME: dict[str, Any] = {
    "background": None,
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": "var(--muted)",
        "titleColor": "var(--muted)",
        "titleFontWeight": "normal",
        "domainColor": "var(--line)",
        "tickColor": "var(--line)",
        "gridColor": "var(--line)",
        "labelFontSize": 11,
        "titleFontSize": 11,
        "labelLimit": 230,
    },
    "axisDiscrete": {"ticks": False, "domain": False, "labelPadding": 6},
    "text": {"color": "var(--muted)", "fontSize": 10},
}


def pathway_scale(names: Iterable[str]) -> "alt.Scale":
    """The colour scale of pathways."""
    import altair as alt

    domain = sorted(set(names))
    return alt.Scale(domain=domain, range=[pathway_colour(name) for name in domain])


def specification(chart: "alt.TopLevelMixin") -> dict[str, Any]:
    """A chart without its rows; its data are ``alt.NamedData``, to be given by ``figure``."""
    return {**chart.to_dict(validate=False), "config": THEME, "autosize": {"type": "fit-x", "contains": "padding"}}


def figure(
    specification: Mapping[str, Any],
    data: Mapping[str, Sequence[Row]],
    caption: str,
    description: str,
    height: int,
) -> Markup:
    """A chart as wide as its place in the page, ``height`` pixels high, with caption and description."""
    spec = {**specification, "datasets": data, "width": "container", "height": height}
    return Markup(
        '<figure class="chart"><figcaption>{}</figcaption>'
        '<div class="plot" role="img" aria-label="{}" style="min-height:{}px"></div>'
        '<script type="application/json">{}</script></figure>'
    ).format(caption, description, height + AXIS, embedded_json(spec))


def figures_in(html: str) -> Iterator[tuple[str, str, str]]:
    """Caption and description, without markup, and specification of every figure that ``figure`` wrote, in order."""
    found = re.findall(
        r'<figure class="chart"><figcaption>(.*?)</figcaption><div class="plot" role="img" aria-label="(.*?)" '
        r'style="min-height:\d+px"></div><script type="application/json">(.*?)</script></figure>',
        html,
        re.DOTALL,
    )
    for caption, description, specification in found:
        yield Markup(caption).striptags(), Markup(description).unescape(), specification


def grid(figures: Iterable[Markup], size: str = "small") -> Markup:
    """Figures side by side, as many as fit; ``size`` is ``small`` or ``wide``."""
    return Markup('<div class="grid {}">{}</div>').format(size, Markup("\n").join(figures))
