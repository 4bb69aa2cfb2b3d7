"""How well an agent scores its own steps: agreement with the verifier, on which side it errs, and what a score says."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from s3gym.report import charts, fragments
from s3gym.report.fragments import Column, Row

if TYPE_CHECKING:
    from s3gym.warehouse import Warehouse

TITLE = "Judge reliability"
ORDER = 30
MARTS = ("judge_reliability", "judge_discrimination", "judge_calibration")

_CELLS = """
    select
        judges.*,
        told.positive_count / nullif(told.scored_count, 0) as positive_share,
        told.kappa,
        told.kappa_low,
        told.kappa_high,
        told.auroc,
        told.auroc_low,
        told.auroc_high
    from judge_reliability as judges
    inner join judge_discrimination as told on judges.cell_id = told.cell_id and judges.phase = told.phase
    order by
        judges.phase desc, judges.model_id, judges.intervention != 'main', judges.intervention, judges.game,
        judges.pathway, judges.replicate, judges.cell_id
"""
_SHARES = """
    unpivot (
        select
            model_id || ' · ' || pathway
            || if(intervention = 'main', '', ' · ' || intervention)
            || if(replicate = 0, '', ' · ' || replicate) as judge,
            cell_id,
            game,
            phase,
            scored_count,
            under_confidence,
            agreement,
            over_confidence
        from judge_reliability
    )
    on under_confidence, agreement, over_confidence
    into name verdict value share
    order by game, phase desc, judge, cell_id, verdict
"""
_BINS = """
    select
        *,
        bin + 1 as tenth,
        model_id || if(intervention = 'main', '', ' · ' || intervention) || if(replicate = 0, '', ' · ' || replicate)
            as judge
    from judge_calibration
    order by game, phase desc, model_id, intervention != 'main', intervention, pathway, replicate, cell_id, bin
