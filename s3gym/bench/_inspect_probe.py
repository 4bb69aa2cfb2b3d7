"""Times inspect_ai; run as a file by the Python that has it, so it imports nothing of this project.

Reads one argument, JSON: the fields of ``harness.Load``, ``base_url``, ``client`` and ``texts``, what the user says at
each turn; prints one JSON object. A sample is an episode: each turn adds a message and asks for an answer to all of
them. Clients:

* ``inspect_ai``: an evaluation as it is done by default, with its log; ``max_samples`` episodes at once;
* ``openai``: no framework, just the client library that inspect_ai asks with.
"""

import asyncio
import importlib
import importlib.metadata
import json
import os
import resource
import sys
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any


def main(request: dict[str, Any]) -> None:
    """Does the pass and prints what it took."""
    measure = {"inspect_ai": _inspect, "openai": _openai}[request["client"]]
    seconds, cpu_seconds = measure(request)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    took = {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "call_count": request["episode_count"] * len(request["texts"]),
        "longest_chain": len(request["texts"]),
        "peak_bytes": peak if sys.platform == "darwin" else peak * 1024,
    }
    print(json.dumps({"version": importlib.metadata.version("inspect_ai"), "took": took}))


def _inspect(request: dict[str, Any]) -> tuple[float, float]:
    os.environ["LOOPBACK_API_KEY"] = "none"
    inspect_ai = importlib.import_module("inspect_ai")
    dataset = importlib.import_module("inspect_ai.dataset")
    models = importlib.import_module("inspect_ai.model")
    solver = importlib.import_module("inspect_ai.solver").solver

    def evaluate(episode_count: int, texts: list[str], folder: str) -> None:
        @solver  # type: ignore[untyped-decorator]
        def turns() -> Any:
            async def solve(state: Any, generate: Any) -> Any:
                state.messages.clear()
                for text in texts:
                    state.messages.append(models.ChatMessageUser(content=text))
                    state = await generate(state)
                return state

            return solve

        samples = [dataset.Sample(input=f"episode {index}", id=index + 1) for index in range(episode_count)]
        (log,) = inspect_ai.eval(
            inspect_ai.Task(dataset=dataset.MemoryDataset(samples), solver=turns()),
            model=models.get_model("openai-api/loopback/loopback", base_url=request["base_url"]),
            display="none",
            log_dir=folder,
            max_samples=request["in_flight"],
            max_connections=request["in_flight"],
            max_tokens=14_000,
            seed=0,
        )
        if log.status != "success":
            raise SystemExit(f"its evaluation ended with {log.status}: {log.error and log.error.message}")

    with TemporaryDirectory(prefix="inspect-") as folder:
        evaluate(1, request["texts"][:1], folder)  # imports, and what is set up once
        started, cpu_started = perf_counter(), process_time()
        evaluate(request["episode_count"], request["texts"], folder)
        return perf_counter() - started, process_time() - cpu_started


def _openai(request: dict[str, Any]) -> tuple[float, float]:
    client_of = importlib.import_module("openai").AsyncOpenAI

    async def run() -> tuple[float, float]:
        doors = asyncio.Semaphore(request["in_flight"])

        async def episode(client: Any, texts: list[str]) -> None:
            messages = []
            for text in texts:
                messages.append({"role": "user", "content": text})
                async with doors:
                    answer = await client.chat.completions.create(
                        model="loopback", messages=messages, max_tokens=14_000, seed=0
                    )
                messages.append({"role": "assistant", "content": answer.choices[0].message.content})

        async with client_of(base_url=request["base_url"], api_key="none", max_retries=0) as client:
            await episode(client, request["texts"][:1])
            started, cpu_started = perf_counter(), process_time()
            await asyncio.gather(*(episode(client, request["texts"]) for _ in range(request["episode_count"])))
            return perf_counter() - started, process_time() - cpu_started

    return asyncio.run(run())


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
