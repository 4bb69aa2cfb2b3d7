"""Whether a summary of experience serves an agent better than the experience itself."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from s3gym.report import charts, fragments
from s3gym.report.fragments import Column, Row

if TYPE_CHECKING:
    from s3gym.warehouse import Warehouse

TITLE = "Memory against history"
ORDER = 40
MARTS = ("memory_vs_history", "memory_vs_history_games")

_PAIRS = """
    from memory_vs_history
    where memory_cell_id is not null and history_cell_id is not null
    order by model_id, intervention != 'main', intervention, game, replicate, memory_cell_id
"""
_GAMES = "from memory_vs_history_games where pair_count > 0 order by game"
_WHY = "NABA is not defined on one side: no valid start, one below zero, or no area"


def build(warehouse: "Warehouse") -> str:
    """A chart a model with both pathways' NABA a game, then the table."""
    rows = warehouse.sql(_PAIRS).to_dicts()
    if not rows:
        return fragments.notice(
            "Nothing to compare: this needs the pathways `memory` and `history` for the same model and game, "
            "for example `s3gym run --pathway memory --pathway history`."
        )
    games = warehouse.sql(_GAMES).to_dicts()
    parts = [
        fragments.lead(
            "Both pathways had the same exploration budget. NABA, as published, is the area of the curve above its "
            "first score, in units of that score; one pair of curves says nothing of chance, so that ahead means "
            "higher and no more. Which gain is larger beyond noise is said in the summary."
        ),
        fragments.pathway_key(["memory", "history"]),
        _figures([row for row in rows if row["winner"] and row["intervention"] == "main"]),
    ]
    if games:
        parts.append(fragments.table("Games, beside the published contest", games, _game_columns(games)))
    parts.append(fragments.table("Memory against history, grouped by model", rows, _columns(rows), "model_id"))
    return Markup("\n").join(parts)


def _figures(rows: Sequence[Row]) -> Markup:
    chart = _chart()
    figures = []
    for model in sorted({row["model_id"] for row in rows}):
        shown = [row for row in rows if row["model_id"] == model]
        description = f"NABA of {model} with memory and with history, a line a game. The table below has the numbers."
        height = 24 + 22 * len({row["game"] for row in shown})
        figures.append(charts.figure(chart, {"pairs": shown}, model, description, height))
    return charts.grid(figures)


def _chart() -> dict[str, Any]:
    import altair as alt

    pair = alt.Chart(alt.NamedData("pairs")).encode(
        y=alt.Y("game:N", title=None),
        tooltip=[
            alt.Tooltip("game:N"),
            alt.Tooltip("replicate:N"),
            alt.Tooltip("naba_memory:Q", title="memory", format=".3f"),
            alt.Tooltip("naba_history:Q", title="history", format=".3f"),
        ],
    )
    link = pair.mark_rule(color="var(--line)", strokeWidth=3).encode(
        x=alt.X("naba_memory:Q", title="NABA"), x2="naba_history:Q"
    )
    ends = [
        pair.mark_point(size=60, filled=True, opacity=1, color=fragments.pathway_colour(name)).encode(
            x=f"naba_{name}:Q"
        )
        for name in ("history", "memory")
    ]
    return charts.specification(alt.layer(link, *ends))


def _game_columns(rows: Sequence[Row]) -> list[Column]:
    def both(label: str, name: str, note: str) -> Column:
        return Column(label, lambda r: _beside(fragments.count(r[name]), r, fragments.count, name), note)

    sources = ", ".join(sorted({row["source"] for row in rows if row["source"]}))
    return [
        Column("Game", lambda r: r["game"], is_text=True),
        both("Pairs", "pair_count", f"A model and replicate each; published: a model each. {sources}"),
        both("Memory ahead", "memory_win_count", "By any margin"),
        both("History ahead", "history_win_count", "By any margin"),
        both("Tie", "tie_count", "No difference"),
        Column(
            "Mean difference",
            lambda r: _beside(_signed(r["mean_naba_difference"], _WHY), r, _signed, "mean_naba_difference"),
            "NABA of memory less that of history",
        ),
    ]


def _signed(value: float | None, why: str) -> Markup:
    return fragments.number(value, why, signed=True)


def _beside(ours: Markup, row: Row, written: Callable[[Any, str], Markup], name: str) -> Markup:
    if row["published_pair_count"] is None:
        return ours
    published = written(row[f"published_{name}"], "not published")
    return Markup('{} <span class="aside">(published: {})</span>').format(ours, published)


def _columns(rows: Sequence[Row]) -> list[Column]:
    def naba(label: str, name: str, note: str, signed: bool = False) -> Column:
        return Column(label, lambda r: fragments.number(r[name], _WHY, 3, signed), note)

    return [
        *fragments.who(rows),
        naba("NABA, memory", "naba_memory", f"With a summary of experience. {fragments.NABA}"),
        naba("NABA, history", "naba_history", f"With the experience itself. {fragments.NABA}"),
        naba("Difference", "naba_difference", "Memory less history", signed=True),
        Column("Ahead", lambda r: r["winner"] or fragments.missing(_WHY), is_text=True),
    ]
