"""What came of it: a sentence a model and game, then every gain with its interval, as a chart and as a table."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from s3gym.report import charts, fragments
from s3gym.report.fragments import CONTROL, Column, Row

if TYPE_CHECKING:
    from s3gym.warehouse import Warehouse

TITLE = "Summary"
ORDER = 10
MARTS = ("verdict", "pathway_verdict", "improvement_verdict", "improvement")

_VERDICTS = """
    from verdict
    -- models that are a reference for the others come last
    order by bool_and(verdict is not distinct from 'control_only') over (partition by model_id), model_id, game
"""
_PATHWAYS = "from pathway_verdict order by model_id, game, pathway, explorer_id"
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
        judged.verdict,
        judged.evidence,
        judged.gain,
        judged.gain_low,
        judged.gain_high,
        judged.p_holm,
        pairs.pair_count
    from improvement
    left join improvement_verdict as judged on judged.cell_id = improvement.cell_id
    left join control_gain as pairs on pairs.cell_id = improvement.cell_id
    where improvement.intervention = 'main'
    order by
        improvement.model_id,
        improvement.game,
        improvement.pathway,
        improvement.replicate,
        improvement.cell_id
"""
_HEADLINE = """
    select
        count(verdict) as judged,
        count(*) filter (where verdict = 'improves_beyond_noise') as improved,
        count(*) filter (where verdict = 'worse') as worse,
        count(*) filter (where verdict = 'no_improvement_shown') as unshown,
        count(*) filter (where verdict = 'too_few_episodes') as too_few
    from improvement_verdict
    where intervention = 'main'
"""
BADGES = {
    "improves_beyond_noise": ("improves", "good"),
    "worse": ("gets worse", "bad"),
    "no_improvement_shown": ("no improvement shown", "plain"),
    "too_few_episodes": ("too few episodes to say", "plain"),
    None: ("not judged", "plain"),
}


def build(warehouse: "Warehouse") -> str:
    """Headline counts, the verdicts, the gains as a chart, and a table of every cell."""
    rows = warehouse.sql(_CELLS).to_dicts()
    if not rows:
        return fragments.notice(
            "Nothing has been measured yet. `s3gym run` measures, and this page can then be made again."
        )
    headline = warehouse.sql(_HEADLINE).to_dicts()[0]
    parts = [
        fragments.lead(
            "A sentence a model and game, and none says more than its numbers. A pathway is compared with the control: "
            "the same model on the same held-out instances at the same checkpoints, without experience. Improves and "
            "gets worse mean beyond noise: p of at most 5 % after Holm's correction for all comparisons on this page, "
            "and a 95 % interval that leaves out zero. The interval in brackets is that of one comparison alone."
        ),
        _tiles(headline),
    ]
    if headline["judged"]:
        parts.append(_verdicts(warehouse))
    compared = [row for row in rows if row["gain"] is not None]
    if compared:
        parts += [
            Markup("<h3>Gains with their intervals</h3>"),
            fragments.lead("Filled points are beyond noise: see above."),
            fragments.pathway_key(row["pathway"] for row in compared),
            _gains(compared),
        ]
    else:
        parts.append(
            fragments.notice(
                "Nothing is judged: that needs the pathway `none` and another one for the same model and game, with "
                "valid held-out episodes in both, for example `s3gym run --pathway none --pathway history`."
            )
        )
    return Markup("\n").join(
        [*parts, fragments.table("Every cell, grouped by model", rows, _columns(rows), "model_id")]
    )


def _tiles(row: Row) -> Markup:
    facts = [
        (fragments.count(row["judged"]), "cells judged"),
        (fragments.count(row["improved"]), "improve beyond noise"),
        (fragments.count(row["worse"]), "get worse beyond noise"),
        (fragments.count(row["unshown"]), "no improvement shown"),
        (fragments.count(row["too_few"]), "too few episodes to say"),
    ]
    return fragments.tiles(facts)


# --- sentences -------------------------------------------------------------------------------------------------


