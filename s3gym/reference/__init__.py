"""Published figures as data, a CSV file a table, each row with its source and licence. A blank is not published.

They are what ours are shown beside; no number of ours is made of them. ``models.csv`` says which of our model names
mean a published model: only what is listed there is ever shown as the same.
"""

from pathlib import Path

import pyarrow as pa

_FOLDER = Path(__file__).parent
_TEXTS = (
    *("game", "pathway", "model", "unit", "note", "source", "phase", "setting", "setting_value"),
    *("model_id", "published_model"),
)


def _schema(*columns: str) -> pa.Schema:
    """Counts and intervals are integers, texts as listed, all else are numbers."""

    def kind(column: str) -> pa.DataType:
        if column in _TEXTS:
            return pa.string()
        return pa.int64() if column.endswith(("_count", "_interval")) else pa.float64()

    return pa.schema([(column, kind(column)) for column in columns])


_BUDGETS = ("exploration_episode_count", "evaluation_interval", "evaluation_episode_count", "checkpoint_count")

PUBLISHED: dict[str, tuple[Path, pa.Schema]] = {
    "published_improvement": (
        _FOLDER / "improvement.csv",
        _schema(
            *("game", "pathway", "model"), *_BUDGETS, *("avg_score", "max_score", "auc_plus", "unit", "note", "source")
        ),
    ),
    "published_judge_reliability": (
        _FOLDER / "judge_reliability.csv",
        _schema("game", "agreement", "nmae_observed", "over_confidence", "under_confidence", "source"),
    ),
    "published_judge_coupling": (
        _FOLDER / "judge_coupling.csv",
        _schema("game", "agreement_rho", "negative_error_rho", "agreement_gap", "error_gap", "source"),
    ),
    "published_memory_vs_history": (
        _FOLDER / "memory_vs_history.csv",
        _schema(
            *("game", "pair_count", "memory_win_count", "history_win_count", "tie_count"),
            *("mean_naba_difference", "source"),
        ),
    ),
    "published_training": (
        _FOLDER / "training_qwen3_8b.csv",
        _schema(
            *("game", "model", "evaluation_episode_count", "checkpoint_count"),
            *("initial_score", "trained_avg_score", "trained_max_score", "last_score", "auc_plus"),
            *("compared_count", "above_count", "note", "source"),
        ),
    ),
    "published_settings": (
        _FOLDER / "settings.csv",
        _schema("game", "phase", "setting", "setting_value", "source"),
    ),
    "published_models": (_FOLDER / "models.csv", _schema("model_id", "published_model")),
}
"""Table in the schema ``raw``: its file and its columns."""
