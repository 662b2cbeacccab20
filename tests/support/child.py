"""What a piece of work costs, measured in a process of its own.

    async def read_bomb(url: str) -> None: ...          # at the top of a test module

    cost = measure(read_bomb, server.url)
    assert cost.error == "ModelFormat" and cost.memory < 200 and cost.longest_block < 1

Linux only: the peak of memory is read from /proc (the section "/proc/pid/status" of proc(5)).
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import multiprocessing
import re
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_BEAT = 0.01  # seconds between two looks at whether the event loop still turns


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds on the clock and of processor time, and MiB at the peak beyond what stood there before.

    ``longest_block``: the most seconds of processor time that the event loop used at a stretch, so that other work on
    the machine does not count; 0 for work that uses none.
    ``error``: the class of the error that ended the work, "" if none did, and ``message`` what it says.
    """

    seconds: float
    cpu: float
    memory: float
    longest_block: float
    error: str
    message: str
    result: Any


def measure(work: Callable[..., Any], *arguments: Any) -> Cost:
    """Run ``work``, a function or coroutine function at the top of a module, in a fresh process.

    The imports of its module are not part of the cost. ``result`` must be plain data.
    """
    with Child() as child:
        return child.measure(work, *arguments)


async def measure_beside(work: Callable[..., Any], *arguments: Any) -> Cost:
    """Run ``measure`` while the caller's event loop goes on, for example to serve what ``work`` asks."""
    return await asyncio.to_thread(measure, work, *arguments)


class Child:
    """One process for several pieces of work, one after the other: its imports are paid for once."""

    def __init__(self) -> None:
        self._pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def measure(self, work: Callable[..., Any], *arguments: Any) -> Cost:
        """See ``measure``."""
        return self._pool.submit(_measured, work, arguments).result()

    async def measure_beside(self, work: Callable[..., Any], *arguments: Any) -> Cost:
        """See ``measure_beside``."""
        return await asyncio.to_thread(self.measure, work, *arguments)


def _measured(work: Callable[..., Any], arguments: tuple[Any, ...]) -> Cost:
    gc.collect()
    before = _memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins anew
    blocks: list[float] = [0.0]
    result, error, message = None, "", ""
    clock, processor = time.monotonic(), time.process_time()
    try:
        if inspect.iscoroutinefunction(work):
            result = asyncio.run(_outages(work(*arguments), blocks))
        else:
            result = work(*arguments)
    except Exception as raised:  # noqa: BLE001 - whatever it is, it is the result
        error, message = type(raised).__name__, str(raised)
    seconds, cpu = time.monotonic() - clock, time.process_time() - processor
    return Cost(seconds, cpu, _memory("VmHWM") - before, max(blocks), error, message, result)


async def _outages(work: Awaitable[Any], blocks: list[float]) -> Any:
    async def beat() -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(_BEAT)
            blocks.append(time.thread_time() - before)

    beating = asyncio.create_task(beat())
    await asyncio.sleep(0)
    try:
        return await work
    finally:
        await asyncio.sleep(2 * _BEAT)  # a block at the very end is seen, too
        beating.cancel()


def _memory(name: str) -> float:
    """A line of /proc/self/status in MiB."""
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    found = re.search(rf"^{name}:\s+(\d+) kB", status, re.MULTILINE)
    assert found is not None, f"{name} is not in /proc/self/status"
    return int(found[1]) / 1024
