"""What the harness adds to the calls it makes: wall time over the ideal schedule, CPU a step, memory.

Episodes of a real game are played through a real stage (rollout, asking, journal, limiter, rows) against an endpoint
that answers everything alike after a fixed latency (``_endpoint``). Each pass is a process of its own
(``_harness_pass``) with the same number of calls: with litellm, as hosted models are asked; with a model that only
waits, which leaves the harness alone; and with bare HTTP clients, which is the least that a call can take.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from s3gym.bench import _endpoint
from s3gym.bench._episode import REPLY, TURN_COUNT
from s3gym.errors import Explained

EXCESS_TARGET = 0.05
"""Most wall time over the ideal schedule, as a share of it."""
OWN_CPU_TARGET_MS = 1.0
"""Most CPU a step of the harness, the model's client apart."""
CLIENTS = ("litellm", "none", "httpx", "aiohttp")


class BenchError(Explained):
    """A pass could not be done."""


class Load(NamedTuple):
    """What every pass does."""

    latency_seconds: float
    in_flight: int
    episode_count: int
    turn_count: int = TURN_COUNT


class Pass(NamedTuple):
    """What a pass took, from its first call to its last row."""

    load: Load
    seconds: float
    cpu_seconds: float
    """Of all threads, without what is set up once."""
    call_count: int
    longest_chain: int
    """Calls of the longest episode, which follow one another."""
    peak_bytes: int
    """Most memory of the process, with what it imports."""
    most_in_flight: int
    """As the endpoint saw it; 0 where nothing was asked."""
    late_seconds: float
    """Mean of what the endpoint's answers came too late by, its own fault or the machine's."""
    core_wait_seconds: float | None = None
    """How long its event loop was ready to go on and other processes had the cores; None where nobody knows."""

    @property
    def ideal_seconds(self) -> float:
        """All lanes busy all the time, or one episode after its other steps: what takes longer."""
        busy = self.call_count * self.load.latency_seconds / self.load.in_flight
        return max(busy, self.longest_chain * self.load.latency_seconds)

    @property
    def excess(self) -> float:
        """Wall time over the ideal, as a share of it."""
        return self.seconds / self.ideal_seconds - 1

    @property
    def overhead_ms(self) -> float:
        """Milliseconds that a call's lane was taken beyond the ideal."""
        lanes = min(self.load.in_flight, self.load.episode_count)
        return (self.seconds - self.ideal_seconds) * lanes / self.call_count * 1_000

    @property
    def cpu_ms(self) -> float:
        """CPU milliseconds a call."""
        return self.cpu_seconds / self.call_count * 1_000

    @property
    def calls_per_second(self) -> float:
        """Calls per second of wall time."""
        return self.call_count / self.seconds

    @property
    def calls_per_core_second(self) -> float:
        """Calls a second at which one core is full."""
        return self.call_count / self.cpu_seconds


class Harness(NamedTuple):
    """The passes of this project, and of the bare clients."""

    litellm: Pass
    none: Pass
    httpx: Pass
    aiohttp: Pass

    @property
    def client_cpu_ms(self) -> float:
        """Litellm's share of a step's CPU."""
        return self.litellm.cpu_ms - self.none.cpu_ms

    def saved_cpu_ms(self, thinner: Pass) -> float:
        """What a step would save with that client in litellm's place."""
        return self.client_cpu_ms - thinner.cpu_ms

    def thinner_calls_per_core_second(self, thinner: Pass) -> float:
        """At how many calls a second a core would then be full."""
        return 1_000 / (self.none.cpu_ms + thinner.cpu_ms)

    @property
    def is_excess_target_reached(self) -> bool:
        """Whether the run with litellm keeps to the schedule."""
        return self.litellm.excess <= EXCESS_TARGET

    @property
    def is_own_cpu_target_reached(self) -> bool:
        """Whether the harness itself is cheap enough."""
        return self.none.cpu_ms <= OWN_CPU_TARGET_MS


def measure_harness(load: Load, on_pass: Callable[[str], None]) -> Harness:
    """All passes, one after the other; ``on_pass`` is told the client of the next.

    Raises:
        BenchError: one failed.
    """
    passes = {}
    for client in CLIENTS:
        on_pass(client)
        passes[client] = measure_pass(load, client)
    return Harness(**passes)


def measure_pass(load: Load, client: str) -> Pass:
    """The pass of one of ``CLIENTS``."""
    with endpoint(load) as (base_url, seen):
        request = json.dumps({**load._asdict(), "base_url": base_url, "client": client})
        command = [sys.executable, "-P", "-m", "s3gym.bench._harness_pass", request]
        # whatever key there is stays out of it
        environment = {**os.environ, "OPENAI_API_KEY": "none", "NO_PROXY": "127.0.0.1"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise BenchError(f"the pass with client {client!r} failed: {last_line(done.stderr or done.stdout)}")
    return as_pass(load, json.loads(done.stdout), seen)


def as_pass(load: Load, took: dict[str, Any], seen: dict[str, Any]) -> Pass:
    """A pass from what it says of itself and what the endpoint saw of it."""
    late = seen["late_seconds"] / max(seen["request_count"], 1)
    return Pass(load, **took, most_in_flight=seen["most_in_flight"], late_seconds=late)


@contextmanager
def endpoint(load: Load) -> Iterator[tuple[str, dict[str, Any]]]:
    """The address of an endpoint at work, and what it saw, which is filled in when it has ended."""
    request = json.dumps({"reply": REPLY, "latency_seconds": load.latency_seconds})
    command = [sys.executable, "-I", _endpoint.__file__, request]
    seen: dict[str, Any] = {}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        if not port:
            raise BenchError("the endpoint could not listen on 127.0.0.1")
        yield f"http://127.0.0.1:{port}/v1", seen
        told, _ = process.communicate("")
    seen.update(json.loads(told))


def last_line(text: str) -> str:
    """Of what a process said."""
    return text.strip().rpartition("\n")[2]
