"""A shared resource of a phone, which is taken once for several holders: our keyboard, a screen that stays on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from agent_core.devices.waiting import finish

T = TypeVar("T")


class SharedHold:
    """A shared resource with a count of its holders: the first one takes it, the last one gives it back."""

    def __init__(self, take: Callable[[], Awaitable[object]], give_back: Callable[[], Awaitable[object]]) -> None:
        """give_back: also called after a ``take`` that failed or was cancelled, to undo its first steps. It must be
        limited in time and raise no device error.
        """
        self._take, self._give_back = take, give_back
        self._lock = asyncio.Lock()
        self._holders = 0

    @property
    def held(self) -> bool:
        """True if anybody holds the resource now."""
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
        """Run ``work`` if nobody holds the resource, and let nobody take it meanwhile.

        Returns the result; None if somebody holds the resource.
        """
        async with self._lock:
            return None if self._holders else await work()

    async def _release(self) -> None:
        async with self._lock:
            self._holders -= 1
            if not self._holders:
                await self._give_back()
