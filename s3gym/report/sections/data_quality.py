"""What the numbers rest on: checks, episodes without a score, failed calls and unusable answers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from s3gym.report import fragments
from s3gym.report.fragments import Column, Row

if TYPE_CHECKING:
    from s3gym.warehouse import Warehouse

TITLE = "Data quality"
ORDER = 80
MARTS = ("data_quality", "action_validity")

_CELLS = """
    from data_quality
    order by model_id, intervention != 'main', intervention, game, pathway, replicate, cell_id
"""
_ACTIONS = """
    from action_validity
    order by model_id, intervention != 'main', intervention, game, pathway, replicate, cell_id, phase desc
"""
_ORACLE = "select count(*) as cells from data_quality where intervention = 'oracle_judge'"
_SHARED = "select distinct game from data_quality where is_instances_shared order by game"


def build(warehouse: "Warehouse") -> str:
    """Checks first, then episodes and calls a cell, then what became of the answers."""
    parts = [
        fragments.lead(
            "A failed call is neither an answer nor a zero: its episode is invalid, and a checkpoint with an "
            "invalid episode has no score."
        ),
        _checks(warehouse.checks()),
    ]
    cells = warehouse.sql(_CELLS).to_dicts()
    actions = warehouse.sql(_ACTIONS).to_dicts()
    if not cells:
        parts.append(fragments.notice("No cell has been asked for yet; `s3gym run` asks for some."))
    parts += [_shared(row["game"]) for row in warehouse.sql(_SHARED).to_dicts()]
    if warehouse.sql(_ORACLE).item():
        parts.append(
            fragments.notice(
                "Cells with the intervention `oracle_judge` read the verifier's rewards where their own scores stood "
                "in the experience. They locate a break and are no result of an agent."
            )
        )
    if cells:
        parts.append(fragments.table("Episodes and calls of every cell", cells, _cell_columns(cells), "model_id"))
    if actions:
        parts.append(fragments.table("What became of the answers", actions, _action_columns(actions), "model_id"))
    return Markup("\n").join(parts)


def _shared(game: str) -> Markup:
    return fragments.notice(
        f"`{game}` has so few instances that exploration and evaluation share them: its scores show what was "
        "learned about these instances, not about new ones."
    )


def _checks(found: dict[str, int]) -> Markup:
    rows = [{"name": name, "offending": offending} for name, offending in sorted(found.items())]
    columns = [
        Column("Check", lambda r: Markup("<code>{}</code>").format(r["name"]), is_text=True),
        Column("Offending rows", lambda r: fragments.count(r["offending"])),
        Column("Result", _result, is_text=True),
    ]
    return fragments.table("Checks of the data", rows, columns)


def _result(row: Row) -> Markup:
    return fragments.badge("failed", "bad") if row["offending"] else fragments.badge("passed", "good")


def _cell_columns(rows: Sequence[Row]) -> list[Column]:
    def counted(label: str, name: str, note: str = "") -> Column:
        return Column(label, lambda r: fragments.count(r[name]), note)

    transfers = [
        counted("Transfer asked for", "transfer_requested_count", "Held-out episodes in other games"),
        counted("Transfer valid", "transfer_valid_count", "With a score"),
        counted("Transfer invalid", "transfer_invalid_count", "A call failed: no score, in no mean"),
        counted("Transfer missing", "transfer_missing_count", "Not played"),
    ]
    return [
        *fragments.who(rows),
        counted("Evaluation asked for", "evaluation_requested_count", "Held-out episodes, all checkpoints"),
        counted("Evaluation valid", "evaluation_valid_count", "Held-out episodes with a score"),
        counted("Evaluation invalid", "evaluation_invalid_count", "A call failed: no score, in no mean"),
        counted("Evaluation missing", "evaluation_missing_count", "Held-out episodes not played"),
        *(transfers if any(row["transfer_requested_count"] for row in rows) else []),
        counted("Exploration asked for", "exploration_requested_count", "Exploration episodes"),
        counted("Exploration valid", "exploration_valid_count", "Exploration episodes with a score"),
        counted("Exploration invalid", "exploration_invalid_count", "A call failed: no score"),
        counted("Steps", "step_count", "Both phases"),
        counted("Failed calls", "failed_call_count", "Steps without a reply"),
        counted("Unscored", "unscored_step_count", "Steps to which the agent gave no self-score"),
        counted("History cut", "history_cut_step_count", "Steps whose prompt held not all earlier episodes"),
    ]


def _action_columns(rows: Sequence[Row]) -> list[Column]:
    def counted(name: str, note: str) -> Column:
        return Column(name.capitalize(), lambda r: fragments.count(r[f"{name}_count"]), note)

    return [
        *fragments.who(rows),
        Column("Phase", lambda r: r["phase"], is_text=True),
        Column("Usable", lambda r: fragments.rate(r, "usable_rate", "no step was answered"), "Ok or repaired"),
        counted("ok", "Read and played"),
        counted("repaired", "Read in spite of its spelling, and played"),
        counted("unparsable", "No answer in the reply, or one that cannot be read"),
        counted("invalid", "Names what does not exist in the game, or an end before the end"),
        counted("illegal", "An action that the rules did not allow there"),
        counted("ambiguous", "May mean more than one action"),
        Column("Failed calls", lambda r: fragments.count(r["failed_call_count"]), "No reply at all"),
        Column("Steps", lambda r: fragments.count(r["step_count"])),
    ]