def _verdicts(warehouse: "Warehouse") -> Markup:
    """A heading a model and under it a sentence a game."""
    pathways: dict[tuple[str, str], list[Row]] = {}
    for row in warehouse.sql(_PATHWAYS).to_dicts():
        pathways.setdefault((row["model_id"], row["game"]), []).append(row)
    parts = []
    for model, games in groupby(warehouse.sql(_VERDICTS).to_dicts(), key=lambda r: r["model_id"]):
        rows = list(games)
        parts.append(Markup("<h3>{}</h3>").format(model))
        judged = [row for row in rows if row["verdict"] != "control_only"]
        parts.append(
            fragments.bullets(
                [
                    Markup("<strong>{}</strong> {}.").format(row["game"], sentence(row, pathways[model, row["game"]]))
                    for row in judged
                ]
            )
            if judged
            else fragments.lead("Played without experience only: a reference for the others.")
        )
    return Markup("\n").join(parts)


def sentence(row: Row, pathways: Sequence[Row]) -> Markup:
    """The row of ``verdict`` in words, without a full stop; ``pathways`` are its rows of ``pathway_verdict``."""
    clauses = []
    for verdict, badge in BADGES.items():
        members = [_under(pathway) for pathway in pathways if pathway["verdict"] == verdict]
        if members:
            clauses.append(Markup("{} under {}").format(fragments.badge(*badge), fragments.listed(members)))
    clauses += [*_contrast(row), *_belief(row), *_exploration(pathways)]
    return Markup("; ").join(clauses)


def _under(pathway: Row) -> Markup:
    """A pathway's name and its gain, as far as it is known, and what keeps a clear interval from being a verdict."""
    facts: list[str] = []
    if pathway["gain"] is not None:
        facts.append(_gain(pathway))
    is_clear = pathway["gain_low"] is not None and (pathway["gain_low"] > 0 or pathway["gain_high"] < 0)
    if pathway["verdict"] == "no_improvement_shown" and is_clear and pathway["p_holm"] is not None:
        facts.append(f"p {fragments.number(pathway['p_holm'], 'no p')} after correction")
    if pathway["evidence"] == "checkpoints":
        facts.append("against its own start")
    if pathway["replicate_count"] > 1:
        count = {"worse": pathway["worse_count"]}.get(pathway["verdict"], pathway["improved_count"])
        word = "worse" if pathway["verdict"] == "worse" else "better"
        facts.append(f"{count} of {pathway['judged_count']} replicates {word}")
    if pathway["explorer_id"] != pathway["model_id"]:
        facts.append(f"explored by {pathway['explorer_id']}")
    if not facts:
        return Markup("{}").format(pathway["pathway"])
    return Markup("{} ({})").format(pathway["pathway"], Markup(", ").join(facts))


def _contrast(row: Row) -> list[Markup]:
    told = {
        "memory": "memory is ahead of history",
        "history": "memory is behind history",
        "not_told": "memory and history cannot be told apart",
    }
    if row["ahead"] is None or (row["ahead"] == "not_told" and row["improved_pathways"] is None):
        return []
    low, high = row["memory_over_history_low"], row["memory_over_history_high"]
    difference = fragments.estimate(row["memory_over_history"], low, high, "", signed=True)
    return [Markup("{} ({})").format(told[row["ahead"]], difference)]


def _belief(row: Row) -> list[Markup]:
    told = {
        "over_claims": "believes in success where there is none",
        "sound": "seldom believes in success where there is none",
        "not_told": "whether it believes in success where there is none cannot be told",
    }
    if row["belief"] is None:
        return []
    share = fragments.rate(row, "over_claiming", "")
    of = f"{row['over_claim_count']} of {fragments.counted(row['belief_count'], 'look')} back"
    return [Markup("{} ({}, {})").format(told[row["belief"]], of, share)]


def _exploration(pathways: Sequence[Row]) -> list[Markup]:
    """Pathways whose scores in exploration rise, where no held-out improvement is shown."""
    found = [
        Markup("{} ({})").format(
            p["pathway"],
            fragments.estimate(p["exploration_gain"], p["exploration_low"], p["exploration_high"], "", signed=True),
        )
        for p in pathways
        if p["exploration"] == "rises" and p["verdict"] in ("no_improvement_shown", "worse")
    ]
    if not found:
        return []
    text = "scores in exploration rise under {}, which is not shown to transfer to held-out episodes"
    return [Markup(text).format(fragments.listed(found))]


