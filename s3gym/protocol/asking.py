"""Asks a model: the journal first, then the call, again where that can help. The one retry of the project.

A call that waits to be made again keeps its place among the calls in flight, so an endpoint in trouble is
asked less and gets its full share back when the trouble is over.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import nullcontext

from s3gym.journal import Journal
from s3gym.models.base import TRANSIENT, Completion, Model, ModelError, Request

ATTEMPTS = 4
FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 60.0
"""Cap of the wait of our own, which doubles with each attempt."""
LONGEST_RETRY_AFTER_SECONDS = 300.0
"""Cap of the wait a provider may ask for."""


class Asker:
    """One model, its journal, and the calls it may have in flight; counts what it does."""

    def __init__(
        self,
        model: Model,
        journal: Journal | None = None,
        in_flight: asyncio.Semaphore | None = None,
        *,
        attempts: int = ATTEMPTS,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Puts them together.

        Args:
            model: who is asked.
            journal: where hosted calls are kept and found again; None keeps none.
            in_flight: shared by all who ask the same endpoint; None sets no ceiling.
            attempts: most calls for one request, at least 1; counted anew after a restart.
            sleep: waits so many seconds.
        """
        self.model = model
        self.calls_made = 0
        """Hosted calls, repeated ones included."""
        self.calls_replayed = 0
        """Requests that the journal answered."""
        self.failures = 0
        """Hosted calls that failed, also where a later attempt succeeded."""
        self._journal = journal
        self._in_flight = in_flight or nullcontext()
        self._attempts = attempts
        self._sleep = sleep
        self._identity = model.identity()

    async def ask(self, request: Request) -> Completion:
        """The answer to ``request``.

        Raises:
            ModelError: of the last attempt.
        """
        if self.model.is_free:
            return await self.model.complete(request)
        key = ""
        if self._journal is not None:
            key = self._journal.key(self._identity, request)
            known = self._journal.lookup(key)
            if known is not None:
                self.calls_replayed += 1
                return known
        async with self._in_flight:
            return await self._until_answered(request, key)

    async def _until_answered(self, request: Request, key: str) -> Completion:
        for attempt in range(1, self._attempts):
            try:
                return await self._call(request, key)
            except ModelError as error:
                if error.kind not in TRANSIENT:
                    raise
                wait = wait_seconds(attempt, error.retry_after_seconds, request.seed)
            await self._sleep(wait)
        return await self._call(request, key)

    async def _call(self, request: Request, key: str) -> Completion:
        """One attempt, counted and recorded."""
        self.calls_made += 1
        try:
            completion = await self.model.complete(request)
        except ModelError as error:
            self.failures += 1
            if self._journal is not None:
                self._journal.record_failure(key, self.model.model_id, request, error)
            raise
        if self._journal is not None:
            self._journal.record_success(key, self.model.model_id, request, completion)
        return completion


def wait_seconds(attempt: int, retry_after: float | None, seed: int) -> float:
    """How long to wait after failed attempt number ``attempt`` (from 1).

    Doubles from ``FIRST_WAIT_SECONDS``, less up to half of it so that calls which failed together do not come
    back together; never shorter than the provider asks, up to ``LONGEST_RETRY_AFTER_SECONDS``.
    """
    ours = min(FIRST_WAIT_SECONDS * 2.0 ** (attempt - 1), LONGEST_WAIT_SECONDS)
    ours *= 1 - random.Random(f"{seed}/{attempt}").random() / 2
    return max(ours, min(retry_after or 0.0, LONGEST_RETRY_AFTER_SECONDS))
