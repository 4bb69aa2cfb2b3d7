"""What the model calls took: tokens, dollars and time, a model in all and a cell apart. Scripted players make none."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from s3gym.report import fragments
from s3gym.report.fragments import Column, Row

if TYPE_CHECKING:
    from s3gym.warehouse import Warehouse

TITLE = "Cost"
ORDER = 70
MARTS = ("model_cost", "cost")

_ACTIVITIES = "array_position(['exploration', 'judgment', 'memory', 'correction', 'evaluation', 'transfer'], activity)"
_TOTALS = f"from model_cost order by model_id, {_ACTIVITIES}"
_CELLS = f"""
    from cost
    order by model_id, intervention != 'main', intervention, game, pathway, replicate, cell_id, {_ACTIVITIES}
"""
_HEADLINE = """
    select
        cast(sum(call_count) as bigint) as call_count,
        cast(sum(unpriced_count) as bigint) as unpriced_count,
        cast(sum(failed_attempt_count + unanswered_count) as bigint) as failed_count,
        cast(sum(prompt_tokens) as bigint) as prompt_tokens,
        cast(sum(completion_tokens) as bigint) as completion_tokens,
        sum(cost_usd) as cost_usd,
        sum(failed_cost_usd) as failed_cost_usd
    from model_cost
"""
_IS_EMPTY = "select count(*) = 0 from int_selected_cells"
_UNSAID = "no call reported it"


def build(warehouse: "Warehouse") -> str:
    """Totals, then a table a model and one a cell; nothing where only scripted players played."""
    totals = warehouse.sql(_TOTALS).to_dicts()
    if not totals:
        if warehouse.sql(_IS_EMPTY).item():
            return fragments.notice("No model has been asked yet; `s3gym run` with a model of your own asks one.")
        return ""
    cells = warehouse.sql(_CELLS).to_dicts()
    headline = warehouse.sql(_HEADLINE).to_dicts()[0]
    parts = [
        fragments.lead(
            "Tokens, dollars and seconds are those of each call as it was first made, so that answers found again "
            "after a restart count once. The evaluation before any experience is made once for all pathways: a model's "
            "total counts it once, each of its cells has it in full. Training makes no calls; its seconds stand there."
        ),
        fragments.tiles(_tiles(headline)),
    ]
    if headline["unpriced_count"]:
        parts.append(
            fragments.notice(
                f"Nobody knows what {headline['unpriced_count']:,} of the answers cost: dollars are those of the "
                "others. A model's entry in the config can give `prompt_price` and `completion_price`."
            )
        )
    parts += [
        fragments.table("What all cells of a model took together", totals, _columns(), "model_id"),
        fragments.table("What each cell took", cells, [*fragments.who(cells), *_columns()], "model_id"),
    ]
    return Markup("\n").join(parts)


def _tiles(row: Row) -> list[tuple[str, str]]:
    return [
        (_dollars(row["cost_usd"], "no cost is known"), "dollars for the calls below"),
        (_dollars(row["failed_cost_usd"], "no cost is known"), "dollars for failed attempts before them"),
        (fragments.count(row["call_count"]), "calls"),
        (fragments.count(row["failed_count"]), "failed calls"),
        (fragments.count(row["prompt_tokens"], _UNSAID), "prompt tokens"),
        (fragments.count(row["completion_tokens"], _UNSAID), "completion tokens"),
    ]


def _columns() -> Sequence[Column]:
    def summed(label: str, name: str, known: str, note: str) -> Column:
        return Column(label, lambda r: _of(r, fragments.count(r[name], _UNSAID), known), note)

    return [
        Column("For", lambda r: r["activity"], "What the calls were made for", is_text=True),
        Column("Episodes", lambda r: fragments.count(r["episode_count"]), "Played, judged, remembered or corrected"),
        Column("Calls", lambda r: fragments.count(r["call_count"])),
        Column(
            "Failed attempts",
            lambda r: fragments.count(r["failed_attempt_count"] + r["unanswered_count"]),
            "Calls that failed, over all restarts, whether a later one was answered or not",
        ),
        summed("Prompt tokens", "prompt_tokens", "prompt", "All of them, from a cache or not"),
        Column(
            "From a cache",
            lambda r: _of(r, fragments.percent(r["cached_share"], _UNSAID), "cached"),
            "Share of the prompt tokens that the provider served from its cache",
        ),
        summed("Completion tokens", "completion_tokens", "completion", "Reasoning included"),
        summed("Reasoning tokens", "reasoning_tokens", "reasoning", "Part of the completion tokens"),
        Column(
            "Dollars", lambda r: _of(r, _dollars(r["cost_usd"], "its price is unknown"), "cost"), "Failed ones apart"
        ),
        Column(
            "Dollars an episode",
            lambda r: _dollars(r["usd_per_episode"], "the price of some answers is unknown"),
            "Without what failed attempts cost",
        ),
        Column(
            "Failed dollars",
            lambda r: _dollars(r["failed_cost_usd"], "nothing failed, or nobody said what it cost"),
            "What failed attempts cost before an answer came",
        ),
        Column(
            "Seconds a call",
            lambda r: _of(r, fragments.number(r["mean_latency_seconds"], _UNSAID), "latency"),
            "Mean, of the attempt that was answered",
        ),
    ]


def _dollars(value: float | None, why: str) -> Markup:
    return fragments.number(value, why, decimals=4)


def _of(row: Row, text: Markup, known: str) -> Markup:
    """``text``, and how many calls it is made of where that is not all of them."""
    count = row[f"{known}_known_count"]
    if count in (0, row["call_count"]):
        return text
    return Markup('{} <span class="aside">(of {:,} calls)</span>').format(text, count)
