"""The episode that every pass of ``harness`` plays, and the model that only waits."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from s3gym.models.base import Completion, Decoding, Request, estimate_tokens
from s3gym.protocol.asking import Asker
from s3gym.protocol.rollout import Part, play
from s3gym.records import CallFacts
from s3gym.registry import GAMES, load
from s3gym.transcript import Message

GAME = "minesweeper"
"""One answer, for ever repeated, does not end it."""
TURN_COUNT = 39
"""Steps of an episode: the prompt of the last has 4,000 tokens, by the stated estimate."""
REPLY = "Answer: flag (0,0), Score: 0"
MODEL_ID = "openai/loopback"


class Waiting:
    """In the place of a hosted model: waits as long as the endpoint does, and knows the answer."""

    model_id = MODEL_ID
    revision: str | None = None
    endpoint = "waiting"
    is_free = False

    def __init__(self, latency_seconds: float, on_request: Callable[[Request], None] = lambda request: None) -> None:
        self._latency_seconds = latency_seconds
        self._on_request = on_request
        facts = CallFacts(
            prompt_tokens=2_000, completion_tokens=12, latency_seconds=latency_seconds, finish_reason="stop"
        )
        self._answer = Completion(text=REPLY, facts=facts)

    def identity(self) -> dict[str, Any]:
        """The name."""
        return {"model": self.model_id}

    def check(self) -> None:
        """Nothing is missing."""

    async def complete(self, request: Request) -> Completion:
        """The one answer."""
        self._on_request(request)
        await asyncio.sleep(self._latency_seconds)
        return self._answer

    def count_tokens(self, text: str) -> int:
        """The stated estimate."""
        return estimate_tokens(text)


def prompts(turn_count: int) -> list[tuple[Message, ...]]:
    """The messages of each step of an episode of so many."""
    asked: list[tuple[Message, ...]] = []
    model = Waiting(0.0, lambda request: asked.append(request.messages))
    game = load(GAMES, GAME, "game").GAME
    part = Part(
        stage_key="prompts",
        phase="evaluation",
        checkpoint=0,
        episode_index=0,
        seed=0,
        experience=None,
        history_tokens_dropped=0,
        decoding=Decoding(),
        decoding_seed=lambda step: step,
    )
    asyncio.run(play(game, replace(game.evaluation, horizon=turn_count), Asker(model), part))
    return asked


def user_texts(turn_count: int) -> list[str]:
    """What is new at each turn, where rules are told once and answers are kept as they come.

    All of them together are as long as the last of ``prompts``.
    """
    *_, last = asked = prompts(turn_count + 1)
    return [asked[0][0]["content"], *(message["content"] for message in last[2:-1:2])]
