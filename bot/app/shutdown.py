"""How a process that serves ends: in order when it is told to; at once when it is told again, or that takes too long.

At once is as if it crashed: nothing is lost by it, the next start, or another host, goes on where this one was.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

import structlog

from storage.engine import Database

LAST_SECONDS = 30.0  # for the end of a process, besides what its runs at work may take
DATABASE_SECONDS = 10.0  # of these: how long a database that is away is waited for
AGAIN_SECONDS = 1.0
EXIT = 1

log = structlog.get_logger(__name__)


class Shutdown:
    """``asked`` is set by the first ``ask``. A second one calls ``at_once``, and so do ``seconds`` after the first.

    What comes within ``again_seconds`` is the first one still: a terminal and a supervisor both send their signal.
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
        # A thread of its own: the loop may be what does not end.
        self._timer = threading.Timer(seconds, self._too_long)
        self._timer.daemon = True

    def ask(self) -> None:
        if self.asked.is_set():
            if time.monotonic() - self._asked_at >= self._again_seconds:
                self._at_once()
            return
        self._asked_at = time.monotonic()
        self.asked.set()
        self._timer.start()
        self._say()

    def over(self) -> None:
        """It has ended in order."""
        self._timer.cancel()

    def _too_long(self) -> None:
        log.error("end_takes_too_long", seconds=self._timer.interval)
        self._at_once()


@contextmanager
def ending(say: Callable[[], None], drain_seconds: float) -> Iterator[asyncio.Event]:
    """Set by Ctrl-C and SIGTERM, while the block lasts. ``say`` tells the person who waits for the end."""
    made = Shutdown(say, seconds=drain_seconds + LAST_SECONDS, at_once=lambda: os._exit(EXIT))
    with on_signals(made.ask):
        try:
            yield made.asked
        finally:
            made.over()


@contextmanager
def on_signals(ask: Callable[[], None]) -> Iterator[None]:
    """Call ``ask`` in the running loop on Ctrl-C and SIGTERM, while the block lasts.

    Windows' loops know no signals: there Python's own handler passes them on. Outside the main thread, which is told
    of no signal, nothing is changed.
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


def wait_no_longer(db: Database, drain_seconds: float) -> None:
    """At the beginning of the end: a database that is away does not hold it up."""
    db.end_within(drain_seconds + DATABASE_SECONDS)
