"""The curves: held-out score over exploration episodes, with the control and the reference players."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from s3gym.report import curves, fragments
from s3gym.report.fragments import Column, Row

if TYPE_CHECKING:
    from s3gym.warehouse import Warehouse

TITLE = "Improvement"
ORDER = 20
MARTS = ("improvement_curve", "improvement", "metric_intervals", "int_anchors")

_CELLS = """
    with intervals as (
        select
            cell_id,
            max(unit_count) as unit_count,
            map_from_entries(list((metric, {'low': low, 'high': high}))) as ends
        from metric_intervals
        where scope = 'cell' and contrast = 'own'
        group by cell_id
    )

    select
        improvement.*,
        intervals.unit_count,
        intervals.ends['avg'].low as avg_low,
        intervals.ends['avg'].high as avg_high,
        intervals.ends['auc_plus'].low as auc_plus_low,
        intervals.ends['auc_plus'].high as auc_plus_high,
        intervals.ends['net_area'].low as net_area_low,
        intervals.ends['net_area'].high as net_area_high
    from improvement
    left join intervals on improvement.cell_id = intervals.cell_id
    order by model_id, intervention != 'main', intervention, game, pathway, replicate, improvement.cell_id
"""


def build(warehouse: "Warehouse") -> str:
    """A chart a model and game, games one below the other, then the measures of each curve."""
    points = curves.points(warehouse)
    if not points:
        return fragments.notice(
            "No held-out episode has been played yet. `s3gym run` plays them before, between and after exploration."
        )
    parts = [
        fragments.lead(
            "Mean held-out score after a number of exploration episodes, with 95 % intervals. Dotted rules "
            "are the random and the expert player. A cross on the axis marks a checkpoint without a score, "
            "because an episode there is invalid or missing; its neighbours are joined. The control is drawn last, in "
            "dashes: a curve equal to it shows through."
        ),
        fragments.pathway_key(row["pathway"] for row in points),
        *curves.by_game(points, warehouse),
    ]
    cells = warehouse.sql(_CELLS).to_dicts()
    parts.append(fragments.table("Measures of every curve, grouped by model", cells, _columns(cells), "model_id"))
    return Markup("\n").join(parts)


def _columns(rows: Sequence[Row]) -> list[Column]:
    return [
        *fragments.who(rows),
        _measure("First", "initial_score", "Mean held-out score before any experience"),
        _measure("Last", "last_score", "Mean held-out score at the last checkpoint"),
        _sure("Mean", "avg_score", "avg", "Mean over the checkpoints"),
        _measure("Best", "max_score", "Highest checkpoint"),
        _sure(
            "AUC+",
            "auc_plus",
            "auc_plus",
            "Area of the curve above its first score, in score times episodes; never below zero, so that an interval "
            "above it shows nothing: see what noise alone gives",
        ),
        _measure("AUC−", "auc_minus", "Area of the curve below its first score, in score times episodes"),
        _sure("Net area", "net_area", "net_area", "AUC+ less AUC−"),
        Column("NABA", fragments.naba, fragments.NABA),
        _measure("Normalised first", "normalised_initial", "0 is the random player, 1 the expert"),
        _measure("Normalised last", "normalised_last", "0 is the random player, 1 the expert"),
        _measure("Normalised area", "normalised_net_area", "Mean height of the curve over its start, on that scale"),
        Column("Checkpoints", _checkpoints, "Valid checkpoints of all"),
        Column("Episodes", lambda r: fragments.count(r["episode_count"]), "Valid held-out episodes"),
        Column(
            "Invalid",
            lambda r: fragments.count(r["invalid_episode_count"]),
            "Held-out episodes without a score",
        ),
    ]


def _measure(label: str, name: str, note: str) -> Column:
    why = "no reference players" if name.startswith("normalised") else "too few valid checkpoints"
    return Column(label, lambda r: fragments.number(r[name], why), note)


def _sure(label: str, name: str, metric: str, note: str) -> Column:
    """A measure with its 95 % interval."""

    def cell(row: Row) -> Markup:
        ends = row[f"{metric}_low"], row[f"{metric}_high"]
        return fragments.estimate(row[name], *ends, "too few valid checkpoints", of=(row["unit_count"], "instance"))

    return Column(label, cell, f"{note}. In brackets its 95 % interval, over draws of the instances")


def _checkpoints(row: Row) -> Markup:
    return Markup("{}/{}").format(row["valid_checkpoint_count"], row["checkpoint_count"])
