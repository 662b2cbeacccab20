"""The end of a process that serves: in order, or at once."""

from __future__ import annotations

import asyncio
import os
import signal
import threading

from bot.app.shutdown import Shutdown, ending


async def test_the_first_signal_asks_for_the_end() -> None:
    said: list[str] = []
    with ending(lambda: said.append("ending"), 0) as asked:
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(10):
            await asked.wait()
    assert said == ["ending"]


async def test_a_second_signal_ends_at_once() -> None:
    at_once = threading.Event()
    made = Shutdown(lambda: None, seconds=3600, at_once=at_once.set, again_seconds=0)
    made.ask()
    assert not at_once.is_set()
    made.ask()
    assert at_once.is_set()
    made.over()


async def test_one_end_that_is_signalled_twice_is_one() -> None:
    at_once = threading.Event()
    made = Shutdown(lambda: None, seconds=3600, at_once=at_once.set, again_seconds=3600)
    made.ask()
    made.ask()
    assert not at_once.is_set()
    made.over()


async def test_an_end_that_does_not_come_is_made() -> None:
    at_once = threading.Event()
    made = Shutdown(lambda: None, seconds=0.01, at_once=at_once.set)
    assert not made.asked.is_set()
    made.ask()
    assert at_once.wait(10), "the loop itself does nothing here"
    other = threading.Event()
    made = Shutdown(lambda: None, seconds=0.2, at_once=other.set)
    made.ask()
    made.over()
    made._timer.join()
    assert not other.is_set()
