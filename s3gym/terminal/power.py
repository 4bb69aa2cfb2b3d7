"""``power``: what a scale would show, and what a gain needs, before anything is spent."""

from rich.table import Table

from s3gym.power import MOST, Assumptions, Plan, plans
from s3gym.terminal.console import console, plain, prose


def show_power(games: tuple[str, ...], scale: str, gain: float | None, assumed: Assumptions) -> None:
    """Prints one line a game, then what is assumed."""
    found = list(plans(games, scale, gain, assumed))
    console.print(_table(found, scale, gain))
    prose("\n".join(_sentences(found, scale, gain, assumed)))


def _table(found: list[Plan], scale: str, gain: float | None) -> Table:
    table = Table(title=f"What scale {scale} shows")
    table.add_column("game", no_wrap=True)
    table.add_column("unit")
    headings = ["spread", "episodes", "smallest gain", "in the unit"]
    if gain is not None:
        headings += [f"{gain:g} in the unit", "needs episodes", "or checkpoints", "or replicates"]
    for heading in headings:
        table.add_column(heading, justify="right")
    for plan in found:
        own, smallest = plan.scale, plan.smallest_gain
        cells = [
            plain(own.deviation),
            f"{plan.design.episodes} x {plan.design.checkpoints}",
            plain(smallest),
            plain(None if smallest is None else smallest * own.anchor_range),
        ]
        if gain is not None:
            cells.append(plain(gain * own.anchor_range))
            cells += [plain(count) for count in (plan.episodes, plan.checkpoints, plan.replicates)]
        table.add_row(own.game, own.unit, *cells)
    return table


def _sentences(found: list[Plan], scale: str, gain: float | None, assumed: Assumptions) -> list[str]:
    told = [
        f"smallest gain: over the control, of the mean of all checkpoints after the first; found with a chance of "
        f"{assumed.power:g} by a two-sided test at {assumed.alpha:g} of one cell. 0 is the random player's score, 1 "
        "the expert's; above 1 nothing but a gain beyond the expert is found.",
        "episodes: held out, by checkpoints after the first; the same instances at each and for both sides. spread: "
        "standard deviation of a final score, the largest of the reference players; others may vary more.",
        f"Assumed: correlation {assumed.correlation:g} between both sides on one instance, and {assumed.persistence:g} "
        "of what a difference varies comes back with its instance at every checkpoint and replicate, so that no number "
        "of those makes up for instances.",
    ]
    if gain is not None:
        told.append(
            f"needs: to find {gain:g}, each with all else as in scale {scale}; a dash: not with {MOST:,}. What differs "
            "between replicates as such is not known before and not in it, and a few of them are a small sample: two "
            "or three find less than one does."
        )
    if any(plan.scale.strata > 1 for plan in found):
        told.append(
            "trust: each checkpoint plays all opponents, so that what they differ by is no error of the mean, but the "
            "spread has it in it. The smallest gain and what a gain needs are upper bounds there: smaller gains may be "
            "found, and fewer episodes may do."
        )
    return told
