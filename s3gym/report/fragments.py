"""Pieces of HTML that sections are made of: numbers for people, tables, notices and embedded JSON.

Everything is escaped here; a section joins no strings of HTML. No number is computed here, only written.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from math import floor, log10
from typing import Any, NamedTuple

from markupsafe import Markup, escape

from s3gym import registry

Row = Mapping[str, Any]
"""A row of a query: column name to value."""

MAX_DECIMALS = 6
SETTLED_DIGITS = 9
"""Decimals and significant digits that do not depend on the order of a sum."""
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
CONTROL = "none"
"""The pathway that everything is compared with; grey wherever it is drawn."""
PALETTE_SIZE = 6
"""Colours of the page: ``--series-1`` and on."""
NABA = "Area of the curve above its first score, in units of that score; in episodes"


class Column(NamedTuple):
    """One column of a table."""

    label: str
    cell: Callable[[Row], str]
    """Text of a row's cell; escaped unless it is Markup."""
    note: str = ""
    """What the column means, shown at its heading."""
    is_text: bool = False
    """Set to the left; numbers are set to the right."""
    is_prose: bool = False
    """Set to the left, in several lines."""


def missing(why: str) -> Markup:
    """A dash that tells why there is no value."""
    return Markup('<span class="missing" title="{0}">–<span class="unseen"> ({0})</span></span>').format(why)


def settled(value: float) -> float:
    """``value`` without the digits that depend on the order of a sum; a difference of 1e-15 is none."""
    return float(f"{round(value, SETTLED_DIGITS):.{SETTLED_DIGITS}g}") + 0.0


def number(value: float | None, why: str, decimals: int = 2, signed: bool = False) -> Markup:
    """``value`` with fixed decimals; what would round to zero without being zero is shown as a bound."""
    if value is None:
        return missing(why)
    value = settled(value)
    text = f"{value:+,.{decimals}f}" if signed else f"{value:,.{decimals}f}"
    if value and not float(text.replace(",", "")):
        smallest = f"{10.0**-decimals:.{decimals}f}"
        text = f"<{smallest}" if value > 0 else f">-{smallest}"
    elif not value:
        text = text.lstrip("+")
    return Markup(escape(text.replace("-", "−")))


def estimate(
    value: float | None,
    low: float | None,
    high: float | None,
    why: str,
    signed: bool = False,
    of: tuple[int | None, str] | None = None,
) -> Markup:
    """``value [low, high]``; decimals are added while the interval is narrower than they can show.

    An interval without width is none: how many values there are, all of them alike, is said in its place.

    Args:
        value: In any unit; None is missing.
        low: The interval's lower end; None where there is no interval.
        high: The interval's upper end.
        why: The value is missing.
        signed: A plus before what is above zero.
        of: How many values it rests on, and the noun for one.
    """
    if value is None:
        return missing(why)
    if low is None or high is None or settled(low) == settled(high):
        aside = Markup('<span class="aside" title="Too few values, or all of them equal">({})</span>')
        return Markup("{} {}").format(number(value, why, signed=signed), aside.format(_no_interval(of)))
    decimals = min(MAX_DECIMALS, max(2, -floor(log10(settled(high - low)))))
    ends = [number(end, why, decimals, signed) for end in (low, high)]
    return Markup('{} <span class="interval">[{}, {}]</span>').format(number(value, why, decimals, signed), *ends)


def _no_interval(of: tuple[int | None, str] | None) -> str:
    count, noun = of or (None, "")
    if not count:
        return "no interval"
    return f"one {noun}: no interval" if count == 1 else f"no spread in {counted(count, noun)}"


def percent(value: float | None, why: str) -> Markup:
    """A rate from 0 to 1 as a whole percentage; never 0 % or 100 % when it is not exactly that."""
    if value is None:
        return missing(why)
    return Markup("{}&nbsp;%").format(_whole_percent(value))


def rate(row: Row, name: str, why: str) -> Markup:
    """The rate ``name`` of a row with its interval, from ``name``, ``name_low`` and ``name_high``."""
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    if row[name] is None:
        return missing(why)
    if low is None or high is None:
        return Markup('{} <span class="aside">(no interval)</span>').format(percent(row[name], why))
    ends = _whole_percent(low), _whole_percent(high)
    return Markup('{} <span class="interval">[{}, {}]</span>').format(percent(row[name], why), *ends)


def _whole_percent(value: float) -> str:
    value = settled(value)
    if 0 < value < 0.005:
        return "<1"
    if 0.995 <= value < 1:
        return ">99"
    return f"{100 * value:.0f}"


def count(value: int | None, why: str = "not counted") -> Markup:
    """A count with thousands set apart."""
    return missing(why) if value is None else Markup(f"{value:,}")


