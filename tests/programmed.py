"""A model that says what a test tells it to, and the frame of one episode for it to be played in."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from s3gym.models.base import Completion, Decoding, ModelError, Request, Scene, estimate_tokens
from s3gym.protocol.rollout import Part
from s3gym.records import CallFacts
from s3gym.transcript import Message

Answer = str | ModelError | Callable[[Request], str]


class Programmed:
    """Gives ``answers`` in turn, the last of them for ever; a function answers by the request."""

    revision: str | None = None
    endpoint = "programmed"
    is_free = True

    def __init__(self, *answers: Answer, model_id: str = "programmed", facts: CallFacts | None = None) -> None:
        self.model_id = model_id
        self.answers = answers
        self.facts = facts or CallFacts()
        self.requests: list[Request] = []

    def identity(self) -> dict[str, Any]:
        return {"model": self.model_id}

    def count_tokens(self, text: str) -> int:
        return estimate_tokens(text)

    async def complete(self, request: Request) -> Completion:
        answer = self.answers[min(len(self.requests), len(self.answers) - 1)]
        self.requests.append(request)
        if isinstance(answer, ModelError):
            raise answer
        return Completion(text=answer if isinstance(answer, str) else answer(request), facts=self.facts)

    def prompts(self, purpose: str) -> list[tuple[Message, ...]]:
        """The messages of all requests for ``purpose``, in order."""
        return [request.messages for request in self.requests if request.purpose == purpose]


class Untouchable:
    """Fails a test that reads anything of it."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"{name} was read")

    def __getitem__(self, name: Any) -> Any:
        raise AssertionError(f"{name} was read")

    def __iter__(self) -> Any:
        raise AssertionError("it was iterated")


def blind(scene: Scene) -> Scene:
    """The same scene with a view and with players that nobody may look at."""
    return replace(scene, players=Untouchable(), view=Untouchable())


def part(**changes: Any) -> Part:
    """Some held-out episode."""
    usual: dict[str, Any] = {
        "stage_key": "0123456789abcdef",
        "phase": "evaluation",
        "checkpoint": 0,
        "episode_index": 0,
        "seed": 3,
        "experience": None,
        "history_tokens_dropped": 0,
        "decoding": Decoding(),
        "decoding_seed": lambda step: step,
    }
    return Part(**{**usual, **changes})
