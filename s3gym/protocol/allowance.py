"""What a run may spend on model calls; it is asked before each one, so that a run stops between two.

A call that has begun is paid for: a run that is cancelled waits for it.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from s3gym.errors import Explained
from s3gym.records import CallFacts

T = TypeVar("T")

GRACE_SECONDS = 10.0
"""How long a run that is cancelled waits for the calls in flight."""


class Spent(Explained):
    """No call may be made: the limit the user set is reached, or the run is being stopped. Nothing is lost."""


class Allowance:
    """Calls and US dollars of one run, over all its restarts."""

    def __init__(
        self, max_calls: int | None = None, max_cost: float | None = None, calls: int = 0, cost_usd: float = 0.0
    ) -> None:
        """Starts with what earlier runs of the same request have spent.

        Args:
            max_calls: most calls, failed ones included; exact.
            max_cost: most dollars; calls in flight when it is reached are still paid for.
            calls: made before.
            cost_usd: spent before; calls whose cost nobody knows are not in it.
        """
        self.max_calls, self.max_cost = max_calls, max_cost
        self.calls, self.cost_usd = calls, cost_usd
        self._is_unpriced = False  # an answer came whose cost nobody knows
        self._in_flight = 0
        self._drained: asyncio.Future[None] | None = None  # there once the run is being stopped

    @contextmanager
    def call(self) -> Iterator[None]:
        """One call, from before it is made until its outcome is kept; counts it, or raises Spent."""
        self._admit()
        self._in_flight += 1
        try:
            yield
        finally:
            self._in_flight -= 1
            if self._drained is not None and not self._in_flight and not self._drained.done():
                self._drained.set_result(None)

    async def finishing_calls(
        self, work: Coroutine[Any, Any, T], on_notice: Callable[[str], None] = lambda told: None
    ) -> T:
        """What ``work`` comes to. Cancelled, it lets the calls in flight end before it cancels ``work``.

        No further call is admitted then, and after ``GRACE_SECONDS`` those still out are given up.

        Args:
            work: all that asks within this allowance.
            on_notice: told, in a sentence for people, that calls are waited for.
        """
        task = asyncio.create_task(work)
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            self._drained = asyncio.get_running_loop().create_future()
            if self._in_flight:
                on_notice(
                    f"Stopping: {self._in_flight} calls are in flight, their answers are kept if they come within "
                    f"{GRACE_SECONDS:.0f} s. Interrupt again to give them up"
                )
                await asyncio.wait({self._drained}, timeout=GRACE_SECONDS)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            raise
        return task.result()

    def _admit(self) -> None:
        if self._drained is not None:
            raise Spent("the run is being stopped; every answer is kept, run it again to go on")
        if self.max_calls is not None and self.calls >= self.max_calls:
            raise Spent(f"{self.calls} calls are made, max_calls = {self.max_calls}; all are kept, raise it to go on")
        if self.max_cost is not None and self.cost_usd >= self.max_cost:
            raise Spent(
                f"{self.cost_usd:.6g} dollars are spent, max_cost = {self.max_cost:g}; "
                "every answer is kept, raise it to go on"
            )
        if self.max_cost is not None and self._is_unpriced:
            raise Spent(
                f"an answer came whose cost nobody knows, so max_cost = {self.max_cost:g} cannot be kept; "
                "give the model's prices, have its tokens reported, or use max_calls"
            )
        self.calls += 1

    @property
    def is_priced(self) -> bool:
        """False once an answer came whose cost nobody knows."""
        return not self._is_unpriced

    def paid(self, facts: CallFacts) -> None:
        """Adds what a call cost, answered or not."""
        self.cost_usd += facts.cost_usd or 0.0
        self._is_unpriced |= facts.cost_usd is None and facts.error_kind is None
