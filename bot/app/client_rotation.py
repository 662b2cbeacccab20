"""Clients that are replaced while they are used: closed when the last one who may have them is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import structlog

log = structlog.get_logger(__name__)

Close = Callable[[], Awaitable[None]]


class Turnover:
    """Each replacement begins a new generation; who came in an earlier one may still have what was there before."""

    def __init__(self) -> None:
        self._generation = 0
        self._users: Counter[int] = Counter()
        self._old: dict[int, Sequence[Close]] = {}  # by the last generation that was given them

    @asynccontextmanager
    async def used(self) -> AsyncIterator[None]:
        """What is there at the beginning of the block stays open until its end."""
        generation = self._generation
        self._users[generation] += 1
        try:
            yield
        finally:
            self._users[generation] -= 1
            await self._close_unused()

    async def replaced(self, old: Sequence[Close]) -> None:
        """Nobody is given ``old`` any more."""
        self._old[self._generation] = old
        self._generation += 1
        await self._close_unused()

    async def close(self) -> None:
        """Whoever uses it."""
        self._users.clear()
        await self._close_unused()

    async def _close_unused(self) -> None:
        oldest = min((generation for generation, users in self._users.items() if users > 0), default=self._generation)
        for generation in [known for known in self._old if known < oldest]:
            for close in self._old.pop(generation):
                try:
                    await close()
                except Exception as error:  # noqa: BLE001 - it is not used any more, the others are to be closed
                    log.warning("client_not_closed", error=repr(error))
