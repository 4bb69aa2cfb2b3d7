"""Which rules of a memory were in force when a score rose or fell, and which episodes they say they come from."""

from typing import TYPE_CHECKING

from markupsafe import Markup

from s3gym.report import fragments
from s3gym.report.fragments import Column, Row

if TYPE_CHECKING:
    from s3gym.warehouse import Warehouse

TITLE = "What memory said"
ORDER = 42
MARTS = ("memory_rules",)
SHOWN = 5
"""Rules of a memory, the new ones first."""
LONGEST = 300
"""Characters of a rule."""

_RULES = f"""
    with moved as (
        select
            *,
            count(*) over memory as rule_count,
            count(*) filter (where is_new) over memory as new_count,
            row_number() over (partition by cell_id, checkpoint order by not is_new, line_number) as place,
            score_change = max(score_change) over cell and score_change > 0 as is_rise,
            score_change = min(score_change) over cell and score_change < 0 as is_fall
        from memory_rules
        where intervention = 'main'
        window
            memory as (partition by cell_id, checkpoint),
            cell as (partition by cell_id)
    )

    select
        *,
        concat_ws(
            ' · ', model_id, game, if(replicate = 0, null, 'replicate ' || replicate), 'checkpoint ' || checkpoint
        ) as memory
    from moved
    where (is_rise or is_fall) and place <= {SHOWN}
    order by model_id, game, pathway, replicate, cell_id, checkpoint, place
"""
_TOTALS = """
    select
        count(*) as rules,
        count(*) filter (where named_count > 0) as named,
        count(*) filter (where unknown_count > 0) as unknown
    from memory_rules
    where intervention = 'main'
"""


def build(warehouse: "Warehouse") -> str:
    """A sentence on where rules say they come from, and the rules at the largest rise and fall of each cell."""
    totals = warehouse.sql(_TOTALS).to_dicts()[0]
    if not totals["rules"]:
        return fragments.notice(
            "No memory has been written. `s3gym run --pathway memory` has the model write one at each checkpoint."
        )
    rows = warehouse.sql(_RULES).to_dicts()
    parts = [
        fragments.lead(
            "Each line of a memory is a rule, and all rules of a memory are in force at once: which of them moved a "
            "score cannot be told from this. Shown are the memories at the largest rise and at the largest fall of "
            f"each cell's held-out score since the checkpoint before, at most {SHOWN} rules each, the new ones first."
        ),
        Markup("<p>{}</p>").format(_in_words(totals)),
    ]
    if not rows:
        return Markup("\n").join([*parts, fragments.notice("No held-out score moved between two valid checkpoints.")])
    labels = {(row["cell_id"], row["checkpoint"]): _label(row) for row in rows}
    shown = [row | {"label": labels[row["cell_id"], row["checkpoint"]]} for row in rows]
    caption = "Rules in force when a score moved most"
    return Markup("\n").join([*parts, fragments.table(caption, shown, _columns(), "label")])


def _in_words(totals: Row) -> str:
    told = f"Of {fragments.counted(totals['rules'], 'rule')} in all memories {totals['named']:,} name an episode"
    if totals["unknown"]:
        told += f"; {totals['unknown']:,} name one that there was not"
    return told + "."


def _label(row: Row) -> Markup:
    change = fragments.number(row["score_change"], "", signed=True)
    sign = fragments.badge(f"{change} to {fragments.number(row['score'], '')}", "good" if row["is_rise"] else "bad")
    return Markup("{} {} <span class='aside'>{}, {} new</span>").format(
        row["memory"], sign, fragments.counted(row["rule_count"], "rule"), row["new_count"]
    )


def _columns() -> list[Column]:
    return [
        Column("Rule", lambda r: _shortened(r["rule_text"]), is_prose=True),
        Column(
            "Under", lambda r: r["heading"] or fragments.missing("no heading"), "The heading above it", is_text=True
        ),
        Column(
            "Says it is from",
            lambda r: r["named_episodes"] or fragments.missing("it names no episode"),
            "Numbers of exploration episodes, from 1",
            is_text=True,
        ),
        Column(
            "Since", lambda r: fragments.count(r["first_checkpoint"]), "First checkpoint at which the memory had it"
        ),
    ]


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
