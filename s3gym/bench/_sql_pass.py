"""One pass of ``bench sql``, in a process of its own: its time and its memory are the pass's alone.

Reads one argument, JSON: ``data``, and ``is_together``: all marts one after the other, as the report reads them, or
each from a warehouse just opened, as ``s3gym sql`` reads it. Prints one JSON object.
"""

import json
import sys
from pathlib import Path
from time import perf_counter, process_time

from s3gym.bench.host import peak_bytes
from s3gym.warehouse import Warehouse


def main(data: Path, is_together: bool) -> None:
    """Does the pass and prints what it took."""
    started, cpu_started = perf_counter(), process_time()
    warehouse = Warehouse(data, materialize=is_together)
    seconds = {"": perf_counter() - started}
    for mart in [name for layer, name in warehouse.views() if layer == "marts"]:
        if not is_together:
            warehouse = Warehouse(data)
        started_mart = perf_counter()
        warehouse.sql(f"from {mart}")
        seconds[mart] = perf_counter() - started_mart
    took = {"open_seconds": seconds.pop(""), "mart_seconds": seconds, "cpu_seconds": process_time() - cpu_started}
    print(json.dumps(took | {"peak_bytes": peak_bytes()}))


if __name__ == "__main__":
    request = json.loads(sys.argv[1])
    main(Path(request["data"]), request["is_together"])
