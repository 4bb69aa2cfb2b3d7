"""Lets several hold the same thing at once, and whoever wants another one wait."""

import asyncio
import threading
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager

LOOK_AGAIN_SECONDS = 0.05


class Turns:
    """For every place one thing at a time; works across threads and their event loops."""

    def __init__(self) -> None:
        self._held: dict[Hashable, tuple[Hashable, int]] = {}
        self._lock = threading.Lock()

    @asynccontextmanager
    async def hold(self, place: Hashable, thing: Hashable) -> AsyncIterator[None]:
        """Waits until nobody holds another thing in this place."""
        while not self._take(place, thing):
            await asyncio.sleep(LOOK_AGAIN_SECONDS)
        try:
            yield
        finally:
            self._leave(place)

    def _take(self, place: Hashable, thing: Hashable) -> bool:
        with self._lock:
            held, count = self._held.get(place, (thing, 0))
            if held != thing:
                return False
            self._held[place] = (thing, count + 1)
            return True

    def _leave(self, place: Hashable) -> None:
        with self._lock:
            held, count = self._held.pop(place)
            if count > 1:
                self._held[place] = (held, count - 1)
