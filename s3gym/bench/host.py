"""The machine a speed was measured on: what it is, how much plain Python its core did meanwhile, and memory."""

import platform
import resource
import sys
from pathlib import Path
from time import process_time
from typing import NamedTuple

BOARD = ".......#" * 8
CALIBRATION_STEPS = 4_000
"""Iterations of one calibration: some 50 ms on a core of 2024."""


class Host(NamedTuple):
    """What ran the measurement."""

    python: str
    processor: str
    calibrations: tuple[float, ...]
    """Iterations of the fixed workload per CPU second, spread over the measurement; they differ on a noisy core."""


def calibrate() -> float:
    """Iterations of a fixed workload of a game's kind (str, list, dict, int) per CPU second."""
    started = process_time()
    _work(CALIBRATION_STEPS)
    return CALIBRATION_STEPS / (process_time() - started)


def _work(count: int) -> int:
    total = 0
    for index in range(count):
        cells = list(BOARD)
        cells[index * 7 % len(cells)] = "A"
        rows = [" ".join(cells[start : start + 8]) for start in range(0, len(cells), 8)]
        seen: dict[str, int] = {}
        for row in rows:
            seen[row] = seen.get(row, 0) + 1
        total ^= len("\n".join(rows)) << (index & 15) | len(seen)
    return total


def python_name() -> str:
    """Such as ``CPython 3.11.7``."""
    return f"{platform.python_implementation()} {platform.python_version()}"


def processor_name() -> str:
    """The model as the system names it, else the architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()


def peak_bytes() -> int:
    """The most memory this process ever had."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
