"""What changed since the refresh before, whether by more than noise, and why; nothing until there are two refreshes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from s3gym.report import fragments
from s3gym.report.fragments import CONTROL, Column, Row

if TYPE_CHECKING:
    from s3gym.warehouse import Warehouse

TITLE = "Since the last refresh"
ORDER = 15
MARTS = ("drift", "refreshes")
SHOWN_REFRESHES = 12

_HEADLINE = """
    select
        count(*) filter (where status = 'remeasured') as remeasured,
        count(*) filter (where outcome = 'higher') as higher,
        count(*) filter (where outcome = 'lower') as lower,
        count(*) filter (where status in ('unchanged', 'extended')) as unchanged,
        count(*) filter (where status = 'new') as new
    from drift
"""
_CAUSES = """
    select
        game,
        coalesce(cause, '') as cause,
        coalesce(other_versions, '') as other_versions,
        count(*) as cell_count,
        count(*) filter (where status = 'remeasured') as remeasured_count,
        count(*) filter (where outcome = 'higher') as higher_count,
        count(*) filter (where outcome = 'lower') as lower_count
    from drift
    where status in ('remeasured', 'extended')
    group by all
    order by all
"""
_CELLS = """
    from drift
    where status = 'remeasured'
    order by model_id, intervention != 'main', intervention, game, pathway, replicate, cell_id
"""
_REFRESHES = f"""
    select
        *,
        strftime(started_at, '%Y-%m-%d %H:%M') as began
    from refreshes
    order by started_at desc, refresh_id
    limit {SHOWN_REFRESHES}
"""
_NOTHING = "nothing to compare"


def build(warehouse: "Warehouse") -> str:
    """Headline, causes, the cells that were measured anew, and the log."""
    refreshes = warehouse.sql(_REFRESHES).to_dicts()
    if len(refreshes) < 2:
        return ""
    headline = warehouse.sql(_HEADLINE).to_dicts()[0]
    causes, cells = warehouse.sql(_CAUSES).to_dicts(), warehouse.sql(_CELLS).to_dicts()
    parts = [
        fragments.lead(
            "Each cell beside what it was in the last refresh of another run that had it. A cell whose inputs are what "
            "they were holds the same rows and cannot have changed. Higher and lower are said only where a paired "
            "comparison on the same held-out instances stays below 5 % after Holm's correction over all cells that "
            "were measured anew."
        ),
        _tiles(headline),
    ]
    if causes:
        parts.append(fragments.table("What is not as it was, and what came of it", causes, _cause_columns(), "game"))
    if cells:
        parts.append(fragments.table("Cells measured anew, grouped by model", cells, _cell_columns(cells), "model_id"))
    if not causes and not headline["new"]:
        parts.append(fragments.notice("No input changed, so every number is the one of the refresh before."))
    parts.append(fragments.table("The log of refreshes, latest first", refreshes, _refresh_columns()))
    return Markup("\n").join(parts)


def _tiles(row: Row) -> Markup:
    return fragments.tiles(
        [
            (fragments.count(row["remeasured"]), "cells measured anew"),
            (fragments.count(row["higher"]), "of them higher, beyond noise"),
            (fragments.count(row["lower"]), "of them lower, beyond noise"),
            (fragments.count(row["unchanged"]), "with the same held-out episodes"),
            (fragments.count(row["new"]), "not there before"),
        ]
    )


def _cause_columns() -> list[Column]:
    return [
        Column("Changed", _cause, "Inputs of the cells, before and now", is_text=True),
        Column(
            "Other versions",
            lambda r: r["other_versions"] or "–",
            "Of the package, Python and libraries: part of no key, so that alone they make nothing anew",
            is_text=True,
        ),
        Column("Cells", lambda r: fragments.count(r["cell_count"])),
        Column("Measured anew", lambda r: fragments.count(r["remeasured_count"])),
        Column("Higher", lambda r: fragments.count(r["higher_count"]), "Beyond noise"),
        Column("Lower", lambda r: fragments.count(r["lower_count"]), "Beyond noise"),
    ]


def _cell_columns(rows: Sequence[Row]) -> list[Column]:
    return [
        *fragments.who(rows),
        Column("Score, before → now", _scores, "Mean of the held-out episodes that were measured anew"),
        Column(
            "Difference",
            lambda r: fragments.estimate(
                r["difference"], r["difference_low"], r["difference_high"], _NOTHING, signed=True
            ),
            "Mean over pairs of the same instance at the same checkpoint, with its own 95 % interval",
        ),
        Column("Pairs", lambda r: fragments.count(r["pair_count"]), "0: other instances, compared by their means"),
        Column(
            "p (Holm)",
            lambda r: fragments.number(r["p_holm"], "too few episodes", decimals=4),
            "That noise alone differs by so much, corrected for the number of cells",
        ),
        Column("In words", _outcome, is_text=True),
        Column("Verdict, before → now", _verdicts, "Of the gain against the control", is_text=True),
        Column("Changed", _cause, "Inputs of the cell, before and now", is_text=True),
    ]


def _refresh_columns() -> list[Column]:
    return [
        Column("Began (UTC)", lambda r: r["began"], is_text=True),
        Column("By", lambda r: r["trigger"], is_text=True),
        Column("Ended", lambda r: _words(r["status"]), is_text=True),
        Column(
            "Why, and how many stages", lambda r: r["reasons"] or fragments.missing("nothing was to do"), is_text=True
        ),
        Column("Stages made", lambda r: fragments.count(r["stages_made"])),
        Column("Calls", lambda r: fragments.count(r["calls_made"])),
        Column("Dollars", lambda r: fragments.number(r["paid_usd"], "the cost of a call is not known", decimals=4)),
        Column("Seconds", lambda r: fragments.number(r["seconds"], "not recorded", decimals=0)),
        Column("Failure", lambda r: r["failure"] or fragments.missing("none"), is_text=True),
    ]


def _scores(row: Row) -> Markup:
    return Markup("{} → {}").format(
        fragments.number(row["previous_score"], _NOTHING), fragments.number(row["score"], _NOTHING)
    )


def _outcome(row: Row) -> Markup:
    words = {
        "higher": ("higher", "good"),
        "lower": ("lower", "bad"),
        "none_shown": ("no difference shown", "plain"),
        "too_few_episodes": ("too few to tell", "plain"),
    }
    return fragments.badge(*words[row["outcome"]])


def _verdicts(row: Row) -> Markup:
    if row["pathway"] == CONTROL:
        return fragments.missing("this is the control")
    why = "none was made"
    before, now = (
        _words(row[name]) if row[name] else fragments.missing(why) for name in ("previous_verdict", "verdict")
    )
    return Markup("{} → {}").format(before, now)


def _cause(row: Row) -> str:
    return row["cause"] or "an input that is named in the log below"


def _words(code: str) -> str:
    return code.replace("_", " ")
