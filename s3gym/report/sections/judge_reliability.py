"""How well an agent scores its own steps: agreement with the verifier, and on which side it errs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from s3gym.report import charts, fragments
from s3gym.report.fragments import Column, Row

if TYPE_CHECKING:
    from s3gym.warehouse import Warehouse

TITLE = "Judge reliability"
ORDER = 30
MARTS = ("judge_reliability",)

_CELLS = """
    from judge_reliability
    order by phase desc, model_id, intervention != 'main', intervention, game, pathway, replicate, cell_id
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
VERDICTS = {
    "under_confidence": ("under-confident", "var(--under)"),
    "agreement": ("agrees with the verifier", "var(--agree)"),
    "over_confidence": ("over-confident", "var(--over)"),
}
PHASES = {"exploration": "Exploration", "evaluation": "Evaluation (held-out)"}


def build(warehouse: "Warehouse") -> str:
    """Stacked shares, exploration and evaluation side by side a game, then a table a phase with intervals."""
    rows = warehouse.sql(_CELLS).to_dicts()
    if not rows:
        return fragments.notice(
            "No step has been scored by its agent yet. `s3gym run` asks for a self-score with every action."
        )
    parts = [
        fragments.lead(
            "With every action the agent estimates the verifier's reward. The two agree when both are above "
            "zero or both are not; over-confident is an estimate above zero where the reward is not. Rates "
            "carry their 95 % intervals."
        ),
        _key(),
        _shares(warehouse.sql(_SHARES).to_dicts()),
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
            "NMAE",
            lambda r: fragments.number(r["nmae"], why, 3),
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
