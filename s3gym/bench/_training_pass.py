"""One pass of ``training``, in a process of its own: its memory is the pass's alone.

Reads three arguments: one of ``SIDES``, ``update`` or ``evaluation``, and the file of the job; prints one JSON object.
"""

import json
import resource
import sys
from importlib import import_module
from pathlib import Path
from time import process_time
from typing import Any

OWN = "s3gym.bench._training_own"
SIDES = {"own": OWN, "lean": OWN, "peer": "s3gym.bench._training_peer"}
"""Lean keeps no beginnings of prompts."""


def main(side: str, work: str, job: dict[str, Any]) -> None:
    """Does the pass and prints what it took."""
    do = getattr(import_module(SIDES[side]), work)
    if side == "lean":
        job["model"] += "&cache=0"
    cpu_started = process_time()
    took = do(job)
    print(json.dumps({**took, "cpu_seconds": process_time() - cpu_started, "peak_bytes": _peak_bytes(job["device"])}))


def _peak_bytes(device: str) -> int:
    """The most memory this process ever had: of the GPUs, or where there is none of the machine.

    Linux hands down the peak of who started it, which must therefore be smaller.
    """
    if device == "cuda":
        import torch

        return sum(torch.cuda.max_memory_allocated(index) for index in range(torch.cuda.device_count()))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], json.loads(Path(sys.argv[3]).read_text(encoding="utf-8")))
