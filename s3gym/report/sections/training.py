"""What became of models trained on what they judged well: scores, losses, and what each update was made of."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from s3gym.report import charts, curves, fragments
from s3gym.report.fragments import CONTROL, Column, Row

if TYPE_CHECKING:
    from s3gym.warehouse import Warehouse

TITLE = "Training"
ORDER = 50
MARTS = (
    "training_study",
    "training_updates",
    "training_loss",
    "training_comparison",
    "improvement_curve",
    "int_anchors",
)

_ORDER = "where intervention = 'main' order by model_id, game, pathway, replicate, cell_id"
_STUDY = f"from training_study {_ORDER}"
_UPDATES = f"select *, peak_memory_bytes / 2 ** 30 as peak_memory_gib from training_updates {_ORDER}, checkpoint"
_LOSSES = f"from training_loss {_ORDER}, step_number"
_PUBLISHED = f"from training_comparison {_ORDER}"
HEIGHT = 150
_NO_CHECKPOINT = "too few valid checkpoints"
_NO_STEP = "nothing was trained"
_UNPUBLISHED = "not published"


def build(warehouse: "Warehouse") -> str:
    """The curves with their controls, the losses, then tables: cells, updates, and the published study."""
    cells = warehouse.sql(_STUDY).to_dicts()
    if not cells:
        return fragments.notice(
            "No model has been trained. `s3gym run --model local:tiny --pathway training` trains a small one on this "
            "machine; any local model can take its place."
        )
    updates = warehouse.sql(_UPDATES).to_dicts()
    losses = warehouse.sql(_LOSSES).to_dicts()
    parts = [
        fragments.lead(
            "Exploration steps that the agent judged well become rows to train on, and new weights are evaluated on "
            "held-out episodes with no history and no memory. The verifier's rewards select nothing. Whether a change "
            "is more than noise is said in the summary; the control is drawn last, in dashes, so that a curve equal to "
            "it shows through."
        ),
        *_scores(cells, warehouse),
    ]
    if losses:
        parts += [Markup("<h3>Loss</h3>"), _losses(losses)]
    parts.append(fragments.table("What training made of each model", cells, _study_columns(cells), "model_id"))
    if updates:
        parts.append(fragments.table("What each update was made of", updates, _update_columns(updates), "model_id"))
    else:
        parts.append(fragments.notice("No update has been made yet; `s3gym run` again goes on where it stopped."))
    return Markup("\n").join([*parts, *_published(warehouse.sql(_PUBLISHED).to_dicts())])


def _scores(cells: Sequence[Row], warehouse: "Warehouse") -> list[Markup]:
    """The curves of trained cells, with the control of the same model and game where there is one."""
    trained = {cell["cell_id"] for cell in cells}
    places = {(cell["model_id"], cell["game"], cell["intervention"]) for cell in cells}
    points = [
        point
        for point in curves.points(warehouse)
        if point["cell_id"] in trained
        or (point["pathway"] == CONTROL and (point["model_id"], point["game"], point["intervention"]) in places)
    ]
    if not points:
        return [fragments.notice("No held-out episode has been played yet; `s3gym run` plays them.")]
    return [fragments.pathway_key(point["pathway"] for point in points), *curves.by_game(points, warehouse)]


def _losses(losses: Sequence[Row]) -> Markup:
    chart = _chart(sorted({row["pathway"] for row in losses}))
    figures = []
    for model, game in curves.distinct(losses, "model_id", "game"):
        shown = [row for row in losses if (row["model_id"], row["game"]) == (model, game)]
        description = f"Loss of {model} in {game} over the steps of the optimizer; the first of each update is marked."
        figures.append(charts.figure(chart, {"losses": shown}, f"{model}: {game}", description, HEIGHT))
    return charts.grid(figures)


def _chart(pathways: Sequence[str]) -> dict[str, Any]:
    import altair as alt

    base = alt.Chart(alt.NamedData("losses")).encode(
        x=alt.X("step_number:Q", title="steps of the optimizer", axis=alt.Axis(tickMinStep=1, grid=False)),
        y=alt.Y("loss:Q", title="loss, nats a token"),
        color=alt.Color("pathway:N", scale=charts.pathway_scale(pathways), legend=None),
        detail="cell_id:N",
    )
    line = base.mark_line(strokeWidth=1.5)
    points = base.mark_point(opacity=1, filled=True).encode(
        size=alt.condition("datum.update_step == 0", alt.value(45), alt.value(10)),
        tooltip=[
            alt.Tooltip("replicate:N"),
            alt.Tooltip("checkpoint:Q", title="update after episodes"),
            alt.Tooltip("epoch:Q", format=".2f"),
            alt.Tooltip("loss:Q", format=".4f"),
            alt.Tooltip("gradient_norm:Q", title="gradient norm", format=".3f"),
            alt.Tooltip("learning_rate:Q", title="learning rate", format=".2e"),
            alt.Tooltip("row_count:Q", title="rows"),
        ],
    )
    return charts.specification(alt.layer(line, points))


def _study_columns(rows: Sequence[Row]) -> list[Column]:
    def measure(label: str, name: str, note: str, signed: bool = False) -> Column:
        return Column(label, lambda r: fragments.number(r[name], _NO_CHECKPOINT, signed=signed), note)

    return [
        *fragments.who(rows),
        *_explorer(rows),
        measure("Untrained", "initial_score", "Mean held-out score before any update"),
        measure("Trained, mean", "trained_avg_score", "Mean over the checkpoints with changed weights"),
        measure("Trained, best", "trained_max_score", "Highest of these"),
        measure("Last", "last_score", "Mean held-out score at the last checkpoint"),
        measure("Change", "score_delta", "Last less untrained", signed=True),
        measure(
            "AUC+ by updates",
            "auc_plus_updates",
            "Area of the curve above its first score, in score times updates, as the published study has it; AUC+ "
            "everywhere else is in score times episodes, which is this times the episodes between two updates",
        ),
        Column(
            "Above untrained",
            _above,
            "Checkpoints with changed weights that score above the untrained model, of all such that are valid. They "
            "are not independent: the interval is a lower bound on what is not known",
        ),
        Column("Updates", lambda r: fragments.count(r["update_count"]), "Those that changed the weights"),
        Column("Without change", lambda r: fragments.count(r["unchanged_count"]), "Too few rows, or a failure"),
    ]


def _above(row: Row) -> Markup:
    share = fragments.rate(row, "above_rate", "no checkpoint to compare")
    return Markup("{}/{} {}").format(row["above_count"], row["compared_count"], share)


def _explorer(rows: Sequence[Row]) -> list[Column]:
    """A column that says who explored, where that was not always the model itself."""
    if not any(row["explorer_id"] for row in rows):
        return []
    return [Column("Explored by", lambda r: r["explorer_id"] or "itself", "Whose episodes it was trained on", True)]


def _update_columns(rows: Sequence[Row]) -> list[Column]:
    def counted(label: str, name: str, note: str = "") -> Column:
        return Column(label, lambda r: fragments.count(r[name], "no step was kept"), note)

    def measured(label: str, name: str, note: str, decimals: int = 2) -> Column:
        return Column(label, lambda r: fragments.number(r[name], _NO_STEP, decimals), note)

    return [
        *fragments.who(rows),
        *_explorer(rows),
        counted("After episodes", "checkpoint", "Exploration episodes behind the agent"),
        Column("Weights", _outcome, "Whether they changed", is_text=True),
        counted("Steps", "considered_count", "Exploration steps considered"),
        counted("Kept", "kept_count", "To train on as they were answered"),
        counted("Corrected", "corrected_count", "To train on with a better answer, which the agent was asked for"),
        counted("Filtered", "filtered_count", "Left out"),
        Column("Why", lambda r: r["reasons"] or fragments.missing("no steps"), "Steps by the rule that decided", True),
        counted("Reply tokens", "trained_reply_tokens", "The loss is taken on these, in one pass over the rows"),
        counted("Optimizer steps", "step_count"),
        counted("Tokens computed", "token_count", "Prompts included, over all steps"),
        measured("First loss", "first_loss", "Nats a reply token, before the first step", 3),
        measured("Last loss", "last_loss", "Nats a reply token, before the last step", 3),
        measured("Gradient norm", "gradient_norm_max", "The highest, before it is clipped"),
        measured("Seconds", "seconds", "All steps together"),
        measured("Memory, GiB", "peak_memory_gib", "Peak of the process, or of the device"),
    ]


def _outcome(row: Row) -> Markup:
    if row["is_updated"]:
        return fragments.badge("changed", "good")
    return fragments.badge("failed", "bad") if row["is_updated"] is None else fragments.badge("unchanged", "plain")


def _published(rows: Sequence[Row]) -> list[Markup]:
    if not rows:
        return []
    (source,) = {row["source"] for row in rows}
    return [
        fragments.lead(
            f"The published study ({source}) trained one model, and its recipe is not known. Its numbers stand beside "
            "ours and are no target: the second column says in what the two differ."
        ),
        fragments.table("Beside the published study", rows, _published_columns(rows), "model_id"),
    ]


def _published_columns(rows: Sequence[Row]) -> list[Column]:
    def both(label: str, ours: str, published: str, note: str) -> Column:
        return Column(
            label,
            lambda r: _beside(fragments.number(r[ours], _NO_CHECKPOINT), fragments.number(r[published], _UNPUBLISHED)),
            note,
        )

    return [
        *fragments.who(rows),
        Column("In what they differ", lambda r: r["differences"], is_prose=True),
        both("Untrained", "initial_score", "published_initial_score", "Mean held-out score before any update"),
        both("Trained, mean", "trained_avg_score", "published_trained_avg_score", "Mean over updated checkpoints"),
        both("Trained, best", "trained_max_score", "published_trained_max_score", "Highest of these"),
        both("Last", "last_score", "published_last_score", "Score of the last checkpoint"),
        both("AUC+ by updates", "auc_plus_updates", "published_auc_plus", "Score times updates; published: by epochs"),
        Column("Above untrained", _published_above, "Updated checkpoints above the untrained model"),
        Column("Published curve", lambda r: r["note"], is_prose=True),
    ]


def _published_above(row: Row) -> Markup:
    published = (
        fragments.missing(_UNPUBLISHED)
        if row["published_above_count"] is None
        else Markup("{}/{}").format(row["published_above_count"], row["published_compared_count"])
    )
    return _beside(Markup("{}/{}").format(row["above_count"], row["compared_count"]), published)


def _beside(ours: Markup, published: Markup) -> Markup:
    return Markup('{} <span class="aside">(published: {})</span>').format(ours, published)
