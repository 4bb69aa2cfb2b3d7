"""Whether an agent that looks back at an episode knows how it went."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from s3gym.report import fragments
from s3gym.report.fragments import Column, Row

if TYPE_CHECKING:
    from s3gym.warehouse import Warehouse

TITLE = "Looking back"
ORDER = 32
MARTS = ("retrospective_reliability",)

_CELLS = """
    from retrospective_reliability
    order by model_id, intervention != 'main', intervention, game, pathway, replicate, cell_id
"""
_NO_BELIEF = "no belief beside a verdict"
_NO_SCORE = "no expected score beside a final one"


def build(warehouse: "Warehouse") -> str:
    """One table, a row a cell, with intervals."""
    rows = warehouse.sql(_CELLS).to_dicts()
    if not rows:
        return fragments.notice(
            "No episode has been judged in retrospect. `s3gym run` asks after each explored episode, unless its "
            "configuration says `retrospective: false`."
        )
    lead = fragments.lead(
        "After each explored episode the agent says how likely it succeeded and what it scored, and the verifier says "
        "what is true. Over-claiming is a belief above one half where there was no success, under-claiming a success "
        "that was not believed; both are shares of all judged episodes with 95 % intervals. What could not be read is "
        "counted and in no rate."
    )
    return Markup("\n").join(
        [lead, fragments.table("Beliefs against the verifier, grouped by model", rows, _columns(rows), "model_id")]
    )


def _columns(rows: Sequence[Row]) -> list[Column]:
    return [
        *fragments.who(rows),
        Column(
            "Believed",
            lambda r: fragments.percent(r["mean_belief"], _NO_BELIEF),
            "Mean probability of success that the agent gave",
        ),
        Column(
            "Succeeded",
            lambda r: fragments.percent(r["success_share"], _NO_BELIEF),
            "Share of these episodes that the verifier calls a success",
        ),
        Column(
            "Over-claiming",
            lambda r: fragments.rate(r, "over_claiming", _NO_BELIEF),
            "Belief above one half, and no success",
        ),
        Column(
            "Under-claiming",
            lambda r: fragments.rate(r, "under_claiming", _NO_BELIEF),
            "Success, and a belief not above one half",
        ),
        Column(
            "Brier",
            lambda r: fragments.number(r["brier"], _NO_BELIEF, 3),
            "Mean squared distance of belief and success: 0 is perfect, 0.25 is what always saying one half gets",
        ),
        Column(
            "ECE",
            lambda r: fragments.number(r["ece"], _NO_BELIEF, 3),
            "Expected calibration error over ten bins; above 0 by chance alone where episodes are few",
        ),
        Column(
            "Score error",
            lambda r: fragments.number(r["mean_score_error"], _NO_SCORE, signed=True),
            "Mean of expected less true final score, in the game's unit: above 0 it thinks too well of itself",
        ),
        Column("Judged", lambda r: fragments.count(r["belief_count"]), "Episodes with a belief and a verdict"),
        Column(
            "Unread",
            lambda r: fragments.count(r["unreadable_belief_count"]),
            "Answers without a probability of success",
        ),
        Column("Unanswered", lambda r: fragments.count(r["unanswered_count"]), "Calls that failed"),
    ]
