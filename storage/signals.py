"""Signals that wake waiting tasks: for changes by this process, and for those by others at the same database."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import structlog

from storage.failures import is_away

log = structlog.get_logger(__name__)

PULSE_SECONDS = 0.5  # how soon a change by another process is seen
CLOSING_SECONDS = 10.0  # how long a query of the watch may take until it is cancelled


class Waiter:
    """A waiter for the next notification after it was made."""

    def __init__(self, event: asyncio.Event, watch: Callable[[], None]) -> None:
        self._event = event
        self._watch = watch

    async def wait(self, timeout: float) -> bool:  # noqa: ASYNC109 - a timeout is an answer here, not an error
        """Return True if it was notified within ``timeout`` seconds."""
        self._watch()
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._event.wait()
            return True
        return False


class Signal:
    """A signal that wakes waiting tasks of this process.

    Take the waiter before reading the data, so that no change is missed in between. ``watch`` is called when a task
    waits: a database's signals are also notified when another process has changed something (``Database.signal``).
    """

    def __init__(self, watch: Callable[[], None] = lambda: None) -> None:
        self._event = asyncio.Event()
        self._watch = watch

    def notify(self) -> None:
        self._event.set()
        self._event = asyncio.Event()

    def waiter(self) -> Waiter:
        return Waiter(self._event, self._watch)


class Signals:
    """The signals of a database. While anybody waits for one, changes by other processes are watched for.

    version: returns a value that changes when another process has changed something. Then every signal is notified,
    because the subject of the change is unknown.
    """

    def __init__(self, version: Callable[[], Awaitable[int | str]]) -> None:
        self._version = version
        self._by_subject: defaultdict[str, Signal] = defaultdict(lambda: Signal(self._watch))
        self._watching: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()  # ends the pulse between two queries: a cancelled query loses its connection
        self._seen: int | str | None = None  # the last version

    def of(self, subject: str) -> Signal:
        return self._by_subject[subject]

    def _watch(self) -> None:
        """Watch the database for changes by other processes, from now until it is closed."""
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._pulse(), name="database-pulse")

    async def _pulse(self) -> None:
        while not self._closing.is_set():
            try:
                before, self._seen = self._seen, await self._version()
            except Exception as error:  # noqa: BLE001 - changes are seen once the database can be read again
                if not is_away(error):
                    log.warning("database_not_watched", error=repr(error))
            else:
                if self._seen != before:
                    for signal in self._by_subject.values():
                        signal.notify()
            with suppress(TimeoutError):
                async with asyncio.timeout(PULSE_SECONDS):
                    await self._closing.wait()

    @asynccontextmanager
    async def closed(self) -> AsyncIterator[None]:
        """End the watch. It does not begin again inside the block."""
        self._closing.set()
        try:
            if self._watching is not None:
                watching, self._watching = self._watching, None
                await asyncio.wait([watching], timeout=CLOSING_SECONDS)
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)
            yield
        finally:
            self._closing.clear()