# --- cells -----------------------------------------------------------------------------------------------------


def _columns(rows: Sequence[Row]) -> list[Column]:
    against = Column(
        "Against",
        lambda r: {"control": "the control", "checkpoints": "its own start"}.get(r["evidence"], fragments.missing("")),
        "What the gain is over",
        is_text=True,
    )
    return [
        *fragments.who(rows),
        Column("In words", _verdict, "See above; cells of replicates are judged one by one", is_text=True),
        Column(
            "Gain",
            lambda r: _gain(r) if r["gain"] is not None else fragments.missing(_why_no_gain(r)),
            "Mean score after the first checkpoint, less that of the control on the same held-out instances, with the "
            "95 % interval of this one comparison",
        ),
        *([against] if any(row["evidence"] == "checkpoints" for row in rows) else []),
        Column(
            "p",
            lambda r: fragments.number(r["p_holm"], _why_no_gain(r), 3),
            "Chance of a gain as large, either way, if experience changed nothing; Holm's correction is in it",
        ),
        Column("Pairs", lambda r: fragments.count(r["pair_count"], _why_no_gain(r)), "Episode pairs behind the gain"),
        Column(
            "Score, first → last",
            _scores,
            "Mean held-out score before any experience and at the last checkpoint",
        ),
        Column("NABA", fragments.naba, fragments.NABA),
    ]


def _scores(row: Row) -> Markup:
    why = "no valid checkpoint"
    return Markup("{} → {}").format(
        fragments.number(row["initial_score"], why), fragments.number(row["last_score"], why)
    )


def _gain(row: Row) -> Markup:
    return fragments.estimate(
        row["gain"], row["gain_low"], row["gain_high"], "", signed=True, of=(row["pair_count"], "pair")
    )


def _why_no_gain(row: Row) -> str:
    return "this is the control" if row["pathway"] == CONTROL else "no valid pairs with a control"


def _verdict(row: Row) -> Markup:
    if row["pathway"] == CONTROL:
        return fragments.badge("the control", "plain")
    return fragments.badge(*BADGES[row["verdict"]])


def _gains(rows: Sequence[Row]) -> Markup:
    pathways = sorted({row["pathway"] for row in rows})
    chart = _chart(pathways)
    figures = []
    for game in sorted({row["game"] for row in rows}):
        shown = [row for row in rows if row["game"] == game]
        data: Mapping[str, Sequence[Row]] = {"gains": shown, "zero": [{"zero": 0}]}
        description = f"Gain in {game}, with 95 % intervals. The table below has the numbers."
        height = 24 + 17 * len(pathways) * len({row["model_id"] for row in shown})
        figures.append(charts.figure(chart, data, game, description, height))
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
            alt.Tooltip("gain:Q", format="+.3f"),
            alt.Tooltip("gain_low:Q", title="from", format="+.3f"),
            alt.Tooltip("gain_high:Q", title="to", format="+.3f"),
            alt.Tooltip("p_holm:Q", title="p, corrected", format=".3f"),
            alt.Tooltip("pair_count:Q", title="pairs"),
        ],
    )
    zero = alt.Chart(alt.NamedData("zero")).mark_rule(color="var(--muted)").encode(x="zero:Q")
    bars = base.mark_rule(strokeWidth=2).encode(x=alt.X("gain_low:Q", title="gain in score"), x2="gain_high:Q")
    points = base.mark_point(size=55, strokeWidth=2, opacity=1).encode(
        x="gain:Q",
        fill=alt.condition(
            "datum.verdict == 'improves_beyond_noise' || datum.verdict == 'worse'",
            alt.Fill("pathway:N", scale=scale, legend=None),
            alt.value("var(--surface)"),
        ),
    )
    return charts.specification(alt.layer(zero, bars, points))
