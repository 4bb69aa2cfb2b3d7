"""Event loops whose clock is not ours: hours of waiting in no time, or a minute of it in a second.

Everything that waits by the event loop follows: ``asyncio.sleep``, ``asyncio.timeout``, ``call_later``.
"""

import asyncio
import selectors
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Stuck(Exception):
    """Nothing can ever happen any more: somebody waits for what will not come."""


class _SkippingSelector(selectors.DefaultSelector):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.waits = 0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            raise Stuck
        self.now += timeout
        self.waits += 1
        return ready


class SkippingLoop(asyncio.SelectorEventLoop):
    """Begins at 0 s and leaps to the next timer instead of waiting; for code without threads and sockets."""

    def __init__(self) -> None:
        self._skipping = _SkippingSelector()
        super().__init__(self._skipping)

    @property
    def waits(self) -> int:
        """How often it leapt: many times as often as something happened is a busy loop."""
        return self._skipping.waits

    def time(self) -> float:
        return self._skipping.now


class _HurriedSelector(selectors.DefaultSelector):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def select(self, timeout: float | None = None) -> Any:
        return super().select(timeout and timeout / self.factor)


class HurriedLoop(asyncio.SelectorEventLoop):
    """Its seconds pass ``factor`` times as fast as ours; sockets work, at their own speed."""

    def __init__(self, factor: float) -> None:
        self._factor = factor
        super().__init__(_HurriedSelector(factor))

    def time(self) -> float:
        return time.monotonic() * self._factor


def run_skipping(main: Coroutine[Any, Any, T]) -> T:
    """Runs ``main`` on a SkippingLoop; raises Stuck where it would hang."""
    with asyncio.Runner(loop_factory=SkippingLoop) as runner:
        return runner.run(main)


def run_hurried(main: Coroutine[Any, Any, T], factor: float) -> T:
    """Runs ``main`` on a HurriedLoop."""
    with asyncio.Runner(loop_factory=lambda: HurriedLoop(factor)) as runner:
        return runner.run(main)
