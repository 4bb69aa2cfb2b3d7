"""Curves of held-out scores over exploration episodes, a chart a model, on axes that all models of a game share."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from s3gym.report import charts, fragments
from s3gym.report.fragments import Row

if TYPE_CHECKING:
    from s3gym.warehouse import Warehouse

_CURVES = """
    select
        cell_id,
        model_id,
        game,
        pathway,
        intervention,
        replicate,
        checkpoint,
        score,
        score_low,
        score_high,
        requested_count,
        episode_count,
        invalid_count,
        is_valid
    from improvement_curve
    -- the control comes last and so is drawn over what is equal to it, which shows between its dashes
    order by
        game, intervention != 'main', intervention, model_id, pathway = 'none', pathway, replicate, cell_id, checkpoint
"""
_RANGES = """
    with anchors as (
        select cells.game, max(random_mean) as random, max(expert_mean) as expert
        from int_selected_cells as cells
        inner join int_anchors on int_anchors.config_id = cells.evaluation_config_id
        where cells.intervention = 'main'
        group by cells.game
    ),

    curves as (
        select
            game,
            max(checkpoint) as last_checkpoint,
            min(least(score, score_low)) as low,
            max(greatest(score, score_high)) as high
        from improvement_curve
        group by game
    )

    select
        curves.game,
        curves.last_checkpoint,
        anchors.random,
        anchors.expert,
        least(curves.low, anchors.random, anchors.expert) as low,
        greatest(curves.high, anchors.random, anchors.expert) as high
    from curves
    left join anchors on anchors.game = curves.game
"""
HEIGHT = 170
PLAYERS = ("random", "expert")
CROSS = "M-1,-1L1,1M1,-1L-1,1"


def points(warehouse: "Warehouse") -> list[dict[str, Any]]:
    """Every checkpoint of every cell, sorted as ``by_game`` shows them."""
    return warehouse.sql(_CURVES).to_dicts()


def by_game(points: Sequence[Row], warehouse: "Warehouse") -> list[Markup]:
    """For each game, and each intervention in it, a heading and a chart a model."""
    ranges = {row["game"]: row for row in warehouse.sql(_RANGES).to_dicts()}
    parts = []
    for game, intervention in distinct(points, "game", "intervention"):
        rows = [row for row in points if (row["game"], row["intervention"]) == (game, intervention)]
        title = game if intervention == "main" else f"{game}, {intervention}"
        parts += [Markup("<h3>{}</h3>").format(title), _grid(title, rows, ranges[game])]
    return parts


def distinct(rows: Sequence[Row], *names: str) -> list[tuple[str, ...]]:
    """The different values of these columns, in the order of the rows."""
    return list(dict.fromkeys(tuple(row[name] for name in names) for row in rows))


def _grid(title: str, rows: Sequence[Row], limits: Row) -> Markup:
    if limits["low"] is None:
        return fragments.notice(
            f"No checkpoint of `{title}` has a score: each has an episode that is invalid or missing. "
            "`s3gym status` shows where; running again plays what is missing."
        )
    chart = _chart(sorted({row["pathway"] for row in rows}), sorted({row["checkpoint"] for row in rows}), limits)
    players = [{"player": name, "mean": limits[name]} for name in PLAYERS if limits[name] is not None]
    figures = []
    for (model,) in distinct(rows, "model_id"):
        shown = [row for row in rows if row["model_id"] == model]
        data: dict[str, Sequence[Row]] = {
            "scored": [row for row in shown if row["is_valid"]],
            "unscored": [row for row in shown if not row["is_valid"]],
            "players": players,
        }
        description = f"Held-out score of {model} in {title} over exploration episodes, a line a pathway."
        figures.append(charts.figure(chart, data, model, description, HEIGHT))
    return charts.grid(figures)


def _chart(pathways: Sequence[str], checkpoints: Sequence[int], limits: Row) -> dict[str, Any]:
    """Reference players, bands, lines, points and crosses, on axes that all models of a game share."""
    import altair as alt

    def of(data: str) -> alt.Chart:
        return alt.Chart(alt.NamedData(data)).encode(
            x=alt.X(
                "checkpoint:Q",
                title="exploration episodes",
                axis=alt.Axis(values=list(checkpoints), labelOverlap=True, grid=False),
                scale=alt.Scale(domain=[0, limits["last_checkpoint"]], nice=False),
            ),
            color=alt.Color("pathway:N", scale=charts.pathway_scale(pathways), legend=None),
            detail="cell_id:N",
        )

    y = alt.Scale(domain=[limits["low"], limits["high"]], zero=False, nice=True)
    where = [
        alt.Tooltip("pathway:N"),
        alt.Tooltip("replicate:N"),
        alt.Tooltip("checkpoint:Q", title="after episodes"),
    ]
    band = (
        of("scored").mark_area(opacity=0.13).encode(y=alt.Y("score_low:Q", title="score", scale=y), y2="score_high:Q")
    )
    line = (
        of("scored")
        .mark_line(strokeWidth=2)
        .encode(
            y=alt.Y("score:Q", scale=y),
            strokeDash=alt.condition("datum.pathway == 'none'", alt.value([4, 3]), alt.value([1, 0])),
        )
    )
    points = (
        of("scored")
        .mark_point(opacity=1, filled=True)
        .encode(
            y=alt.Y("score:Q", scale=y),
            size=alt.condition("datum.pathway == 'none'", alt.value(9), alt.value(30)),
            tooltip=[
                *where,
                alt.Tooltip("score:Q", format=".3f"),
                alt.Tooltip("score_low:Q", title="from", format=".3f"),
                alt.Tooltip("score_high:Q", title="to", format=".3f"),
                alt.Tooltip("episode_count:Q", title="episodes"),
            ],
        )
    )
    crosses = (
        of("unscored")
        .mark_point(shape=CROSS, size=40, strokeWidth=1.5, opacity=1)
        .encode(
            y=alt.value(HEIGHT),
            tooltip=[
                *where,
                alt.Tooltip("invalid_count:Q", title="no score: invalid"),
                alt.Tooltip("requested_count:Q", title="of"),
            ],
        )
    )
    player = alt.Chart(alt.NamedData("players")).encode(y=alt.Y("mean:Q", title="score", scale=y))
    rule = player.mark_rule(strokeDash=[1, 3], color="var(--muted)")
    name = player.mark_text(align="left", dx=4).encode(x=alt.value("width"), text="player:N")
    return charts.specification(alt.layer(rule, name, band, line, points, crosses))
