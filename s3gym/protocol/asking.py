"""Asks a model: the journal first, then the call, again where that can help. The one retry of the project.

A call that failed gives its slot back while it waits: it is the limiter that asks an endpoint in trouble less.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import replace

from s3gym.errors import Explained
from s3gym.journal import Journal
from s3gym.models._failures import short
from s3gym.models.base import TRANSIENT, Completion, Model, ModelError, Request, estimate_tokens, writable
from s3gym.protocol.allowance import Allowance
from s3gym.protocol.limiter import EndpointDown, Limiter, Slot
from s3gym.records import CallFacts

ATTEMPTS = 6
"""Fewer than the failures in a row that tell a limiter of an endpoint that is down: one request proves nothing."""
PATIENCE_SECONDS = 600.0
"""How long one request may be refused for its rate, or told to wait, while others are answered. Its time in the queue
is not counted."""
USUAL_ANSWER = 1000
"""Tokens an answer is expected to have, for an endpoint's budget; corrected by what it had."""
FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 60.0
"""Cap of the wait of our own, which doubles with each attempt."""
LONGEST_RETRY_AFTER_SECONDS = 300.0
"""Cap of the wait a provider may ask for."""


class Asker:
    """One model, its journal and its endpoint; counts what it does."""

    def __init__(
        self,
        model: Model,
        journal: Journal | None = None,
        limiter: Limiter | None = None,
        allowance: Allowance | None = None,
        *,
        stage_key: str | None = None,
        attempts: int = ATTEMPTS,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Puts them together.

        Args:
            model: who is asked.
            journal: where model calls are kept and found again; None keeps none.
            limiter: of the model's endpoint, shared by all who ask there; None sets no limit.
            allowance: of the run; None sets no limit.
            stage_key: of the stage that asks, for the journal.
            attempts: most calls for one request that fail by the endpoint's fault, at least 1; counted anew after a
                restart. Refusals for the rate, and tries of an endpoint that is down, are the limiter's to end.
            sleep: waits so many seconds.
        """
        self.model = model
        self.calls_made = 0
        """Model calls, repeated ones included; those of scripted players are none."""
        self.calls_replayed = 0
        """Requests that the journal answered."""
        self.failures = 0
        """Model calls that failed, also where a later attempt succeeded."""
        self.costs_usd: list[float] = []
        """What model calls cost, of those whose cost is known."""
        self._journal = journal
        self._limiter = limiter
        self._allowance = allowance or Allowance()
        self._stage_key = stage_key
        self._attempts = attempts
        self._sleep = sleep
        self._identity = model.identity()

    async def ask(self, request: Request) -> Completion:
        """The answer to ``request``.

        Raises:
            ModelError: of the last attempt.
            Spent: the run may make no further call, or is being stopped.
        """
        if self.model.is_free:
            return await self.model.complete(request)
        key = self._journal.key(self._identity, request) if self._journal is not None else ""
        return self._known(key) or await self._until_answered(request, key)

    async def _until_answered(self, request: Request, key: str) -> Completion:
        attempt, slot = 1, self._slot(request)
        while True:
            try:
                async with slot or nullcontext():
                    known = self._known(key)  # another may have asked meanwhile
                    if known is None:
                        return await self._call(request, key, slot)
                    if slot is not None:
                        slot.withdraw()
                    return known
            except EndpointDown:
                raise
            except ModelError as error:
                if error.kind not in TRANSIENT:
                    raise
                if slot is not None and slot.is_refused:
                    if slot.refused_seconds > PATIENCE_SECONDS:
                        raise
                    continue  # the limiter makes everybody wait
                if slot is not None and slot.is_probe:
                    continue  # until the limiter gives up
                if attempt >= self._attempts:
                    raise
                wait = wait_seconds(attempt, error.retry_after_seconds, request.seed)
            await self._sleep(wait)
            attempt += 1

    def _known(self, key: str) -> Completion | None:
        """The answer the journal has."""
        known = self._journal.lookup(key) if self._journal is not None else None
        if known is None:
            return None
        self.calls_replayed += 1
        return replace(known, facts=self._after_failures(key, known.facts))

    def _slot(self, request: Request) -> Slot | None:
        if self._limiter is None:
            return None
        prompt = sum(estimate_tokens(message["content"]) for message in request.messages)
        return self._limiter.slot(self.model.model_id, prompt + min(request.decoding.max_output_tokens, USUAL_ANSWER))

    async def _call(self, request: Request, key: str, slot: Slot | None) -> Completion:
        """One attempt, counted and recorded."""
        with self._allowance.call():
            self.calls_made += 1
            try:
                completion = await self._complete(request, slot)
            except ModelError as error:
                self.failures += 1
                facts = self._after_failures(key, error.facts)
                self._note(request, key, slot, error)
                error.facts = facts
                raise
            self._note(request, key, slot, completion)
            return replace(completion, facts=self._after_failures(key, completion.facts))

    async def _complete(self, request: Request, slot: Slot | None) -> Completion:
        """The model's answer. A fault in its back end is a failed call as well: a row, and no stage that breaks."""
        try:
            return await self.model.complete(request)
        except ModelError:
            raise
        except Exception as error:
            if slot is not None:
                slot.tells_nothing = True
            raise _fault_of(self.model.model_id, error) from error

    def _note(self, request: Request, key: str, slot: Slot | None, outcome: Completion | ModelError) -> None:
        facts = outcome.facts
        self._allowance.paid(facts)
        if facts.cost_usd is not None:
            self.costs_usd.append(facts.cost_usd)
        if slot is not None and facts.prompt_tokens is not None:
            slot.tokens_used = facts.prompt_tokens + (facts.completion_tokens or 0)
        if self._journal is not None:
            self._journal.record(key, self.model.model_id, self._stage_key, request, outcome)

    def _after_failures(self, key: str, facts: CallFacts) -> CallFacts:
        """The facts of a call with those that failed before it, however often the run was started."""
        if self._journal is None:
            return facts
        count, cost = self._journal.failed_attempts(key)
        return replace(facts, failed_attempts=count, failed_cost_usd=cost)


def _fault_of(model_id: str, error: Exception) -> ModelError:
    """A back end's own error as a failed call that is not made again: it would end the same way."""
    said = str(error) if isinstance(error, Explained) else f"{type(error).__name__} in its back end: {error}"
    return ModelError("bad_request", writable(short(f"{model_id}: {said}")))


def wait_seconds(attempt: int, retry_after: float | None, seed: int) -> float:
    """How long to wait after failed attempt number ``attempt`` (from 1).

    Doubles from ``FIRST_WAIT_SECONDS``, less up to half of it so that calls which failed together do not come
    back together; never shorter than the provider asks, up to ``LONGEST_RETRY_AFTER_SECONDS``.
    """
    ours = min(FIRST_WAIT_SECONDS * 2.0 ** (attempt - 1), LONGEST_WAIT_SECONDS)
    ours *= 1 - random.Random(f"{seed}/{attempt}").random() / 2
    return max(ours, min(retry_after or 0.0, LONGEST_RETRY_AFTER_SECONDS))