"""
DIAGRAM_HEIGHT = 170
VERDICTS = {
    "under_confidence": ("under-confident", "var(--under)"),
    "agreement": ("agrees with the verifier", "var(--agree)"),
    "over_confidence": ("over-confident", "var(--over)"),
}
BIN_COLUMNS = (
    "cell_id",
    "judge",
    "pathway",
    "tenth",
    "self_score_min",
    "self_score_max",
    "positive_share",
    "positive_share_low",
    "positive_share_high",
    "step_count",
)
"""What a diagram holds of its rows."""
PHASES = {"exploration": "Exploration", "evaluation": "Evaluation (held-out)"}


def build(warehouse: "Warehouse") -> str:
    """Stacked shares and diagrams, exploration and evaluation side by side a game, then a table a phase."""
    rows = warehouse.sql(_CELLS).to_dicts()
    if not rows:
        return fragments.notice(
            "No step has been scored by its agent yet. `s3gym run` asks for a self-score with every action."
        )
    parts = [
        fragments.lead(
            "With every action the agent estimates the verifier's reward. The two agree when both are above "
            "zero or both are not; over-confident is an estimate above zero where the reward is not. In brackets "
            "are 95 % intervals, over whole episodes, as steps of one are not independent."
        ),
        _key(),
        _shares(warehouse.sql(_SHARES).to_dicts()),
        *_diagrams(warehouse.sql(_BINS).to_dicts()),
    ]
    for phase, name in PHASES.items():
        found = [row for row in rows if row["phase"] == phase]
        if found:
            parts.append(
                fragments.table(f"{name}: self-scores against the verifier", found, _columns(found), "model_id")
            )
        else:
            parts.append(fragments.notice(f"No step of the phase {phase} has been played."))
    return Markup("\n").join(parts)


def _key() -> Markup:
    items = [
        Markup('<li><span class="swatch" style="background:{}"></span>{}</li>').format(colour, label)
        for label, colour in VERDICTS.values()
    ]
    return Markup('<ul class="key" aria-label="Colours of the shares">{}</ul>').format(Markup("").join(items))


def _shares(shares: Sequence[Row]) -> Markup:
    chart = _chart()
    parts = []
    for game in sorted({row["game"] for row in shares}):
        figures = []
        for phase, name in PHASES.items():
            rows = [row for row in shares if (row["game"], row["phase"]) == (game, phase)]
            caption = f"{game}: {name.lower()}"
            description = f"Shares of self-scores that are under-confident, agree and are over-confident; {caption}."
            height = 24 + 18 * len({row["judge"] for row in rows})
            if rows:
                figures.append(charts.figure(chart, {"shares": rows}, caption, description, height))
        parts.append(charts.grid(figures, "wide"))
    return Markup("\n").join(parts)


def _diagrams(bins: Sequence[Row]) -> list[Markup]:
    if not bins:
        return []
    chart = _diagram(sorted({row["pathway"] for row in bins}))
    parts = [
        Markup("<h3>What a self-score says</h3>"),
        fragments.lead(
            "How often steps were rewarded, from those that the agents of a game scored lowest to those that they "
            "scored highest, a line a model and pathway, with 95 % intervals. Where self-scores say something, lines "
            "rise; where they say nothing, lines lie level on the dashed rule, the share of all steps of the game."
        ),
        fragments.pathway_key(row["pathway"] for row in bins),
    ]
    for game in sorted({row["game"] for row in bins}):
        figures = []
        for phase, name in PHASES.items():
            rows = [row for row in bins if (row["game"], row["phase"]) == (game, phase)]
            caption = f"{game}: {name.lower()}"
            description = f"Share of rewarded steps by tenths of the self-scores, lowest first; {caption}."
            if rows:
                data: dict[str, Sequence[Row]] = {
                    "bins": [{column: row[column] for column in BIN_COLUMNS} for row in rows],
                    "game": [{"share": rows[0]["game_positive_share"]}],
                }
                figures.append(charts.figure(chart, data, caption, description, DIAGRAM_HEIGHT))
        parts.append(charts.grid(figures, "wide"))
    return parts


def _diagram(pathways: Sequence[str]) -> dict[str, Any]:
    import altair as alt

    share = alt.Scale(domain=[0, 1])
    base = alt.Chart(alt.NamedData("bins")).encode(
        x=alt.X(
            "tenth:Q",
            title="self-scores of the game, from the lowest tenth to the highest",
            axis=alt.Axis(tickMinStep=1, grid=False),
            scale=alt.Scale(domain=[1, 10]),
        ),
        y=alt.Y("positive_share:Q", title="rewarded steps", axis=alt.Axis(format=".0%"), scale=share),
        color=alt.Color("pathway:N", scale=charts.pathway_scale(pathways), legend=None),
        detail="cell_id:N",
    )
    intervals = base.mark_rule(opacity=0.35).encode(
        y=alt.Y("positive_share_low:Q", scale=share), y2="positive_share_high:Q"
    )
    line = base.mark_line(strokeWidth=1.5)
    points = base.mark_point(size=26, opacity=1, filled=True).encode(
        tooltip=[
            alt.Tooltip("judge:N"),
            alt.Tooltip("pathway:N"),
            alt.Tooltip("self_score_min:Q", title="self-scores from", format=".3~f"),
            alt.Tooltip("self_score_max:Q", title="to", format=".3~f"),
            alt.Tooltip("positive_share:Q", title="rewarded", format=".1%"),
            alt.Tooltip("positive_share_low:Q", title="at least", format=".1%"),
            alt.Tooltip("positive_share_high:Q", title="at most", format=".1%"),
            alt.Tooltip("step_count:Q", title="steps"),
        ]
    )
    level = (
        alt.Chart(alt.NamedData("game"))
        .mark_rule(strokeDash=[4, 3], color="var(--muted)")
        .encode(y=alt.Y("share:Q", scale=share))
    )
    return charts.specification(alt.layer(level, intervals, line, points))


def _chart() -> dict[str, Any]:
    import altair as alt

    colours = alt.Scale(domain=list(VERDICTS), range=[colour for _, colour in VERDICTS.values()])
    chart = (
        alt.Chart(alt.NamedData("shares"))
        .mark_bar(height={"band": 0.75})
        .encode(
            y=alt.Y("judge:N", title=None),
            x=alt.X(
                "share:Q",
                title="share of scored steps",
                axis=alt.Axis(format=".0%"),
                scale=alt.Scale(domain=[0, 1]),
            ),
            color=alt.Color("verdict:N", scale=colours, legend=None),
            order=alt.Order("place:Q"),
            tooltip=[
                alt.Tooltip("judge:N"),
                alt.Tooltip("verdict:N"),
                alt.Tooltip("share:Q", format=".1%"),
                alt.Tooltip("scored_count:Q", title="scored steps"),
            ],
        )
        .transform_calculate(place=f"indexof({list(VERDICTS)}, datum.verdict)")
    )
    return charts.specification(chart)


def _columns(rows: Sequence[Row]) -> list[Column]:
    why = "no step was scored"
    return [
        *fragments.who(rows),
        Column(
            "Agreement",
            lambda r: fragments.rate(r, "agreement", why),
            "Self-score and verifier reward are both above 0, or both not",
        ),
        Column(
            "Over",
            lambda r: fragments.rate(r, "over_confidence", why),
            "Self-score above 0 where the verifier reward is not",
        ),
        Column(
            "Under",
            lambda r: fragments.rate(r, "under_confidence", why),
            "Verifier reward above 0 where the self-score is not",
        ),
        Column(
            "Rewarded",
            lambda r: fragments.percent(r["positive_share"], why),
            "Scored steps with a verifier reward above 0: what a judge that always says yes would agree on",
        ),
        Column(
            "Kappa",
            lambda r: _sure(r, "kappa", "self-scores and rewards are all alike", signed=True),
            "Cohen's kappa, agreement beyond chance: 0 is chance, 1 is perfect",
        ),
        Column(
            "AUROC",
            lambda r: _sure(r, "auroc", "all steps are rewarded, or none is"),
            "Chance that a rewarded step has a higher self-score than one that is not: 0.5 is a coin, 1 is perfect",
        ),
        Column(
            "NMAE",
            lambda r: _sure(r, "nmae", why),
            "Mean absolute error by the game's declared range",
        ),
        Column(
            "NMAE, observed range",
            lambda r: fragments.number(r["nmae_observed"], why, 3),
            "Mean absolute error on the range of rewards and self-scores seen",
        ),
        Column("Scored steps", lambda r: fragments.count(r["scored_count"])),
        Column(
            "Unscored",
            lambda r: fragments.count(r["unscored_count"]),
            "Steps without a self-score; in no rate",
        ),
    ]


def _sure(row: Row, name: str, why: str, signed: bool = False) -> Markup:
    ends = row[f"{name}_low"], row[f"{name}_high"]
    return fragments.estimate(row[name], *ends, why, signed, of=(row["instance_count"], "instance"))
