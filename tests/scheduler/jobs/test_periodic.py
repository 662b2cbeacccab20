from __future__ import annotations

import asyncio

from scheduler.jobs.periodic import Periodic
from storage.signals import Signal


class Counted:
    """Work that counts its times, and fails at those that are named."""

    def __init__(self, *fails: int, seconds: float | None = None) -> None:
        self.times = 0
        self._fails = fails
        self._seconds = seconds
        self._done = asyncio.Condition()

    async def __call__(self) -> float | None:
        async with self._done:
            self.times += 1
            self._done.notify_all()
        if self.times in self._fails:
            raise OSError("away")
        return self._seconds

    async def until(self, times: int) -> None:
        async with asyncio.timeout(30), self._done:
            await self._done.wait_for(lambda: self.times >= times)


async def test_what_fails_is_tried_again_the_next_time() -> None:
    work = Counted(1, 2)
    loop = Periodic("test-loop", work, 0.001)
    await loop.start()
    await work.until(4)
    await loop.stop()
    seen = work.times
    await asyncio.sleep(0.02)
    assert work.times == seen, "it was stopped"


async def test_the_work_says_how_long_the_pause_is() -> None:
    work = Counted(seconds=0.001)
    loop = Periodic("test-loop", work, 3600)
    await loop.start()
    await work.until(3)
    await loop.stop()


async def test_a_signal_ends_the_pause_even_if_it_comes_while_the_work_is_under_way() -> None:
    signal, work = Signal(), Counted()

    async def signalled() -> None:
        await work()
        if work.times == 1:
            signal.notify()

    loop = Periodic("test-loop", signalled, 3600, waiter=signal.waiter)
    await loop.start()
    await work.until(2)
    signal.notify()
    await work.until(3)
    await loop.stop()


async def test_it_may_begin_later_and_be_stopped_before() -> None:
    work = Counted()
    loop = Periodic("test-loop", work, 3600, first=3600)
    await loop.start()
    await asyncio.sleep(0)
    await loop.stop()
    assert work.times == 0
    await loop.stop()
