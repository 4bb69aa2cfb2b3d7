"""``bench sql``: how long the marts take, laid out beside what they may take."""

import json
from pathlib import Path
from typing import Any

from rich.table import Table

from s3gym.bench.harness import BenchError
from s3gym.bench.host import processor_name
from s3gym.bench.sql import (
    JUDGE_MART,
    JUDGE_TARGET_SECONDS,
    TARGET_STEPS,
    TOGETHER_TARGET_BYTES,
    TOGETHER_TARGET_SECONDS,
    Marts,
    measure_marts,
)
from s3gym.terminal.console import console, errors, verbatim

WHAT = {
    "data": "Making the data",
    "together": "Reading all marts, one after the other",
    "apart": "Reading each mart by itself",
}


def bench_sql(steps: int, data: Path | None, output: str) -> int:
    """Times the marts and shows the result; the exit code, 1 when a pass failed."""
    with errors.status("") as status:
        try:
            marts = measure_marts(steps, data, lambda name: status.update(f"{WHAT[name]} ..."))
        except BenchError as error:
            errors.print(f"Failed: {error}", markup=False, highlight=False, soft_wrap=True)
            return 1
    if output == "json":
        verbatim(json.dumps(as_json(marts), indent=2))
    else:
        console.print(_table(marts))
        verbatim("\n".join(_sentences(marts)))
    return 0


def as_json(marts: Marts) -> dict[str, Any]:
    """All figures."""
    return {
        "processor": processor_name(),
        "step_count": marts.step_count,
        "file_count": marts.file_count,
        "shape": marts.shape._asdict(),
        "target_step_count": TARGET_STEPS,
        "together": marts.together._asdict() | {"seconds": marts.together.seconds},
        "apart": marts.apart._asdict() | {"seconds": marts.apart.seconds},
        "together_target_seconds": TOGETHER_TARGET_SECONDS,
        "is_time_target_reached": marts.is_time_target_reached,
        "together_target_bytes": TOGETHER_TARGET_BYTES,
        "is_memory_target_reached": marts.is_memory_target_reached,
        "judge_target_seconds": JUDGE_TARGET_SECONDS,
        "is_judge_target_reached": marts.is_judge_target_reached,
    }


def _table(marts: Marts) -> Table:
    table = Table("mart", title=f"Seconds over {marts.step_count:,} steps")
    table.add_column("by itself", justify="right")
    table.add_column("after the others", justify="right")
    table.add_row("opening, with what marts share", "", f"{marts.together.open_seconds:.2f}")
    for mart, seconds in marts.apart.mart_seconds.items():
        table.add_row(mart, f"{seconds:.2f}", f"{marts.together.mart_seconds[mart]:.2f}")
    table.add_section()
    table.add_row("all", f"{marts.apart.seconds:.2f}", f"{marts.together.seconds:.2f}")
    return table


def _sentences(marts: Marts) -> list[str]:
    together, apart, shape = marts.together, marts.apart, marts.shape
    reached = {True: "reached", False: "missed"}
    return [
        f"All marts, as the report reads them: {together.seconds:.1f} s, aim {TOGETHER_TARGET_SECONDS:g} s "
        f"{reached[marts.is_time_target_reached]}; at most {together.peak_bytes / 1e9:.2f} GB, aim "
        f"{TOGETHER_TARGET_BYTES / 1e9:g} GB {reached[marts.is_memory_target_reached]}.",
        f"{JUDGE_MART} by itself: {apart.mart_seconds[JUDGE_MART]:.1f} s, aim {JUDGE_TARGET_SECONDS:g} s "
        f"{reached[marts.is_judge_target_reached]}. By itself: from a warehouse just opened, as s3gym sql reads it.",
        f"The aims are for {TARGET_STEPS:,} steps. CPU time {together.cpu_seconds:.1f} s and {apart.cpu_seconds:.1f} "
        f"s, load of the machine {together.load:.1f} and {apart.load:.1f}: above its cores, others had them too.",
        f"Data: {shape.model_count} models, {shape.episode_count} episodes a stage of {shape.step_count} steps on "
        f"average, {marts.file_count:,} files; drawn from a seed. What resampling takes is not in it.",
        f"On {processor_name()}.",
    ]
