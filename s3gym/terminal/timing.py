"""``bench harness``: what the harness adds to its calls, laid out beside what it is compared with."""

import json
from pathlib import Path
from typing import Any

from rich.table import Table

from s3gym.bench.environment import PeerError
from s3gym.bench.harness import EXCESS_TARGET, OWN_CPU_TARGET_MS, BenchError, Harness, Load, Pass, measure_harness
from s3gym.bench.host import processor_name, python_name
from s3gym.bench.inspect_ai import TARGET, Inspect, measure_inspect
from s3gym.errors import Explained
from s3gym.terminal.console import console, errors, verbatim

WHAT = {
    "litellm": "s3gym with litellm",
    "none": "s3gym alone, a model that waits",
    "httpx": "bare httpx",
    "aiohttp": "bare aiohttp",
    "inspect_ai": "inspect_ai with its client",
    "openai": "its client alone, openai",
}
THINNER = ("httpx", "aiohttp")


def bench_harness(load: Load, has_inspect: bool, env: Path | None, output: str) -> int:
    """Times the harness and shows the result; the exit code, 1 when a pass failed or inspect_ai could not be had."""
    inspect: Inspect | None = None
    failure: Explained | None = None
    with errors.status("") as status:

        def on_pass(client: str) -> None:
            status.update(f"Timing {WHAT[client]} ...")

        try:
            harness = measure_harness(load, on_pass)
        except BenchError as error:
            return _failed(error)
        if has_inspect:
            status.update(f"Preparing inspect_ai {'in ' + str(env) if env else 'in a temporary environment'} ...")
            try:
                inspect = measure_inspect(load, env, on_pass)
            except (BenchError, PeerError) as error:
                failure = error
    if output == "json":
        verbatim(json.dumps(as_json(harness, inspect), indent=2))
    else:
        console.print(_table(harness, inspect))
        verbatim("\n".join(_sentences(harness, inspect)))
    return 0 if failure is None else _failed(failure)


def _failed(error: Explained) -> int:
    errors.print(f"Failed: {error}", markup=False, highlight=False, soft_wrap=True)
    return 1


def as_json(harness: Harness, inspect: Inspect | None) -> dict[str, Any]:
    """All figures."""
    compared = inspect and inspect.compare(harness)
    return {
        "host": {"python": python_name(), "processor": processor_name()},
        "load": harness.litellm.load._asdict(),
        "passes": {client: _pass_json(one) for client, one in _passes(harness, inspect).items()},
        "own_cpu_ms": harness.none.cpu_ms,
        "own_cpu_target_ms": OWN_CPU_TARGET_MS,
        "is_own_cpu_target_reached": harness.is_own_cpu_target_reached,
        "excess_target": EXCESS_TARGET,
        "is_excess_target_reached": harness.is_excess_target_reached,
        "litellm_cpu_ms": harness.client_cpu_ms,
        "saved_cpu_ms": {client: harness.saved_cpu_ms(getattr(harness, client)) for client in THINNER},
        "inspect_ai": inspect
        and compared
        and {
            "version": inspect.version,
            "own_cpu_ms": inspect.own_cpu_ms,
            "target": TARGET,
            "is_target_reached": compared.is_target_reached,
            "ratios": compared._asdict(),
        },
    }


def _pass_json(one: Pass) -> dict[str, Any]:
    measured = {key: value for key, value in one._asdict().items() if key != "load"}
    return measured | {
        "ideal_seconds": one.ideal_seconds,
        "excess": one.excess,
        "overhead_ms": one.overhead_ms,
        "cpu_ms": one.cpu_ms,
        "calls_per_second": one.calls_per_second,
        "calls_per_core_second": one.calls_per_core_second,
    }


def _passes(harness: Harness, inspect: Inspect | None) -> dict[str, Pass]:
    beside = {} if inspect is None else {"inspect_ai": inspect.whole, "openai": inspect.openai}
    return harness._asdict() | beside


