"""An update and an evaluation as a run has them, through the model itself."""

import asyncio
from pathlib import Path
from time import perf_counter
from typing import Any

import peft  # noqa: F401 - before the clock starts, as the peer does

from s3gym.config import TrainingSettings
from s3gym.models.base import Change, Decoding, Example, ModelError, Request, Scene, Weights
from s3gym.models.local import LocalModel, load, training  # noqa: F401 - as above
from s3gym.models.local.weights import digest_of
from s3gym.records import CallFacts


def update(job: dict[str, Any]) -> dict[str, Any]:
    """All of ``LocalModel.train``."""
    model, changes = load(job["model"]), list[Change]()
    examples = [Example(**row) for row in job["rows"]]
    settings = TrainingSettings(**job["settings"])
    began = perf_counter()
    asyncio.run(
        model.train(
            examples,
            settings,
            start=None,
            seed=job["seed"],
            folder=Path(job["adapter"]),
            card={},
            on_update=changes.append,
        )
    )
    return {
        "seconds": sum(change.seconds for change in changes),
        "whole_seconds": perf_counter() - began,
        "token_count": sum(change.token_count for change in changes),
        "said": [f"{changes[-1].loss:.4f}"],
    }


def evaluation(job: dict[str, Any]) -> dict[str, Any]:
    """All prompts asked at once, of the model with the adapter."""
    return asyncio.run(_evaluation(load(job["model"]), job))


async def _evaluation(model: LocalModel, job: dict[str, Any]) -> dict[str, Any]:
    folder = Path(job["adapter"])
    began = perf_counter()
    async with model.with_weights(Weights(folder=folder, digest=digest_of(folder))) as adapted:

        async def answer(prompt: str, new_tokens: int) -> tuple[str, CallFacts]:
            request = Request(
                messages=({"role": "user", "content": prompt},),
                purpose="act",
                seed=0,
                decoding=Decoding(temperature=0.0, max_output_tokens=new_tokens, timeout_seconds=3_600.0),
                scene=Scene(None, None, (0.0, 1.0), 1.0, "sum"),
            )
            try:
                completion = await adapted.complete(request)
            except ModelError as error:
                if error.facts.completion_tokens is None:
                    raise
                return "", error.facts  # a random model wrote nothing but spaces
            return completion.text.strip(), completion.facts

        await answer(job["first_prompt"], job["first_new_tokens"])
        started = perf_counter()
        answers = await asyncio.gather(*(answer(prompt, job["new_tokens"]) for prompt in job["prompts"]))
        finished = perf_counter()
    return {
        "seconds": finished - started,
        "whole_seconds": finished - began,
        "token_count": sum(facts.completion_tokens or 0 for _, facts in answers),
        "said": [text for text, _ in answers],
    }
