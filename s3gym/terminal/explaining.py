"""``status --explain``: for each stage that would be made, the input that changed, before and now."""

from pathlib import Path

from rich.markup import escape
from rich.table import Table

from s3gym import storage
from s3gym.plan import RunPlan
from s3gym.staleness import counted, explain
from s3gym.terminal.console import console


def show_reasons(plan: RunPlan, data: Path) -> None:
    """One row a stage and change, and how often each change is the reason."""
    storage.check_version(data)
    reasons = explain(data, plan)
    if not reasons:
        console.print("Nothing to do: every stage is complete.")
        return
    table = Table("stage", "because of", "before", "now", title=f"{len(reasons)} stages to do, and why")
    for reason in reasons:
        for index, change in enumerate(reason.changes):
            label = escape(reason.stage.label) if index == 0 else ""
            table.add_row(label, escape(change.what), escape(change.old or "-"), escape(change.new or "-"))
    console.print(table)
    for told, count in counted(reasons).items():
        console.print(f"{count} of {len(reasons)}: {told}", markup=False, highlight=False, soft_wrap=True)
