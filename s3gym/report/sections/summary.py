"""What came of it, a line a cell: where it started, where it ended, and whether that is more than noise."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from s3gym.report import charts, fragments
from s3gym.report.fragments import CONTROL, Column, Row

if TYPE_CHECKING:
    from s3gym.warehouse import Warehouse

TITLE = "Summary"
ORDER = 10
MARTS = ("improvement", "control_gain")

_CELLS = """
    select
        improvement.cell_id,
        improvement.model_id,
        improvement.game,
        improvement.pathway,
        improvement.intervention,
        improvement.replicate,
        improvement.initial_score,
        improvement.last_score,
        improvement.naba,
        improvement.naba_status,
        gain.pair_count,
        gain.mean_difference,
        gain.difference_low,
        gain.difference_high,
        gain.is_beyond_noise
    from improvement
    left join control_gain as gain on gain.cell_id = improvement.cell_id
    order by
        improvement.model_id,
        improvement.intervention != 'main',
        improvement.intervention,
        improvement.game,
        improvement.pathway,
        improvement.replicate,
        improvement.cell_id
"""
_HEADLINE = """
    select
        count(*) as compared,
        count(*) filter (where is_beyond_noise and mean_difference > 0) as gained,
        count(*) filter (where is_beyond_noise and mean_difference < 0) as lost,
        count(*) filter (where is_beyond_noise is distinct from true) as level
    from control_gain
    where mean_difference is not null
"""


def build(warehouse: "Warehouse") -> str:
    """Headline counts, the gains as a chart, and a table of every cell."""
    rows = warehouse.sql(_CELLS).to_dicts()
    if not rows:
        return fragments.notice(
            "Nothing has been measured yet. `s3gym run` measures, and this page can then be made again."
        )
    compared = [row for row in rows if row["mean_difference"] is not None]
    parts = [
        fragments.lead(
            "Every cell is compared with its control: the same model on the same held-out instances at the "
            "same checkpoints, without experience. A gain counts when its 95 % interval leaves out zero; "
            "such points are filled."
        ),
        _headline(warehouse.sql(_HEADLINE).to_dicts()[0]),
    ]
    if compared:
        parts += [fragments.pathway_key(row["pathway"] for row in compared), _gains(compared)]
    else:
        parts.append(
            fragments.notice(
                "No cell can be compared with a control: that needs the pathway `none` and another one for "
                "the same model and game, with valid held-out episodes in both."
            )
        )
    return Markup("\n").join(
        [*parts, fragments.table("Every cell, grouped by model", rows, _columns(rows), "model_id")]
    )


def _headline(row: Row) -> Markup:
    return fragments.tiles(
        [
            (fragments.count(row["compared"]), "cells compared with their control"),
            (fragments.count(row["gained"]), "gain more than noise"),
            (fragments.count(row["level"]), "cannot be told from noise"),
            (fragments.count(row["lost"]), "lose more than noise"),
        ]
    )


def _columns(rows: Sequence[Row]) -> list[Column]:
    return [
        *fragments.who(rows),
        Column(
            "Score, first → last",
            _scores,
            "Mean held-out score before any experience and at the last checkpoint",
        ),
        Column(
            "Gain against control",
            _gain,
            "Mean paired difference in score to the control on the same held-out instances, after the first "
            "checkpoint, with its 95 % interval",
        ),
        Column("Pairs", _pairs, "Episode pairs behind the gain"),
        Column("NABA", fragments.naba, fragments.NABA),
        Column(
            "In words",
            _verdict,
            "Gains and loses: the 95 % interval of the gain leaves out zero",
            is_text=True,
        ),
    ]


def _scores(row: Row) -> Markup:
    why = "no valid checkpoint"
    return Markup("{} → {}").format(
        fragments.number(row["initial_score"], why), fragments.number(row["last_score"], why)
    )


def _gain(row: Row) -> Markup:
    return fragments.estimate(
        row["mean_difference"], row["difference_low"], row["difference_high"], _why_no_gain(row), signed=True
    )


def _pairs(row: Row) -> Markup:
    return fragments.count(row["pair_count"], _why_no_gain(row))


def _why_no_gain(row: Row) -> str:
    return "this is the control" if row["pathway"] == CONTROL else "no valid pairs with a control"


def _verdict(row: Row) -> Markup:
    if row["pathway"] == CONTROL:
        return fragments.badge("the control", "plain")
    if row["mean_difference"] is None:
        return fragments.badge("no comparison", "plain")
    if row["is_beyond_noise"] is None:
        return fragments.badge("too few to tell", "plain")
    if not row["is_beyond_noise"]:
        return fragments.badge("within noise", "plain")
    return fragments.badge("gains", "good") if row["mean_difference"] > 0 else fragments.badge("loses", "bad")


def _gains(rows: Sequence[Row]) -> Markup:
    main = [row for row in rows if row["intervention"] == "main"]
    pathways = sorted({row["pathway"] for row in main})
    chart = _chart(pathways)
    figures = []
    for game in sorted({row["game"] for row in main}):
        shown = [row for row in main if row["game"] == game]
        figures.append(
            charts.figure(
                chart,
                {"gains": shown, "zero": [{"zero": 0}]},
                game,
                f"Gain against control in {game}, with 95 % intervals. The table below has the numbers.",
                height=24 + 17 * len(pathways) * len({row["model_id"] for row in shown}),
            )
        )
    return charts.grid(figures, "wide")


def _chart(pathways: list[str]) -> dict[str, Any]:
    import altair as alt

    scale = charts.pathway_scale(pathways)
    base = alt.Chart(alt.NamedData("gains")).encode(
        y=alt.Y("model_id:N", title=None),
        yOffset=alt.YOffset("pathway:N", scale=alt.Scale(domain=pathways)),
        color=alt.Color("pathway:N", scale=scale, legend=None),
        tooltip=[
            alt.Tooltip("model_id:N", title="model"),
            alt.Tooltip("pathway:N"),
            alt.Tooltip("replicate:N"),
            alt.Tooltip("mean_difference:Q", title="gain", format="+.3f"),
            alt.Tooltip("difference_low:Q", title="from", format="+.3f"),
            alt.Tooltip("difference_high:Q", title="to", format="+.3f"),
            alt.Tooltip("pair_count:Q", title="pairs"),
        ],
    )
    zero = alt.Chart(alt.NamedData("zero")).mark_rule(color="var(--muted)").encode(x="zero:Q")
    bars = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("difference_low:Q", title="gain in score against control"), x2="difference_high:Q"
    )
    points = base.mark_point(size=55, strokeWidth=2, opacity=1).encode(
        x="mean_difference:Q",
        fill=alt.condition(
            "datum.is_beyond_noise",
            alt.Fill("pathway:N", scale=scale, legend=None),
            alt.value("var(--surface)"),
        ),
    )
    return charts.specification(alt.layer(zero, bars, points))
