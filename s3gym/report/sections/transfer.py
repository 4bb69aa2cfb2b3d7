"""What experience from one game is worth in others: a map of differences, source by target."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from s3gym.report import charts, curves, fragments
from s3gym.report.fragments import Column, Row

if TYPE_CHECKING:
    from s3gym.warehouse import Warehouse

TITLE = "Transfer"
ORDER = 55
MARTS = ("transfer", "data_quality")

_ROWS = """
    from transfer
    order by
        model_id, intervention != 'main', intervention, pathway, game, replicate, cell_id, not is_own_game, target_game,
        checkpoint
"""
_MAPS = """
    with latest as (
        select
            *,
            game || if(intervention = 'main', '', ' · ' || intervention) || if(replicate = 0, '', ' · ' || replicate)
            || if(
                dense_rank() over (partition by model_id, pathway, game, intervention, replicate order by cell_id) = 1,
                '',
                ' · settings '
                || dense_rank() over (partition by model_id, pathway, game, intervention, replicate order by cell_id)
            ) as source
        from transfer
        qualify checkpoint = max(checkpoint) over (partition by cell_id)
    ),

    sources as (
        select distinct
            model_id,
            pathway,
            source
        from latest
    ),

    targets as (select distinct target_game from latest)

    select
        sources.model_id,
        sources.pathway,
        sources.source,
        targets.target_game,
        latest.is_own_game,
        latest.checkpoint,
        latest.mean_difference,
        latest.difference_low,
        latest.difference_high,
        latest.pair_count,
        case
            when latest.cell_id is null then 'not played'
            when latest.mean_difference is null then 'no comparison'
            when latest.is_beyond_noise is null then 'too few to tell'
            when latest.standard_error is null and latest.mean_difference = 0 then 'no difference'
            when not latest.is_beyond_noise then 'not told from zero'
            when latest.is_negative then 'loses'
            else 'gains'
        end as verdict
    from sources
    cross join targets
    left join latest
        on latest.model_id = sources.model_id
        and latest.pathway = sources.pathway
        and latest.source = sources.source
        and latest.target_game = targets.target_game
    -- the framed tile is drawn last, over the edges of its neighbours
    order by sources.model_id, sources.pathway, latest.is_own_game nulls first, sources.source, targets.target_game
