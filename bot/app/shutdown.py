"""The end of a serving process: in order when it is asked to end, at once when asked again or if it takes too long.

Ending at once is like a crash. Nothing is lost: the next start, or another host, continues the work.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from functools import partial
from typing import Protocol

import structlog

from storage.engine import Database

LAST_SECONDS = 30.0  # for the end of a process, after the time that active runs may take
DATABASE_SECONDS = 10.0  # of these, for waiting for a database that is away
AGAIN_SECONDS = 1.0  # a later request is a second one
EXIT = 1

log = structlog.get_logger(__name__)


class Shutdown:
    """The end of a process, in order or at once.

    The first ``ask`` sets ``asked``. A second one calls ``at_once``, which is also called ``seconds`` after the first.
    A request within ``again_seconds`` belongs to the first, because a terminal and a supervisor may both send a signal.
    say: called at the first request.
    """

    def __init__(
        self,
        say: Callable[[], None],
        *,
        seconds: float,
        at_once: Callable[[], None],
        again_seconds: float = AGAIN_SECONDS,
    ) -> None:
        self.asked = asyncio.Event()
        self._asked_at = 0.0
        self._again_seconds = again_seconds
        self._say = say
        self._at_once = at_once
        # The timer has its own thread, because the loop itself may hang.
        self._timer = threading.Timer(seconds, self._too_long)
        self._timer.daemon = True

    def ask(self) -> None:
        """Ask for the end, or a second time for the end at once."""
        if self.asked.is_set():
            if time.monotonic() - self._asked_at >= self._again_seconds:
                self._at_once()
            return
        self._asked_at = time.monotonic()
        self.asked.set()
        self._timer.start()
        self._say()

    def over(self) -> None:
        """Stop the timer: the process has ended in order."""
        self._timer.cancel()

    def _too_long(self) -> None:
        log.error("end_takes_too_long", seconds=self._timer.interval)
        self._at_once()


@contextmanager
def ending(say: Callable[[], None], drain_seconds: float) -> Iterator[asyncio.Event]:
    """Yield an event that Ctrl-C and SIGTERM set inside the block. ``say`` tells the person who waits for the end."""
    made = Shutdown(say, seconds=drain_seconds + LAST_SECONDS, at_once=lambda: os._exit(EXIT))
    with on_signals(made.ask):
        try:
            yield made.asked
        finally:
            made.over()


@contextmanager
def on_signals(ask: Callable[[], None]) -> Iterator[None]:
    """Call ``ask`` in the running loop on Ctrl-C and SIGTERM inside the block.

    Loops on Windows do not handle signals; there Python's own handler passes them on. Outside the main thread, where
    no signals arrive, this changes nothing.
    """
    loop = asyncio.get_running_loop()
    undo: list[Callable[[], object]] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, ask)
            undo.append(partial(loop.remove_signal_handler, number))
        except NotImplementedError:
            with suppress(ValueError):  # not the main thread
                former = signal.signal(number, lambda *_: loop.call_soon_threadsafe(ask))
                undo.append(partial(signal.signal, number, former))
        except (RuntimeError, ValueError):
            continue  # not the main thread
    try:
        yield
    finally:
        for one in undo:
            one()


class _Part(Protocol):
    """A part of a process that runs from ``start`` until ``stop``."""

    async def start(self) -> None: ...
    async def stop(self) -> None: ...


async def start_in(stack: AsyncExitStack, part: _Part) -> None:
    """Start a part of a process, and stop it when ``stack`` is closed."""
    await part.start()
    stack.push_async_callback(part.stop)


def wait_no_longer(db: Database, drain_seconds: float) -> None:
    """Limit how long the end of the process waits for a database that is away. Called when the end begins."""
    db.end_within(drain_seconds + DATABASE_SECONDS)
