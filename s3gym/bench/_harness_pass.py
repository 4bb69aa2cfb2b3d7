"""One pass of ``harness``, in a process of its own: its CPU time and its memory are the pass's alone.

Reads one argument, JSON: the fields of ``harness.Load``, ``base_url`` and ``client``; prints one JSON object. Clients:

* ``litellm``: a stage as a run has it, from the game to the rows, asking the endpoint;
* ``none``: the same with a model that only waits, so that what it takes is the harness's own;
* ``httpx``, ``aiohttp``: no harness, just the same requests, each written and its answer read.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any, NamedTuple

from flows.evaluate import evaluate
from flows.runtime import Runtime, limiters_for
from s3gym import storage
from s3gym.bench._episode import GAME, MODEL_ID, REPLY, Waiting, prompts
from s3gym.bench.host import peak_bytes
from s3gym.config import load_config
from s3gym.journal import Journal
from s3gym.models.base import Request, Scene
from s3gym.plan import COMPLETE, Stage, make_plan
from s3gym.protocol.allowance import Allowance
from s3gym.transcript import Message


class Timed(NamedTuple):
    """What some work took."""

    seconds: float
    cpu_seconds: float
    core_wait_seconds: float | None


def main(request: dict[str, Any]) -> None:
    """Does the pass and prints what it took."""
    client = request["client"]
    if client in BARE:
        chains = [request["turn_count"]] * request["episode_count"]
        took = asyncio.run(_bare(BARE[client], request, prompts(request["turn_count"])))
    else:
        with TemporaryDirectory(prefix="s3gym-bench-") as folder:
            chains, took = _stage(Path(folder), request)
    counts = {"call_count": sum(chains), "longest_chain": max(chains), "peak_bytes": peak_bytes()}
    print(json.dumps(took._asdict() | counts))


async def timed(work: Awaitable[Any]) -> Timed:
    """What it takes; CPU time of all threads."""
    started, cpu_started, waited = perf_counter(), process_time(), core_wait_seconds()
    await work
    seconds, cpu_seconds = perf_counter() - started, process_time() - cpu_started
    return Timed(seconds, cpu_seconds, None if waited is None else (core_wait_seconds() or 0.0) - waited)


def core_wait_seconds() -> float | None:
    """How long the first thread, which has the event loop, was ready while others had the cores; Linux counts it."""
    try:
        return int(Path("/proc/self/schedstat").read_text(encoding="ascii").split()[1]) / 1e9
    except (OSError, IndexError):
        return None


def _stage(data: Path, request: dict[str, Any]) -> tuple[list[int], Timed]:
    """The steps of each episode of a held-out stage, and what it took."""
    config = load_config(
        None,
        {
            "models": [{"id": MODEL_ID, "base_url": request["base_url"]}],
            "games": [GAME],
            "pathways": ["none"],
            "evaluation_episodes": request["episode_count"],
            "parallel": request["in_flight"],
            "game": {GAME: {"evaluation": {"horizon": request["turn_count"]}}},
        },
    )
    stage = next(stage for stage in make_plan(config).stages() if stage.kind == "evaluate")
    if request["client"] == "none":
        stage = replace(stage, subject=replace(stage.subject, model=Waiting(request["latency_seconds"])))
    storage.open_folder(data)
    chains: list[int] = []

    def on_event(kind: str, number: int) -> None:
        if kind == "step":
            chains.append(number)

    scene = Scene(players=None, reader=None, reward_range=(0.0, 1.0), success_score=1.0, score_aggregation="sum")
    first = Request(messages=prompts(1)[0], purpose="act", seed=0, decoding=stage.subject.decoding, scene=scene)

    async def run() -> Timed:
        await stage.subject.model.complete(first)  # imports, and what a client sets up once
        with Journal(data / "journal.sqlite") as journal:
            limiters = limiters_for([stage.subject.model], config, lambda told: None)
            return await timed(_complete(stage, Runtime(data, journal, limiters, Allowance(), on_event)))

    took = asyncio.run(run())
    return chains, took


async def _complete(stage: Stage, runtime: Runtime) -> None:
    for manifest in await evaluate(stage, runtime):
        if manifest["status"] != COMPLETE:
            raise SystemExit(f"{manifest['failed_calls']} calls failed: {manifest['first_error']}")


Post = Callable[[bytes], Awaitable[bytes]]
Bare = Callable[[str, int, Callable[[Post], Coroutine[Any, Any, Timed]]], Coroutine[Any, Any, Timed]]


async def _bare(client: Bare, request: dict[str, Any], turns: list[tuple[Message, ...]]) -> Timed:
    """As many chains of the same requests, ``in_flight`` of them at once."""
    doors = asyncio.Semaphore(request["in_flight"])

    async def with_post(post: Post) -> Timed:
        async def call(turn: int) -> None:
            body = {"model": "loopback", "messages": turns[turn], "max_tokens": 14_000, "seed": turn}
            answer = json.loads(await post(json.dumps(body).encode()))
            assert answer["choices"][0]["message"]["content"] == REPLY

        async def chain() -> None:
            for turn in range(len(turns)):
                async with doors:
                    await call(turn)

        await call(0)
        return await timed(asyncio.gather(*(chain() for _ in range(request["episode_count"]))))

    return await client(f"{request['base_url']}/chat/completions", request["in_flight"], with_post)


async def _with_httpx(url: str, most: int, work: Callable[[Post], Coroutine[Any, Any, Timed]]) -> Timed:
    import httpx

    headers = {"Content-Type": "application/json", "Authorization": "Bearer none"}
    limits = httpx.Limits(max_connections=most, max_keepalive_connections=most)
    async with httpx.AsyncClient(headers=headers, limits=limits, timeout=600) as client:

        async def post(body: bytes) -> bytes:
            return (await client.post(url, content=body)).content

        return await work(post)


async def _with_aiohttp(url: str, most: int, work: Callable[[Post], Coroutine[Any, Any, Timed]]) -> Timed:
    import aiohttp

    headers = {"Content-Type": "application/json", "Authorization": "Bearer none"}
    async with aiohttp.ClientSession(headers=headers, connector=aiohttp.TCPConnector(limit=most)) as client:

        async def post(body: bytes) -> bytes:
            async with client.post(url, data=body) as response:
                return await response.read()

        return await work(post)


BARE: dict[str, Bare] = {"httpx": _with_httpx, "aiohttp": _with_aiohttp}


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