"""
_MISSING = "select cast(sum(transfer_missing_count) as bigint) from data_quality"
VERDICTS = {
    "loses": "var(--over)",
    "no difference": "var(--agree)",
    "not told from zero": "var(--agree)",
    "gains": "var(--under)",
    "too few to tell": "var(--plain-back)",
    "no comparison": "var(--surface)",
    "not played": "var(--surface)",
}
"""Colours that differ in the blue part, which colour-blind people tell apart; each tile has its number besides."""
_NO_SCORE = "an episode is invalid or missing"
_NO_PAIR = "no valid pair on the same instance"


def build(warehouse: "Warehouse") -> str:
    """A map a model and pathway, then the table with all intervals."""
    rows = warehouse.sql(_ROWS).to_dicts()
    if not rows:
        return fragments.notice(
            "No experience has been tried in another game. `s3gym run --model local:tiny --pathway training` does so "
            "after its last checkpoint, and `transfer: last` in a configuration does for other pathways."
        )
    parts = [
        fragments.lead(
            "The same model on the same held-out instances of a target game, with experience from a source game and "
            "without any. Numbers are mean differences in the target's own unit, so that only a column compares; "
            "colours say whether the 95 % interval of one comparison leaves out zero; among many, one in twenty does "
            "by chance. A dash is no difference of zero: there was nothing to compare. Framed is the game that the "
            "experience is from."
        ),
        _key(),
        _maps(warehouse.sql(_MAPS).to_dicts()),
    ]
    missing = warehouse.sql(_MISSING).item()
    if missing:
        parts.append(
            fragments.notice(f"{missing:,} held-out episodes in other games have not been played; `s3gym run` goes on.")
        )
    return Markup("\n").join([*parts, fragments.table("Every source and target", rows, _columns(rows), "model_id")])


def _key() -> Markup:
    items = [
        Markup('<li><span class="swatch framed" style="background:{}"></span>{}</li>').format(colour, verdict)
        for verdict, colour in VERDICTS.items()
    ]
    return Markup('<ul class="key" aria-label="Colours of the tiles">{}</ul>').format(Markup("").join(items))


def _maps(tiles: Sequence[Row]) -> Markup:
    chart = _chart()
    figures = []
    for model, pathway in curves.distinct(tiles, "model_id", "pathway"):
        shown = [row for row in tiles if (row["model_id"], row["pathway"]) == (model, pathway)]
        description = (
            f"Differences that experience of {model} with {pathway} makes, a row a source and a column a target. "
            "The table below has the numbers."
        )
        height = 40 + 30 * len({row["source"] for row in shown})
        figures.append(charts.figure(chart, {"tiles": shown}, f"{model}: {pathway}", description, height))
    return charts.grid(figures, "wide")


def _chart() -> dict[str, Any]:
    import altair as alt

    colours = alt.Scale(domain=list(VERDICTS), range=list(VERDICTS.values()))
    base = (
        alt.Chart(alt.NamedData("tiles"))
        .encode(
            x=alt.X("target_game:N", title="tried in", axis=alt.Axis(orient="top", labelAngle=-30)),
            y=alt.Y("source:N", title="experience from"),
        )
        .transform_calculate(
            label="!isValid(datum.mean_difference) ? '–' : abs(datum.mean_difference) < 1e-9 ? '0' : "
            "abs(datum.mean_difference) < 0.005 ? '≈0' : format(datum.mean_difference, '+.2f')",
        )
    )
    tiles = base.mark_rect(strokeWidth=1.5).encode(
        color=alt.Color("verdict:N", scale=colours, legend=None),
        stroke=alt.condition("datum.is_own_game", alt.value("var(--ink)"), alt.value("var(--line)")),
        tooltip=[
            alt.Tooltip("source:N", title="experience from"),
            alt.Tooltip("target_game:N", title="tried in"),
            alt.Tooltip("checkpoint:Q", title="after episodes"),
            alt.Tooltip("mean_difference:Q", title="difference", format="+.3f"),
            alt.Tooltip("difference_low:Q", title="from", format="+.3f"),
            alt.Tooltip("difference_high:Q", title="to", format="+.3f"),
            alt.Tooltip("pair_count:Q", title="pairs"),
            alt.Tooltip("verdict:N", title="in words"),
        ],
    )
    labels = base.mark_text(fontSize=11).encode(
        text="label:N",
        color=alt.condition(
            "datum.verdict == 'loses' || datum.verdict == 'gains'", alt.value("#14171a"), alt.value("var(--ink)")
        ),
    )
    return charts.specification(alt.layer(tiles, labels))


def _columns(rows: Sequence[Row]) -> list[Column]:
    whose = [column._replace(label="From") if column.label == "Game" else column for column in fragments.who(rows)]
    return [
        *whose,
        Column("Tried in", _target, "The game of the held-out episodes", is_text=True),
        Column(
            "In words",
            _verdict,
            "Gains and loses: the 95 % interval of this one comparison leaves out zero",
            is_text=True,
        ),
        Column("After episodes", lambda r: fragments.count(r["checkpoint"]), "Exploration episodes in the source game"),
        Column("Score, without → with", _scores, "Mean held-out score in the target game"),
        Column(
            "Difference",
            lambda r: fragments.estimate(
                r["mean_difference"],
                r["difference_low"],
                r["difference_high"],
                _NO_PAIR,
                signed=True,
                of=(r["pair_count"], "pair"),
            ),
            "Mean paired difference on the same instances, in the target's unit, with its 95 % interval",
        ),
        Column(
            "Normalised",
            lambda r: fragments.number(r["normalised_difference"], "no pair or no reference players", signed=True),
            "As a share of the way from the random to the expert player: compares across games",
        ),
        Column("Pairs", lambda r: fragments.count(r["pair_count"]), "Episode pairs behind the difference"),
    ]


def _target(row: Row) -> str:
    return f"{row['target_game']} (its own)" if row["is_own_game"] else str(row["target_game"])


def _scores(row: Row) -> Markup:
    return Markup("{} → {}").format(
        fragments.number(row["initial_score"], _NO_SCORE), fragments.number(row["score"], _NO_SCORE)
    )


def _verdict(row: Row) -> Markup:
    if row["mean_difference"] is None:
        return fragments.badge("no comparison", "plain")
    if row["is_beyond_noise"] is None:
        return fragments.badge("too few to tell", "plain")
    if row["standard_error"] is None and not row["mean_difference"]:
        return fragments.badge("no difference", "plain")
    if not row["is_beyond_noise"]:
        return fragments.badge("not told from zero", "plain")
    return fragments.badge("loses", "bad") if row["is_negative"] else fragments.badge("gains", "good")