def counted(count: int, noun: str) -> str:
    """``1 block``, ``2 blocks``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def listed(items: Iterable[str]) -> Markup:
    """``a``, ``a and b``, ``a, b and c``."""
    *most, last = list(items)
    return Markup("{} and {}").format(Markup(", ").join(most), last) if most else Markup("{}").format(last)


def naba(row: Row) -> Markup:
    """NABA, or why there is none."""
    return number(row["naba"], _why_no_naba(row), decimals=3)


def _why_no_naba(row: Row) -> str:
    """Why a row of ``improvement`` has no NABA."""
    return {"negative_start": "not defined for a start below zero"}.get(row["naba_status"], "no valid area")


def badge(text: str, kind: str) -> Markup:
    """A word in a coloured shape; ``kind`` is ``good``, ``bad`` or ``plain``, each with its sign."""
    sign = {"good": "▲", "bad": "▼", "plain": "●"}[kind]
    return Markup('<span class="badge {}"><span aria-hidden="true">{}</span> {}</span>').format(kind, sign, text)


def notice(text: str) -> Markup:
    """A sentence that stands where something is missing or needs care; words in backticks are set as code."""
    pieces = [Markup("<code>{}</code>").format(p) if i % 2 else escape(p) for i, p in enumerate(text.split("`"))]
    return Markup('<p class="notice">{}</p>').format(Markup("").join(pieces))


def bullets(items: Iterable[str]) -> Markup:
    """Sentences below one another."""
    return Markup('<ul class="told">{}</ul>').format(Markup("\n").join(Markup("<li>{}</li>").format(i) for i in items))


def lead(text: str) -> Markup:
    """The sentences at the head of a section that say how to read it."""
    return Markup('<p class="lead">{}</p>').format(text)


def tiles(facts: Iterable[tuple[str, str]]) -> Markup:
    """A row of (value, what it is)."""
    items = [Markup("<div><dd>{}</dd><dt>{}</dt></div>").format(value, label) for value, label in facts]
    return Markup('<dl class="tiles">{}</dl>').format(Markup("").join(items))


def who(rows: Sequence[Row]) -> list[Column]:
    """The columns that say whose row it is, leaving out intervention and replicate where all rows agree."""
    columns = [
        Column("Game", lambda r: r["game"], is_text=True),
        Column("Pathway", lambda r: pathway(r["pathway"]), is_text=True),
        Column("Intervention", lambda r: r["intervention"], "The one link of the chain that was changed", True),
        Column("Replicate", lambda r: str(r["replicate"]), "Which set of exploration seeds"),
    ]
    constant = {name.capitalize() for name in ("intervention", "replicate") if len({row[name] for row in rows}) == 1}
    if rows and "pathway" not in rows[0]:
        constant.add("Pathway")
    return [column for column in columns if column.label not in constant]


def pathway_colour(name: str) -> str:
    """The CSS colour of a pathway, the same whichever others a run has."""
    if name == CONTROL:
        return "var(--control)"
    others = [known for known in registry.names("s3gym.pathways") if known != CONTROL]
    place = others.index(name) if name in others else PALETTE_SIZE - 1
    return f"var(--series-{place % PALETTE_SIZE + 1})"


def pathway(name: str) -> Markup:
    """A pathway's name behind its colour."""
    label = f"{name} (control)" if name == CONTROL else name
    return Markup('<span class="swatch" style="background:{}"></span>{}').format(pathway_colour(name), label)


def pathway_key(names: Iterable[str]) -> Markup:
    """The key to the pathways' colours, once for many charts."""
    items = [Markup("<li>{}</li>").format(pathway(name)) for name in sorted(set(names))]
    return Markup('<ul class="key" aria-label="Colours of the pathways">{}</ul>').format(Markup("").join(items))


def table(caption: str, rows: Sequence[Row], columns: Sequence[Column], group: str | None = None) -> Markup:
    """A table that scrolls inside itself; rows that agree in ``group`` stand together under its value.

    Rows must come sorted by ``group``.
    """
    heads = [
        Markup('<th scope="col" class="{}" title="{}">{}</th>').format(_side(c), c.note, c.label)
        if c.note
        else Markup('<th scope="col" class="{}">{}</th>').format(_side(c), c.label)
        for c in columns
    ]
    bodies = []
    for value, members in groupby(rows, key=lambda r: r[group] if group else None):
        lines = [_line(row, columns) for row in members]
        if group:
            head = Markup('<tr class="group"><th scope="rowgroup" colspan="{}">{}</th></tr>')
            lines.insert(0, head.format(len(columns), value))
        bodies.append(Markup("<tbody>{}</tbody>").format(Markup("\n").join(lines)))
    return Markup(
        '<div class="scroll" tabindex="0" role="region" aria-label="{0}"><table><caption>{0}</caption>'
        "<thead><tr>{1}</tr></thead>{2}</table></div>"
    ).format(caption, Markup("").join(heads), Markup("").join(bodies))


def _line(row: Row, columns: Sequence[Column]) -> Markup:
    cells = [Markup('<td class="{}">{}</td>').format(_side(column), column.cell(row)) for column in columns]
    return Markup("<tr>{}</tr>").format(Markup("").join(cells))


def _side(column: Column) -> str:
    if column.is_prose:
        return "text prose"
    return "text" if column.is_text else "number"


def embedded_json(value: Any) -> Markup:
    """``value`` as JSON that is safe inside a ``<script>``: no text in it ends the element or opens one."""
    text = json.dumps(_settled_all(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.translate(_ESCAPES))


def _settled_all(value: Any) -> Any:
    if isinstance(value, float):
        return settled(value)
    if isinstance(value, Mapping):
        return {name: _settled_all(item) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_settled_all(item) for item in value]
    return value
