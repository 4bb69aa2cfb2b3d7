"""Our numbers beside the published ones of the same game and pathway, each with what differs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from s3gym.report import fragments
from s3gym.report.fragments import Column, Row

if TYPE_CHECKING:
    from s3gym.warehouse import Warehouse

TITLE = "Beside the published tables"
ORDER = 58
MARTS = ("paper_comparison",)

_ROWS = """
    from paper_comparison
    order by
        model_id, intervention != 'main', intervention, game, pathway, replicate, cell_id,
        published_as = 'median'
"""
_NO_CHECKPOINT = "too few valid checkpoints"
_NO_STEP = "no step with a self-score, or all of them alike"
_UNPUBLISHED = "not published"


def build(warehouse: "Warehouse") -> str:
    """Two tables: what agents scored, and how well they judged themselves."""
    rows = warehouse.sql(_ROWS).to_dicts()
    if not rows:
        return fragments.notice(
            "No game and pathway of this run is in the published tables: they have `history` and `memory`, and seven "
            "games. `s3gym run --suite paper --scale paper` measures what they did."
        )
    (source,) = {row["source"] for row in rows}
    judged = {row["cell_id"]: row for row in rows if row["agreement"] is not None}
    parts = [
        fragments.lead(
            f"The published numbers ({source}) are of one run each, without error bars, and the paper's Chess is "
            "latent_chess here. They stand beside ours and are no target: the last column says in what the two differ. "
            "A model that was not published stands beside the best published one, by its mean, and the median of all."
        ),
        fragments.table("Scores beside the published ones, grouped by model", rows, _score_columns(rows), "model_id"),
    ]
    if judged:
        parts += [
            fragments.lead(
                "How well self-scores tell rewards during exploration, beside what was published of the game: there "
                "all models and both pathways are taken together."
            ),
            fragments.table(
                "Self-scores beside the published ones, grouped by model",
                list(judged.values()),
                _judge_columns(list(judged.values())),
                "model_id",
            ),
        ]
    return Markup("\n").join(parts)


def _score_columns(rows: Sequence[Row]) -> list[Column]:
    def both(label: str, name: str, note: str) -> Column:
        return Column(label, lambda r: _beside(r, name, _NO_CHECKPOINT), note)

    return [
        *fragments.who(rows),
        Column("Published", _published, "Whose numbers stand in brackets", is_text=True),
        both("Mean", "avg_score", "Mean over the checkpoints"),
        both("Best", "max_score", "Highest checkpoint"),
        both("AUC+", "auc_plus", "Area above the first score, in score times episodes: it grows with the budget"),
        Column("Unit", lambda r: r["unit"], "Of the scores", True),
        Column("In what they differ", lambda r: r["differences"], is_text=True),
    ]


def _judge_columns(rows: Sequence[Row]) -> list[Column]:
    def both(label: str, name: str, note: str) -> Column:
        return Column(label, lambda r: _beside(r, name, _NO_STEP), note)

    return [
        *fragments.who(rows),
        both("Agreement", "agreement", "Share of steps where self-score and reward are both above 0, or both not"),
        both("Over-confident", "over_confidence", "Self-score above 0 where the reward is not"),
        both("Under-confident", "under_confidence", "Reward above 0 where the self-score is not"),
        both("Error", "nmae_observed", "Mean error on the scale observed, which depends on what was played"),
    ]


def _published(row: Row) -> str:
    if row["published_as"] == "model":
        return str(row["published_model"])
    count = row["published_model_count"]
    return f"best of {count}: {row['published_model']}" if row["published_as"] == "best" else f"median of {count}"


def _beside(row: Row, name: str, why: str) -> Markup:
    ours = fragments.number(row[name], why, decimals=3)
    published = fragments.number(row[f"published_{name}"], _UNPUBLISHED, decimals=3)
    return Markup('{} <span class="aside">(published: {})</span>').format(ours, published)
