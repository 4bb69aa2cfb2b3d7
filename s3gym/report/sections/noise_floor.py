"""What the published measures are worth: beside each what chance alone makes of a policy that never changes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from s3gym.report import charts, fragments
from s3gym.report.fragments import Column, Row

if TYPE_CHECKING:
    from s3gym.warehouse import Warehouse

TITLE = "What noise alone gives"
ORDER = 25
MARTS = ("noise_floor",)

_FLOORS = """
    from noise_floor
    where observed is not null
    -- against the control where there is one, else against the cell's own checkpoints
    qualify row_number() over (partition by cell_id, metric order by null_kind = 'control' desc) = 1
    order by
        model_id, intervention != 'main', intervention, game, pathway, replicate, cell_id,
        array_position(['auc_plus', 'max', 'naba', 'gain'], metric)
"""
_HEADLINE = """
    with floors as (
        from noise_floor
        where metric = 'auc_plus' and observed is not null
        qualify row_number() over (partition by cell_id order by null_kind = 'control' desc) = 1
    )

    select
        count(*) as cells,
        count(*) filter (where observed > 1e-9) as positive,
        count(*) filter (where observed > 1e-9 and p_value > 0.05) as noise
    from floors
"""
METRICS = {"auc_plus": "AUC+", "max": "best", "naba": "NABA"}
NULLS = {"control": "the cell plays as its control", "checkpoints": "one policy plays all checkpoints"}


def build(warehouse: "Warehouse") -> str:
    """A sentence, AUC+ beside its floor as a chart a game, and a table of the three measures."""
    rows = [row for row in warehouse.sql(_FLOORS).to_dicts() if row["metric"] in METRICS]
    if not rows:
        return fragments.notice(
            "Nothing to compare with chance: this needs a valid first checkpoint and one more, which `s3gym run` "
            "plays, and what chance gives, which `s3gym report` computes."
        )
    headline = warehouse.sql(_HEADLINE).to_dicts()[0]
    areas = [row for row in rows if row["metric"] == "auc_plus" and row["intervention"] == "main"]
    parts = [
        fragments.lead(
            "The published measures of improvement cannot be below zero, so that chance alone puts them above it: at "
            "three episodes a checkpoint AUC+ is above zero in 79 % of runs of a policy that never changes. Here the "
            "episodes of each cell are dealt anew among checkpoints (and control) thousands of times, as if experience "
            "changed nothing."
        ),
        Markup("<p>{}</p>").format(_in_words(headline)),
        fragments.pathway_key(row["pathway"] for row in areas),
        _figures(areas),
        fragments.table("Published measures beside their noise floors", rows, _columns(rows), "model_id"),
    ]
    return Markup("\n").join(parts)


def _in_words(row: Row) -> str:
    return (
        f"AUC+ is above zero in {row['positive']:,} of {fragments.counted(row['cells'], 'cell')}; in {row['noise']:,} "
        "of these it is no more than chance gives in one run of twenty."
    )


def _figures(rows: Sequence[Row]) -> Markup:
    pathways = sorted({row["pathway"] for row in rows})
    chart = _chart(pathways)
    figures = []
    for game in sorted({row["game"] for row in rows}):
        shown = [row for row in rows if row["game"] == game]
        description = (
            f"AUC+ in {game} beside what chance gives on average and in 95 % of runs. The table below has the numbers."
        )
        height = 24 + 15 * len(pathways) * len({row["model_id"] for row in shown})
        figures.append(charts.figure(chart, {"floors": shown}, game, description, height))
    return charts.grid(figures, "wide")


def _chart(pathways: Sequence[str]) -> dict[str, Any]:
    import altair as alt

    base = alt.Chart(alt.NamedData("floors")).encode(
        y=alt.Y("model_id:N", title=None),
        yOffset=alt.YOffset("pathway:N", scale=alt.Scale(domain=list(pathways))),
        tooltip=[
            alt.Tooltip("model_id:N", title="model"),
            alt.Tooltip("pathway:N"),
            alt.Tooltip("replicate:N"),
            alt.Tooltip("observed:Q", title="AUC+", format=".3f"),
            alt.Tooltip("null_mean:Q", title="chance, mean", format=".3f"),
            alt.Tooltip("null_high:Q", title="chance, 95 %", format=".3f"),
            alt.Tooltip("p_value:Q", title="p", format=".3f"),
        ],
    )
    reach = base.mark_bar(color="var(--agree)", height={"band": 0.9}).encode(
        x=alt.X("null_high:Q", title="AUC+; grey: chance, 95 % of runs, and its mean"), x2=alt.datum(0)
    )
    mean = base.mark_tick(color="var(--muted)", thickness=2).encode(x="null_mean:Q")
    points = base.mark_point(size=45, filled=True, opacity=1).encode(
        x="observed:Q", color=alt.Color("pathway:N", scale=charts.pathway_scale(pathways), legend=None)
    )
    return charts.specification(alt.layer(reach, mean, points))


def _columns(rows: Sequence[Row]) -> list[Column]:
    return [
        *fragments.who(rows),
        Column("Measure", lambda r: METRICS[r["metric"]], "AUC+ and NABA as published; best: highest checkpoint", True),
        Column("As published", lambda r: _number(r, "observed"), "Over the checkpoints valid in cell and control"),
        Column("Chance, mean", lambda r: _floor(r, "null_mean"), "What it is on average if experience changes nothing"),
        Column("Chance, 95 %", lambda r: _floor(r, "null_high"), "What chance exceeds in one run of twenty"),
        Column(
            "p",
            lambda r: fragments.number(r["p_value"], "not defined", 3),
            "Chance of a value as high, or higher; of this measure of this cell alone, corrected for nothing",
        ),
        Column("Chance is", lambda r: NULLS[r["null_kind"]], "The null that episodes are dealt under", is_text=True),
    ]


def _number(row: Row, name: str) -> Markup:
    return fragments.number(row[name], "not defined", 3 if row["metric"] == "naba" else 2)


def _floor(row: Row, name: str) -> Markup:
    """A number of the floor, or that dealing changes nothing: all scores alike show no chance."""
    if row["null_mean"] == row["null_high"] == row["observed"]:
        return fragments.missing("all scores are alike: dealing them anew changes nothing")
    return _number(row, name)
