"""How well an agent tested itself: what it tried in exploration, and what that told it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from s3gym.report import fragments
from s3gym.report.fragments import Column, Row

if TYPE_CHECKING:
    from s3gym.warehouse import Warehouse

TITLE = "How it tested itself"
ORDER = 27
MARTS = ("exploration_quality",)

_CELLS = """
    with explored as (
        select
            cell_id,
            string_agg(stage_key, ' ' order by checkpoint) as stages
        from int_cell_links
        where stage = 'explore'
        group by cell_id
    )

    select quality.*
    from exploration_quality as quality
    left join explored on quality.cell_id = explored.cell_id
    -- interventions elsewhere rest on the exploration of the cell without one
    qualify
        row_number() over (
            partition by model_id, game, pathway, replicate, coalesce(explored.stages, quality.cell_id)
            order by intervention != 'main', quality.cell_id
        ) = 1
    order by
        model_id, intervention != 'main', intervention, game, pathway, replicate, quality.cell_id
"""
_NOTHING = "nothing explored yet"
_NO_ANCHOR = "no reference players' scores, or no valid episode"


def build(warehouse: "Warehouse") -> str:
    """One table, a row an exploration, with intervals."""
    rows = warehouse.sql(_CELLS).to_dicts()
    if not rows:
        return fragments.notice("Nothing has been explored. `s3gym run --pathway history` explores and builds on it.")
    lead = fragments.lead(
        "What nobody tried cannot be judged, kept or used. A state is what the agent saw, without the number of the "
        "step; a step repeats where its action was taken in the same state before, in whichever episode; it informs "
        "where it earned something or surprised: the agent's own score was off by more than a quarter of the range of "
        "rewards. Change is how far the shares of the actions moved from one episode to the next: a policy that stays "
        "the same is near 0, and above it by chance. Intervals are 95 %, by whole episodes."
    )
    caption = "What was explored, grouped by model"
    return Markup("\n").join([lead, fragments.table(caption, rows, _columns(rows), "model_id")])


def _columns(rows: Sequence[Row]) -> list[Column]:
    def rate(label: str, name: str, note: str, why: str = _NOTHING) -> Column:
        return Column(label, lambda r: fragments.rate(r, name, why), note)

    explorers = [
        Column("Explored by", lambda r: r["explorer_id"] or "itself", "Who explored in the model's place", is_text=True)
    ]
    return [
        *fragments.who(rows),
        *(explorers if any(row["explorer_id"] for row in rows) else []),
        Column("States", lambda r: fragments.count(r["state_count"]), "Different states seen"),
        rate("New states", "new_state_share", "Different states, of all steps"),
        Column("Actions", lambda r: fragments.count(r["action_count"]), "Different actions taken"),
        rate("Repeated", "repetition", "Steps whose action was taken in the same state before"),
        rate(
            "Informative", "informative_rate", "Rewarded or surprising, of steps with a reward", "no step with a reward"
        ),
        rate("Change", "strategy_change", "Total variation distance of neighbouring episodes", "no two episodes"),
        Column(
            "Best",
            lambda r: fragments.number(r["normalised_best"], _NO_ANCHOR),
            "Best episode under the rules of exploration: 0 is the random player, 1 the expert",
        ),
        Column(
            "Mean",
            lambda r: fragments.number(r["normalised_mean"], _NO_ANCHOR),
            "Mean of the episodes, on the same scale",
        ),
        Column("Episodes", lambda r: fragments.count(r["episode_count"]), "Exploration episodes with a reply"),
        Column("Steps", lambda r: fragments.count(r["step_count"]), "Their steps with a reply"),
    ]
