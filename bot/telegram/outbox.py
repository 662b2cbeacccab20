"""Messages out: kept until Telegram has them, in order for each chat, no faster than Telegram allows.

Two ways in. What must arrive (answers, question cards, outcomes) is put into the store. The live card is not: only its
newest state is worth anything, so it is drawn at the moment it is sent and lost with the process; the next event of its
run draws it anew.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import structlog
from telegram.error import BadRequest, ChatMigrated, Forbidden, InvalidToken, RetryAfter, TelegramError

from bot.desk.port import ChatRef, MessageRef
from bot.telegram.options import TelegramOptions
from bot.telegram.parcel import Parcel
from bot.telegram.sending import Shown, Telegram, says
from storage.uncut import whole

log = structlog.get_logger(__name__)

DRAIN_SECONDS = 3.0
LOOK_AGAIN = 5.0  # seconds, for what another process put in
Draw = Callable[[], Awaitable[Parcel | None]]
Develop = Callable[[str, Parcel], Awaitable[Parcel]]


class StoredMessage(Protocol):
    @property
    def id(self) -> int: ...
    @property
    def chat_key(self) -> str: ...
    @property
    def ref(self) -> str: ...
    @property
    def payload(self) -> Mapping[str, Any]: ...
    @property
    def attempts(self) -> int: ...


class OutboxStore(Protocol):
    """``storage.outbox.Outbox`` by shape."""

    async def put(self, chat_key: str, payload: Mapping[str, Any], *, ref: str = "", replace: bool = False) -> int: ...
    async def due(self, limit: int = 50) -> Sequence[StoredMessage]: ...
    async def next_time(self) -> datetime | None: ...
    async def sent(self, message_id: int, result: Mapping[str, Any] | None = None) -> None: ...
    async def retry(self, message_id: int, *, at: datetime, error: str = "") -> None: ...
    async def failed(self, message_id: int, error: str) -> None: ...
    async def delay_chat(self, chat_key: str, until: datetime) -> None: ...
    async def move_chat(self, old_key: str, new_key: str) -> None: ...
    async def last_sent(self, ref: str) -> StoredMessage | None: ...


class Refs(Protocol):
    """Which message shows what is known by a name (``run:<id>``, ``question:<id>``); None where none does yet."""

    async def get(self, ref: str) -> MessageRef | None: ...
    async def set(self, ref: str, message: MessageRef) -> None: ...


class Outbox:
    """``develop`` makes a parcel with a film into one that can be sent; it raises nothing."""

    def __init__(
        self,
        store: OutboxStore,
        telegram: Telegram,
        refs: Refs,
        options: TelegramOptions,
        *,
        develop: Develop | None = None,
    ) -> None:
        self._store = store
        self._develop = develop
        self._telegram = telegram
        self._refs = refs
        self._options = options
        self._live: OrderedDict[str, tuple[str, Draw]] = OrderedDict()  # ref → chat, how to draw it
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._quiet: dict[str, float] = {}  # chat → loop time before which nothing is sent
        self._pace: dict[str, float] = {}  # chat → loop time before which nothing is edited
        self._failures: dict[str, int] = {}  # of live cards, in a row
        self._said_once: set[str] = set()  # by this process; earlier ones are in the store
        self._wake = asyncio.Event()

    # In ---------------------------------------------------------------------------------------------------------------

    async def put(self, chat_id: str, parcel: Parcel, *, ref: str = "", once: str = "") -> None:
        """Keep a message until it is sent. Under a ``ref`` the newest wins, and edits the message that shows it.

        ``once``: a name under which nothing is sent a second time.
        """
        if once:
            if once in self._said_once or await self._store.last_sent(once) is not None:
                return
            self._said_once.add(once)
        self._live.pop(ref, None)
        await self._store.put(chat_id, parcel.payload(), ref=ref or once, replace=bool(ref or once))
        self._wake.set()

    def show(self, chat_id: str, ref: str, draw: Draw) -> None:
        """Bring the live card ``ref`` up to date when the chat's pace allows. ``draw`` gives None for "no more"."""
        self._live[ref] = (chat_id, draw)
        self._wake.set()

    # Out --------------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Send, for ever."""
        try:
            while True:
                self._wake.clear()
                for row in await whole(self._store.due()):
                    if self._ready(row.chat_key):
                        self._begin(row.chat_key, self._send_stored(row))
                for ref, (chat_id, draw) in list(self._live.items()):
                    if self._ready(chat_id, editing=True):
                        del self._live[ref]
                        self._begin(chat_id, self._send_live(chat_id, ref, draw))
                await self._wait()
        finally:
            await self._finish()

    async def _finish(self) -> None:
        """Let what is being sent come to its end: cut off, it would be sent a second time."""
        tasks = list(self._busy.values())
        if tasks:
            await asyncio.wait(tasks, timeout=DRAIN_SECONDS)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ready(self, chat_id: str, *, editing: bool = False) -> bool:
        now = asyncio.get_running_loop().time()
        until = max(self._quiet.get(chat_id, 0.0), self._pace.get(chat_id, 0.0) if editing else 0.0)
        return chat_id not in self._busy and now >= until

    def _begin(self, chat_id: str, work: Any) -> None:
        def done(task: asyncio.Task[None]) -> None:
            del self._busy[chat_id]
            self._wake.set()
            if not task.cancelled() and (error := task.exception()) is not None:
                # Reached where the store itself fails; the row is still there and comes again.
                log.error("telegram_outbox_failed", chat=chat_id, error=self._options.safe(error), exc_info=error)
                self._quiet[chat_id] = asyncio.get_running_loop().time() + self._options.wait_after(1)

        task = self._busy[chat_id] = asyncio.create_task(work, name=f"telegram-send-{chat_id}")
        task.add_done_callback(done)

    async def _wait(self) -> None:
        """Until something came in, something was sent, or the time of something that waits has come."""
        loop_now = asyncio.get_running_loop().time()
        waits = [LOOK_AGAIN]
        due = await whole(self._store.next_time())
        if due is not None and (seconds := (due - datetime.now(UTC)).total_seconds()) > 0:
            waits.append(seconds)
        times = [*self._quiet.values(), *(self._pace.get(chat_id, 0.0) for chat_id, _ in self._live.values())]
        waits += [time - loop_now for time in times if time > loop_now]
        # Not wait_for: in Python 3.11 it can swallow a cancellation that meets the wake-up.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(waits) + 0.001):
                await self._wake.wait()

    async def _send_stored(self, row: StoredMessage) -> None:
        parcel = Parcel.model_validate(row.payload)
        try:
            shown = await self._deliver(row.chat_key, row.ref, parcel)
        except RetryAfter as error:
            await self._quiet_down(row.chat_key, error)
            await self._store.retry(row.id, at=_from_now(_seconds(error)), error=self._options.safe(error))
        except ChatMigrated as error:
            log.info("telegram_group_moved", chat=row.chat_key, new=error.new_chat_id)
            await self._store.move_chat(row.chat_key, str(error.new_chat_id))
        except (BadRequest, Forbidden) as error:
            log.error("telegram_message_refused", chat=row.chat_key, ref=row.ref, error=self._options.safe(error))
            await self._store.failed(row.id, self._options.safe(error))
        except (TelegramError, InvalidToken) as error:  # the network, or Telegram itself
            wait = self._options.wait_after(row.attempts + 1)
            log.warning("telegram_not_reached", chat=row.chat_key, error=self._options.safe(error), again_in=wait)
            await self._store.retry(row.id, at=_from_now(wait), error=self._options.safe(error))
        else:
            await self._store.sent(row.id, {"message_id": shown.message_id})

    async def _send_live(self, chat_id: str, ref: str, draw: Draw) -> None:
        try:
            parcel = await draw()
            if parcel is not None:
                await self._deliver(chat_id, ref, parcel)
            self._failures.pop(ref, None)
            return
        except RetryAfter as error:
            await self._quiet_down(chat_id, error)
        except (BadRequest, Forbidden, ChatMigrated) as error:
            log.error("telegram_card_refused", chat=chat_id, ref=ref, error=self._options.safe(error))
            return
        except TelegramError as error:
            failures = self._failures[ref] = self._failures.get(ref, 0) + 1
            wait = self._options.wait_after(failures)
            log.warning("telegram_not_reached", chat=chat_id, ref=ref, error=self._options.safe(error), again_in=wait)
            self._quiet[chat_id] = asyncio.get_running_loop().time() + wait
        self._live.setdefault(ref, (chat_id, draw))  # a newer state that came in between stays

    async def _quiet_down(self, chat_id: str, error: RetryAfter) -> None:
        seconds = _seconds(error)
        log.warning("telegram_too_many_requests", chat=chat_id, retry_after=seconds)
        self._quiet[chat_id] = asyncio.get_running_loop().time() + seconds
        await self._store.delay_chat(chat_id, _from_now(seconds))

    async def _deliver(self, chat_id: str, ref: str, parcel: Parcel) -> Shown:
        """Edit the message that shows this, or send a new one, and remember it under ``ref``."""
        if parcel.film is not None and self._develop is not None:
            parcel = await self._develop(chat_id, parcel)
        known = await self._refs.get(ref) if ref else None
        at = Shown(int(known.message_id), known.picture) if known is not None else None
        if parcel.stands_alone:
            at = None
        elif at is None and parcel.edit is not None:
            at = Shown(parcel.edit, parcel.edit_picture)
        if at is not None:
            await self._keep_pace(chat_id)
        loop = asyncio.get_running_loop()
        try:
            shown = await self._show(int(chat_id), at, parcel)
        finally:
            interval = self._options.edit_group if parcel.group else self._options.edit_private
            self._pace[chat_id] = loop.time() + interval
        if ref and (known is None or shown != Shown(int(known.message_id), known.picture)):
            chat = ChatRef("telegram", chat_id, str(parcel.thread_id or ""), "group" if parcel.group else "private")
            await self._refs.set(ref, MessageRef(chat, str(shown.message_id), shown.picture))
        return shown

    async def _show(self, chat_id: int, at: Shown | None, parcel: Parcel) -> Shown:
        if at is not None:
            try:
                return await self._telegram.edit(chat_id, at, parcel)
            except BadRequest as error:
                if not says(error, "to edit not found", "can't be edited", "no text in", "no caption in", "id_invalid"):
                    raise
                log.info("telegram_message_gone", chat=chat_id, message=at.message_id)
        return await self._telegram.send(chat_id, parcel)

    async def _keep_pace(self, chat_id: str) -> None:
        """Wait until this chat may be edited again."""
        wait = self._pace.get(chat_id, 0.0) - asyncio.get_running_loop().time()
        if wait > 0:
            await asyncio.sleep(wait)


def _seconds(error: RetryAfter) -> float:
    after = error.retry_after
    return after.total_seconds() if isinstance(after, timedelta) else float(after)


def _from_now(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)
