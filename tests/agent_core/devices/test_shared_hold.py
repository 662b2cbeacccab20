from __future__ import annotations

import asyncio

import pytest

from agent_core.devices.shared_hold import SharedHold


class Lamp:
    """Something to hold. ``takes``: set it to let ``take`` go on."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.takes, self.gives = asyncio.Event(), asyncio.Event()
        self.takes.set()
        self.gives.set()
        self.hold = SharedHold(self.take, self.give_back)

    async def take(self) -> None:
        self.log.append("take")
        await self.takes.wait()
        self.log.append("taken")

    async def give_back(self) -> None:
        await self.gives.wait()
        self.log.append("given back")

    async def inside(self, leave: asyncio.Event) -> None:
        async with self.hold.hold():
            await leave.wait()


async def test_the_first_takes_it_and_the_last_gives_it_back() -> None:
    lamp = Lamp()
    async with lamp.hold.hold():
        async with lamp.hold.hold():
            assert lamp.hold.held
        assert lamp.log == ["take", "taken"]
    assert lamp.log == ["take", "taken", "given back"]
    assert not lamp.hold.held


async def test_the_second_waits_until_the_first_has_taken_it() -> None:
    lamp, leave = Lamp(), asyncio.Event()
    lamp.takes.clear()
    first, second = (asyncio.create_task(lamp.inside(leave)) for _ in range(2))
    while not lamp.log:
        await asyncio.sleep(0)
    assert await asyncio.wait({second}, timeout=0.01) == (set(), {second})
    assert lamp.log == ["take"]
    lamp.takes.set()
    leave.set()
    await asyncio.gather(first, second)
    assert lamp.log == ["take", "taken", "given back"]


async def test_what_was_begun_is_given_back_if_taking_is_cancelled_or_fails() -> None:
    lamp = Lamp()
    lamp.takes.clear()
    task = asyncio.create_task(lamp.inside(asyncio.Event()))
    while not lamp.log:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert lamp.log == ["take", "given back"]
    assert not lamp.hold.held


async def test_giving_back_is_done_to_its_end_even_if_cancelled() -> None:
    lamp, leave = Lamp(), asyncio.Event()
    lamp.gives.clear()
    leave.set()
    task = asyncio.create_task(lamp.inside(leave))
    while "taken" not in lamp.log:
        await asyncio.sleep(0)
    for _ in range(3):
        await asyncio.sleep(0)
        task.cancel()
    assert not task.done()
    lamp.gives.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert lamp.log[-1] == "given back"


async def test_work_that_needs_it_free_is_not_done_while_it_is_held() -> None:
    lamp = Lamp()

    async def work() -> str:
        return "done"

    async with lamp.hold.hold():
        assert await lamp.hold.unless_held(work) is None
    assert await lamp.hold.unless_held(work) == "done"
