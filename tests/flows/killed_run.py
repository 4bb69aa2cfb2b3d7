"""A run that is killed with SIGKILL at a stated point: ``python -m tests.flows.killed_run POINT NTH DATA [BASE_URL]``.

The point is made by wrapping the function that stands there; at its ``NTH`` call the process is gone, with no
chance to clean up. ``moment`` is so many milliseconds after the work began; ``none`` runs to the end.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import prefect  # noqa: F401 - imported now, so that a moment is one of the work
import pyarrow as pa
import pyarrow.parquet as pq

from flows.benchmark import measure
from s3gym import journal, storage
from s3gym.config import load_config
from s3gym.protocol import rollout

REQUEST: dict[str, Any] = {"scale": "smoke", "games": ["trust"], "pathways": ["none", "memory"]}


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def at_call(nth: int, function: Callable[..., Any], before: Callable[..., None]) -> Callable[..., Any]:
    """``function``, with ``before`` called with the arguments of its ``nth`` call."""
    count = 0

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        nonlocal count
        count += 1
        if count == nth:
            before(*args, **kwargs)
        return function(*args, **kwargs)

    return wrapped


def half_a_file(table: pa.Table, where: Any, **kwargs: Any) -> None:
    """Leaves the first half of the bytes under the temporary name, then dies."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **kwargs)
    content = sink.getvalue().to_pybytes()
    Path(where).write_bytes(content[: len(content) // 2])
    die()


def set_trap(point: str, nth: int) -> None:
    if point == "before_write":
        storage.write_rows = at_call(nth, storage.write_rows, lambda *a: die())
    elif point == "middle_of_write":
        storage.pq.write_table = at_call(nth, pq.write_table, half_a_file)
    elif point == "before_manifest":
        is_one = lambda path, text: die() if path.parent.name == "manifests" else None  # noqa: E731
        storage.write_text = at_call(nth, storage.write_text, is_one)
    elif point == "inside_journal":
        journal.Journal.record = at_call(nth, journal.Journal.record, lambda *a: die())  # type: ignore[method-assign]
    elif point == "inside_task":
        rollout.parse_answer = at_call(nth, rollout.parse_answer, lambda *a: die())
    else:
        assert point in ("moment", "none"), point


if __name__ == "__main__":
    point, nth, data, *base_url = sys.argv[1:]
    set_trap(point, int(nth))
    hosted = [{"id": "openai/loopback", "base_url": url} for url in base_url]
    config = load_config(None, {**REQUEST, "models": hosted or ["player:learner", "player:random"]})
    milliseconds = int(nth) if point == "moment" else 10**6
    clock = threading.Timer(milliseconds / 1000, die)
    clock.daemon = True
    outcome = measure(config, Path(data), lambda kind, number: None, lambda work: clock.start())
    assert outcome.failures == [], outcome.failures
