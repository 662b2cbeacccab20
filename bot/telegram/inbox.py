"""Updates in: stored before they are confirmed, handled once, in order for each chat."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from typing import Any, Protocol

import structlog

from bot.telegram.options import TelegramOptions
from bot.telegram.sound import UnreadableUpdate, number_of
from bot.telegram.updates import lane
from storage.uncut import whole

log = structlog.get_logger(__name__)

TRIES = 3
MOST_TAKEN = 5000  # updates in hand at once, those that wait for others of their lane among them
LOOK_AGAIN = 5.0  # seconds, for what another process stored


class StoredUpdate(Protocol):
    @property
    def update_id(self) -> int: ...
    @property
    def raw(self) -> str: ...
    @property
    def attempts(self) -> int: ...


class InboxStore(Protocol):
    """``storage.inbox.Inbox`` by shape."""

    def store(self, update_id: int, raw: str) -> Coroutine[Any, Any, bool]: ...
    def waiting(
        self, limit: int = 100, *, without: Collection[int] = ()
    ) -> Coroutine[Any, Any, Sequence[StoredUpdate]]: ...
    async def done(self, update_id: int) -> None: ...
    async def failed(self, update_id: int, error: str, *, give_up: bool) -> None: ...


class Inbox:
    """``handle`` gets an update's JSON; what it raises is logged and the update handed to it again, three times in all.

    Then ``gave_up`` is told. UnreadableUpdate is given up at once, in silence. A handler may see an update again that a
    killed process had begun: its effects carry the update's number as a key for that.
    """

    def __init__(
        self,
        store: InboxStore,
        options: TelegramOptions,
        handle: Callable[[Mapping[str, Any]], Awaitable[None]],
        gave_up: Callable[[Mapping[str, Any]], Awaitable[None]],
    ) -> None:
        self._store = store
        self._options = options
        self._handle = handle
        self._gave_up = gave_up
        self._lanes: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._taken: set[int] = set()
        self._over: set[int] = set()  # dealt with while the store is looked into: what it gives may be older
        self._tasks: set[asyncio.Task[None]] = set()
        self._wake = asyncio.Event()

    async def take(self, raw: object) -> bool:
        """Store an update. False where it is none; its being stored already is no fault."""
        update_id = number_of(raw)
        if update_id is None:
            log.warning("telegram_update_without_number")
            return False
        try:
            text = json.dumps(raw)  # in ASCII: half a surrogate pair could be stored in no database
        except RecursionError:
            log.warning("telegram_update_too_deep", update_id=update_id)
            text = json.dumps({"update_id": update_id})  # it is confirmed, or it would come for ever
        if await whole(self._store.store(update_id, text)):
            self._wake.set()
        return True

    async def run(self) -> None:
        """Handle what is stored, for ever. When cancelled, what has begun is left to ``finish``."""
        while True:
            self._wake.clear()
            self._over.clear()
            while len(self._taken) < MOST_TAKEN:
                # Those in hand are left out: a chat whose updates wait for each other must not hide the others.
                rows = await whole(self._store.waiting(without=self._taken | self._over))
                for row in rows:
                    self._taken.add(row.update_id)
                    task = asyncio.create_task(self._deal_with(row), name=f"telegram-update-{row.update_id}")
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)
                if not rows:
                    break
            # Not wait_for: in Python 3.11 it can swallow a cancellation that meets the wake-up.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_AGAIN):
                    await self._wake.wait()

    async def finish(self, seconds: float) -> None:
        """Wait for the handlers that are at work, then cancel those that are left."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _deal_with(self, row: StoredUpdate) -> None:
        raw: object = None
        try:
            raw = json.loads(row.raw)
            if not isinstance(raw, dict):
                raise TypeError("an update must be an object")
            async with self._lanes[lane(raw)], asyncio.timeout(self._options.handling_seconds):
                await self._handle(raw)
            await self._store.done(row.update_id)
        except UnreadableUpdate as error:
            said = self._options.safe(str(error))
            log.warning("telegram_update_unreadable", update_id=row.update_id, error=said)
            await self._store.failed(row.update_id, said, give_up=True)
        except Exception as error:
            tries = row.attempts + 1
            said = self._options.safe(f"{type(error).__name__}: {error}")
            log.exception("telegram_update_failed", update_id=row.update_id, tries=tries, error=said)
            await self._store.failed(row.update_id, said, give_up=tries >= TRIES)
            if tries >= TRIES and isinstance(raw, dict):
                await self._gave_up(raw)
            elif tries < TRIES:
                await asyncio.sleep(self._options.wait_after(tries))
        finally:
            self._taken.discard(row.update_id)
            self._over.add(row.update_id)
            self._wake.set()
