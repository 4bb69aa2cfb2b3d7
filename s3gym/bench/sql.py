"""How long the marts take over a data folder of many steps, and how much memory.

The folder is made for it (``_sql_data``). Each pass over it is a process of its own (``_sql_pass``): all marts one
after the other, with what they share worked out once, and each mart by itself. What resampling takes is not in it.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from s3gym.bench import _sql_data
from s3gym.bench.harness import BenchError, last_line
from s3gym.storage import StorageError

TARGET_STEPS = 10_000_000
"""What the targets are for."""
TOGETHER_TARGET_SECONDS = 30.0
TOGETHER_TARGET_BYTES = 3e9
JUDGE_MART, JUDGE_TARGET_SECONDS = "judge_reliability", 10.0
"""Of the mart by itself; areas under curves are in another."""
PASSES = ("together", "apart")


class Pass(NamedTuple):
    """What a pass took."""

    open_seconds: float
    """Until the first mart could be asked for; with what marts share where they are read together."""
    mart_seconds: dict[str, float]
    cpu_seconds: float
    """Of all threads."""
    peak_bytes: int
    """Most memory of the process, with what it imports."""
    load: float
    """Processes that wanted a core when it had ended, on average over a minute, its own among them."""

    @property
    def seconds(self) -> float:
        """From the opening to the last mart."""
        return self.open_seconds + sum(self.mart_seconds.values())


class Marts(NamedTuple):
    """A data folder and the passes over it."""

    step_count: int
    file_count: int
    shape: _sql_data.Shape
    together: Pass
    apart: Pass

    @property
    def is_time_target_reached(self) -> bool:
        """Whether all marts together are fast enough."""
        return self.together.seconds <= TOGETHER_TARGET_SECONDS

    @property
    def is_memory_target_reached(self) -> bool:
        """Whether all marts together take little enough memory."""
        return self.together.peak_bytes <= TOGETHER_TARGET_BYTES

    @property
    def is_judge_target_reached(self) -> bool:
        """Whether that mart alone is fast enough."""
        return self.apart.mart_seconds[JUDGE_MART] <= JUDGE_TARGET_SECONDS


def measure_marts(steps: int, data: Path | None, on_pass: Callable[[str], None]) -> Marts:
    """Makes the folder, in ``data`` or a temporary one, and does the passes; ``on_pass`` is told what comes next.

    Raises:
        BenchError: a pass failed.
        StorageError: ``data`` is there already.
    """
    if data is not None and data.exists():
        raise StorageError(f"{data} is there already; name a folder to be made with --data, or leave it out")
    with TemporaryDirectory(prefix="s3gym-bench-") as folder:
        made = data or Path(folder) / "data"
        on_pass("data")
        count = _sql_data.make(made, steps)
        files = sum(1 for _ in made.glob("tables/*/**/*.parquet"))
        passes = {}
        for name in PASSES:
            on_pass(name)
            passes[name] = _pass(made, name)
    return Marts(count, files, _sql_data.shape_of(steps), **passes)


def _pass(data: Path, name: str) -> Pass:
    request = json.dumps({"data": str(data), "is_together": name == "together"})
    command = [sys.executable, "-P", "-m", "s3gym.bench._sql_pass", request]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise BenchError(f"the pass with marts {name} failed: {last_line(done.stderr or done.stdout)}")
    return Pass(**json.loads(done.stdout), load=os.getloadavg()[0])
