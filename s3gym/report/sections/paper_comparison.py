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
    -- a program beside a language model says nothing: players are shown where there is nothing else to show
    where
        intervention = 'main'
        and (
            not starts_with(model_id, 'player:')
            or not exists (from paper_comparison where not starts_with(model_id, 'player:'))
        )
    order by model_id, game, pathway, replicate, cell_id, published_as = 'median'
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
            "latent_chess here. They stand beside ours and are no target, and what the two differ in stands with them. "
            "A model that was not published stands beside the best published one, by its mean, and the median of all."
        ),
        *_players(rows),
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


def _players(rows: Sequence[Row]) -> list[Markup]:
    """What to make of scripted players, where they are all there is."""
    if not rows[0]["model_id"].startswith("player:"):
        return []
    return [
        fragments.notice(
            "Only scripted players have been measured: programs that know a game's rules, no language models. Their "
            "numbers show the form of this comparison and nothing about the published models; `s3gym run --model NAME` "
            "measures a model, and players are then left out here."
        )
    ]


def _score_columns(rows: Sequence[Row]) -> list[Column]:
    def both(label: str, name: str, note: str) -> Column:
        return Column(label, lambda r: _beside(r, name, _NO_CHECKPOINT), note)

    return [
        *fragments.who(rows),
        Column("In what they differ", lambda r: r["differences"], is_prose=True),
        Column("Published", _published, "Whose numbers stand in brackets", is_text=True),
        both("Mean", "avg_score", "Mean over the checkpoints"),
        both("Best", "max_score", "Highest checkpoint"),
        both("AUC+", "auc_plus", "Area above the first score, in score times episodes: it grows with the budget"),
        Column("Unit", lambda r: r["unit"], "Of the scores", True),
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