def _table(harness: Harness, inspect: Inspect | None) -> Table:
    load = harness.litellm.load
    table = Table(
        title=f"{load.episode_count} episodes of {load.turn_count} steps, prompts up to 4,000 tokens, answers after "
        f"{load.latency_seconds:g} s, {load.in_flight} in flight"
    )
    table.add_column("")
    for heading in (
        "wall, s",
        "ideal, s",
        "over it",
        "ms a call",
        "CPU ms a call",
        "calls a second",
        "a full core",
        "peak, MB",
        "no core, s",
    ):
        table.add_column(heading, justify="right")
    for client, one in _passes(harness, inspect).items():
        table.add_row(
            WHAT[client],
            f"{one.seconds:.2f}",
            f"{one.ideal_seconds:.2f}",
            f"{one.excess:.1%}",
            f"{one.overhead_ms:.1f}",
            f"{one.cpu_ms:.2f}",
            f"{one.calls_per_second:.0f}",
            f"{one.calls_per_core_second:,.0f}",
            f"{one.peak_bytes / 1e6:.0f}",
            "-" if one.core_wait_seconds is None else f"{one.core_wait_seconds:.1f}",
        )
    return table


def _sentences(harness: Harness, inspect: Inspect | None) -> list[str]:
    load, whole = harness.litellm.load, harness.litellm
    told = [
        "over it: wall time beyond the ideal schedule, calls x latency / in flight or the longest episode; ms a call: "
        "the same, as what each call's lane was taken for beyond its latency. A full core: calls a second that one "
        "core can bear. No core: how long the event loop was ready and other processes had the cores; where that is "
        "not near 0, wall times say more of them than of what is timed.",
        f"Schedule, aim {EXCESS_TARGET:.0%}: {whole.excess:.1%} with litellm "
        f"{_verdict(harness.is_excess_target_reached)}, {harness.none.excess:.1%} without. The endpoint, a process "
        f"of its own, answered {whole.late_seconds * 1_000:.1f} ms late on average.",
        f"CPU a step, aim {OWN_CPU_TARGET_MS:g} ms of our own: {harness.none.cpu_ms:.2f} ms "
        f"{_verdict(harness.is_own_cpu_target_reached)}; litellm's share {harness.client_cpu_ms:.2f} ms.",
    ]
    for client in THINNER:
        thinner: Pass = getattr(harness, client)
        told.append(
            f"In litellm's place bare {client} would save {harness.saved_cpu_ms(thinner):.2f} ms a step: a core would "
            f"then bear {harness.thinner_calls_per_core_second(thinner):,.0f} calls a second instead of "
            f"{whole.calls_per_core_second:,.0f}."
        )
    thinner_burst = _burst_seconds(harness.none) + _burst_seconds(harness.aiohttp)
    told.append(
        "It is worth it where many calls begin together, as they do here, since their answers all take one time: "
        f"{load.in_flight} calls keep a core busy for {_burst_seconds(whole):.2f} s with litellm, and each is late by "
        f"up to that at every step; {thinner_burst:.2f} s with aiohttp."
    )
    if inspect is not None:
        compared = inspect.compare(harness)
        told.append(
            f"inspect_ai {inspect.version}, aim {TARGET:g}x: {inspect.own_cpu_ms:.2f} ms CPU a turn of its own, "
            f"{compared.own_cpu:.1f}x ours {_verdict(compared.is_target_reached)}; with the clients "
            f"{compared.cpu:.1f}x the CPU and {compared.overhead:.1f}x the wall time over the ideal."
        )
    return told


def _burst_seconds(one: Pass) -> float:
    """CPU seconds of as many calls as are in flight."""
    return one.load.in_flight * one.cpu_ms / 1_000


def _verdict(is_reached: bool) -> str:
    return "(reached)" if is_reached else "(missed)"
