"""Something on a phone that several share while they need it: our keyboard, a screen that stays on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from agent_core.devices.waiting import finish

T = TypeVar("T")


class SharedHold:
    """Counts the holders: the first one takes the thing, the last one gives it back."""

    def __init__(self, take: Callable[[], Awaitable[object]], give_back: Callable[[], Awaitable[object]]) -> None:
        """give_back: also called after a ``take`` that failed or was cancelled, and undoes what was begun. It must
        bound itself in time, and raise no device error."""
        self._take, self._give_back = take, give_back
        self._lock = asyncio.Lock()
        self._holders = 0

    @property
    def held(self) -> bool:
        """Whether anybody holds it now."""
        return self._holders > 0

    @asynccontextmanager
    async def hold(self) -> AsyncGenerator[None, None]:
        """Hold it inside the block; blocks may be nested and run at once. It is given back even if cancelled."""
        counted = False
        try:
            async with self._lock:
                self._holders += 1
                counted = True
                if self._holders == 1:
                    await self._take()
            yield
        finally:
            if counted:
                await finish(self._release())

    async def unless_held(self, work: Callable[[], Awaitable[T]]) -> T | None:
        """Do ``work`` if nobody holds it; nobody takes it meanwhile. Return its result, or None if somebody does."""
        async with self._lock:
            return None if self._holders else await work()

    async def _release(self) -> None:
        async with self._lock:
            self._holders -= 1
            if not self._holders:
                await self._give_back()
