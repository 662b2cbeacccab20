from __future__ import annotations

import asyncio

import pytest

from agent_core.devices.waiting import Time, finish


async def test_what_must_be_finished_is_finished_and_then_the_cancelling_goes_on() -> None:
    go_on, done = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        await go_on.wait()
        done.set()

    task = asyncio.create_task(finish(work()))
    for _ in range(3):
        await asyncio.sleep(0)
        task.cancel()
    assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done.is_set()


async def test_finish_gives_the_result_or_the_error() -> None:
    async def work(value: int) -> float:
        return 1 / value

    assert await finish(work(2)) == 0.5
    with pytest.raises(ZeroDivisionError):
        await finish(work(0))


async def test_asks_ever_more_slowly_until_the_time_is_over() -> None:
    now, slept = 0.0, list[float]()

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        slept.append(seconds)

    async def never() -> bool | None:
        return None

    assert await Time(lambda: now, sleep).until(never, 2.0) is None
    assert now == pytest.approx(2.0)
    assert slept[0] == 0.02
    assert max(slept) == 0.25
