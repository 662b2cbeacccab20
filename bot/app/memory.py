"""Return the memory of pictures to the system.

A screen is 8 MB. The C library of most Linux systems keeps freed memory for later, for each thread separately: measured
with 50 phones, a server stayed at 2.1 GB after its work. So it is told to give memory back now and then, while there is
work. It does so for its main heap only, so all threads share that one: with heaps of their own, a server with one phone
kept up to four pictures, as chance would have it. (Taking large pieces from the system one by one keeps as little, but
each run took a quarter more processor time.)
``phonedesk bench scale`` and ``phonedesk bench --only idle`` measure it.
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
BUSY_SECONDS = 0.2  # of processor time since the last time; less work leaves too little memory to bother
M_ARENA_MAX = -8  # of malloc.h


@asynccontextmanager
async def pictures_given_back(every: float = EVERY_SECONDS) -> AsyncIterator[None]:
    """Return freed memory to the system every few seconds inside the block. Does nothing if the C library cannot.

    Enter it before other threads begin: a thread keeps the heap that it has.
    """
    library = _library()
    if library is None:
        yield
        return
    library.mallopt(M_ARENA_MAX, 1)
    task = asyncio.create_task(_forever(library.malloc_trim, every), name="memory")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _library() -> ctypes.CDLL | None:
    if sys.platform != "linux":
        return None
    try:
        library = ctypes.CDLL(None)
    except OSError:
        return None
    has_both = hasattr(library, "mallopt") and hasattr(library, "malloc_trim")  # another C library has not
    return library if has_both else None


async def _forever(trim: Callable[[int], int], every: float) -> None:
    used = 0.0
    # It has its own thread, because the queue replaces and closes the loop's.
    with ThreadPoolExecutor(1, thread_name_prefix="memory") as own:
        while True:
            await asyncio.sleep(every)
            if time.process_time() - used > BUSY_SECONDS:
                await asyncio.get_running_loop().run_in_executor(own, trim, 0)
                used = time.process_time()
