"""Memory of pictures goes back to the system.

A screen is 8 MB. The C library of most Linux systems keeps what was freed for later, in each thread by itself: measured
with 50 phones, a server stayed at 2.1 GB after its work. So it is told to hand back what it has, now and then while
something is done. (To take large pieces from the system one by one keeps as little, but each run cost a quarter more of
the processor.) ``phonedesk bench scale`` measures it.
"""

from __future__ import annotations

import asyncio
import ctypes
import sys
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

EVERY_SECONDS = 5.0
BUSY_SECONDS = 0.5  # of a core since the last time: less than that leaves nothing worth the trouble


@asynccontextmanager
async def pictures_given_back(every: float = EVERY_SECONDS) -> AsyncIterator[None]:
    """While inside. Where the C library cannot do it, nothing happens."""
    trim = _trim()
    if trim is None:
        yield
        return
    task = asyncio.create_task(_forever(trim, every), name="memory")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _trim() -> Callable[[int], int] | None:
    if sys.platform != "linux":
        return None
    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):  # another C library
        return None
    return found


async def _forever(trim: Callable[[int], int], every: float) -> None:
    used = 0.0
    # A thread of its own: the loop's are replaced, and closed, by the queue.
    with ThreadPoolExecutor(1, thread_name_prefix="memory") as own:
        while True:
            await asyncio.sleep(every)
            now = time.process_time()
            if now - used > BUSY_SECONDS:
                await asyncio.get_running_loop().run_in_executor(own, trim, 0)
                used = time.process_time()
