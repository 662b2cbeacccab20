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
from pydantic import ValidationError
from telegram.error import BadRequest, ChatMigrated, Forbidden, InvalidToken, RetryAfter, TelegramError

from bot.desk.actors import ChatRef, MessageRef
from bot.telegram.options import TelegramOptions
from bot.telegram.parcel import Parcel
from bot.telegram.sending import Shown, Telegram, says
from bot.telegram.topics import Topics
from storage.uncut import whole

log = structlog.get_logger(__name__)

DRAIN_SECONDS = 3.0
LOOK_AGAIN = 5.0  # seconds, for what another process put in
SHUT_SECONDS = 60.0  # how long no live card is drawn for a chat that we are shut out of
OWN_FAULTS = 5  # how often a message may fail while Telegram answers; then it goes without its picture, or is given up
MISTAKES = 3  # how often a message is tried that we ourselves fail at
REMEMBERED = 1000  # names of what was said once; those before are in the store
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
    @property
    def created_at(self) -> datetime: ...


class OutboxStore(Protocol):
    """``storage.outbox.Outbox`` by shape."""

    async def put(self, chat_key: str, payload: Mapping[str, Any], *, ref: str = "", replace: bool = False) -> int: ...
    async def due(self, limit: int = 50) -> Sequence[StoredMessage]: ...
    async def next_time(self) -> datetime | None: ...
    async def sent(self, message_id: int, result: Mapping[str, Any] | None = None) -> None: ...
    async def retry(self, message_id: int, *, at: datetime, error: str = "", counts: bool = True) -> None: ...
    async def failed(self, message_id: int, error: str) -> None: ...
    async def delay_chat(self, chat_key: str, until: datetime) -> None: ...
    async def move_chat(self, old_key: str, new_key: str) -> None: ...
    async def is_said(self, ref: str) -> bool: ...


class Refs(Protocol):
    """Which message shows what is known by a name (``run:<id>``, ``question:<id>``); None where none does yet."""

    async def get(self, ref: str) -> MessageRef | None: ...
    async def set(self, ref: str, message: MessageRef) -> None: ...


class Outbox:
    """``develop`` makes a parcel with a film into one that can be sent; it raises nothing.

    ``moved`` is told of a chat that goes on under another id (old, new), ``given_up`` of the ref of a message that its
    chat does not take.
    """

    def __init__(
        self,
        store: OutboxStore,
        telegram: Telegram,
        refs: Refs,
        options: TelegramOptions,
        *,
        develop: Develop | None = None,
        topics: Topics | None = None,
        moved: Callable[[str, str], Awaitable[None]] | None = None,
        given_up: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self._store = store
        self._develop = develop
        self._topics = topics
        self._moved = moved
        self._given_up = given_up
        self._shut: dict[str, float] = {}  # chat → loop time before which no live card is drawn
        self._telegram = telegram
        self._refs = refs
        self._options = options
        self._live: OrderedDict[str, tuple[str, Draw]] = OrderedDict()  # ref → chat, how to draw it
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._quiet: dict[str, float] = {}  # chat → loop time before which nothing is sent
        self._pace: dict[str, float] = {}  # chat → loop time before which nothing is edited
        self._failures: dict[str, int] = {}  # of live cards, in a row
        self._faults: dict[int, int] = {}  # row → how often it failed while Telegram did answer
        self._said_once: OrderedDict[str, None] = OrderedDict()  # by this process; earlier ones are in the store
        self._wake = asyncio.Event()

    # In ---------------------------------------------------------------------------------------------------------------

    async def put(self, chat_id: str, parcel: Parcel, *, ref: str = "", once: str = "") -> None:
        """Keep a message until it is sent. Under a ``ref`` the newest wins, and edits the message that shows it.

        ``once``: a name under which nothing is sent a second time.
        """
        if once:
            if once in self._said_once or await self._store.is_said(once):
                return
            self._said_once[once] = None
            while len(self._said_once) > REMEMBERED:
                self._said_once.popitem(last=False)
        try:
            await self._keep(chat_id, parcel, ref, once)
        except BaseException:
            self._said_once.pop(once, None)  # not said: whoever tries again must not find it done
            raise

    async def _keep(self, chat_id: str, parcel: Parcel, ref: str, once: str) -> None:
        self._live.pop(ref, None)
        name = ref or once
        *before, last = [parcel] if await self._is_edit(ref, parcel) else parcel.messages()
        for number, part in enumerate(before):
            await self._store.put(chat_id, part.payload(), ref=_part_name(name, number), replace=bool(name))
        await self._store.put(chat_id, last.payload(), ref=name, replace=bool(name))
        self._wake.set()

    async def _is_edit(self, ref: str, parcel: Parcel) -> bool:
        """Whether it takes the place of one message, and so must fit into it."""
        return parcel.edit is not None or not parcel.whole or bool(ref and await self._refs.get(ref) is not None)

    async def move(self, old_id: str, new_id: str) -> None:
        """A chat goes on under another id: what waits for it goes there."""
        await self._store.move_chat(old_id, new_id)
        for ref, (chat_id, draw) in list(self._live.items()):
            if chat_id == old_id:
                self._live[ref] = (new_id, draw)
        self._wake.set()

    def show(self, chat_id: str, ref: str, draw: Draw) -> None:
        """Bring the live card ``ref`` up to date when the chat's pace allows. ``draw`` gives None for "no more"."""
        self._live[ref] = (chat_id, draw)
        self._wake.set()

    def free(self, chat_id: str) -> bool:
        """Whether nothing is being sent to this chat, and Telegram has not asked for silence there."""
        return self._ready(chat_id)

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
                    if self._is_shut(chat_id):
                        del self._live[ref]
                    elif self._ready(chat_id, editing=True):
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

    def _is_shut(self, chat_id: str) -> bool:
        return self._shut.get(chat_id, 0.0) > asyncio.get_running_loop().time()

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
        try:
            parcel = Parcel.model_validate(row.payload)
            if self._faults.get(row.id, 0) >= OWN_FAULTS:
                parcel = parcel.words_alone() or parcel
            shown = await self._deliver(row.chat_key, row.ref, parcel)
        except RetryAfter as error:
            await self._quiet_down(row.chat_key, error)
            at = _from_now(_seconds(error))
            await self._store.retry(row.id, at=at, error=self._options.safe(error), counts=False)
        except ChatMigrated as error:
            await self._has_moved(row.chat_key, str(error.new_chat_id))
        except (BadRequest, Forbidden, ValidationError) as error:
            self._shut_out(row.chat_key, error)
            await self._give_up(row, self._options.safe(error))
        except (TelegramError, InvalidToken) as error:  # the network, or Telegram itself
            await self._not_reached(row, error)
        except Exception as error:  # a mistake of ours: it must not hold up what else waits for this chat
            said = self._options.safe(f"{type(error).__name__}: {error}")
            log.exception("telegram_message_failed", chat=row.chat_key, ref=row.ref, error=said)
            if row.attempts + 1 >= MISTAKES:
                await self._give_up(row, said)
            else:
                await self._store.retry(row.id, at=_from_now(self._options.wait_after(row.attempts + 1)), error=said)
        else:
            self._shut.pop(row.chat_key, None)
            self._faults.pop(row.id, None)
            await self._store.sent(row.id, {"message_id": shown.message_id})

    async def _not_reached(self, row: StoredMessage, error: TelegramError | InvalidToken) -> None:
        said = self._options.safe(error)
        late = datetime.now(UTC) - row.created_at
        if _too_large(error):
            await self._give_up(row, said)
        elif late > timedelta(seconds=self._options.give_up_seconds):
            await self._give_up(row, f"not sent for {late.total_seconds() / 3600:.0f} hours: {said}")
        elif await self._is_hopeless(row) and late > timedelta(seconds=self._options.own_fault_seconds):
            await self._give_up(row, f"Telegram answers, but not to this message: {said}")
        else:
            wait = self._options.wait_after(row.attempts + 1)
            log.warning("telegram_not_reached", chat=row.chat_key, error=said, again_in=wait)
            await self._store.retry(row.id, at=_from_now(wait), error=said)

    async def _is_hopeless(self, row: StoredMessage) -> bool:
        """Whether it alone has failed too often, while Telegram did answer; at last without its picture or film."""
        if not await self._telegram.answers():
            return False
        faults = self._faults[row.id] = self._faults.get(row.id, 0) + 1
        can_be_words = Parcel.model_validate(row.payload).words_alone() is not None
        return faults >= (2 * OWN_FAULTS if can_be_words else OWN_FAULTS)

    async def _give_up(self, row: StoredMessage, why: str) -> None:
        self._faults.pop(row.id, None)
        log.error("telegram_message_given_up", chat=row.chat_key, ref=row.ref, error=why)
        await self._store.failed(row.id, why)
        if row.ref and self._given_up is not None:
            await self._given_up(row.ref)

    def _shut_out(self, chat_id: str, error: Exception) -> None:
        """Blocked or thrown out: a live card would be refused at each step."""
        if isinstance(error, Forbidden):
            self._shut[chat_id] = asyncio.get_running_loop().time() + SHUT_SECONDS

    async def _has_moved(self, old_id: str, new_id: str) -> None:
        log.info("telegram_group_moved", chat=old_id, new=new_id)
        if self._moved is not None:
            await self._moved(old_id, new_id)
        else:
            await self.move(old_id, new_id)

    async def _send_live(self, chat_id: str, ref: str, draw: Draw) -> None:
        try:
            parcel = await draw()
            if parcel is not None:
                await self._deliver(chat_id, ref, parcel)
            self._failures.pop(ref, None)
            return
        except RetryAfter as error:
            await self._quiet_down(chat_id, error)
        except ChatMigrated as error:
            self._live.setdefault(ref, (chat_id, draw))
            await self._has_moved(chat_id, str(error.new_chat_id))
            return
        except (BadRequest, Forbidden) as error:
            self._shut_out(chat_id, error)
            log.error("telegram_card_refused", chat=chat_id, ref=ref, error=self._options.safe(error))
            return
        except TelegramError as error:
            failures = self._failures[ref] = self._failures.get(ref, 0) + 1
            wait = self._options.wait_after(failures)
            log.warning("telegram_not_reached", chat=chat_id, ref=ref, error=self._options.safe(error), again_in=wait)
            self._quiet[chat_id] = asyncio.get_running_loop().time() + wait
        except Exception as error:  # the database is away, or a mistake of ours: what is stored for the chat goes on
            failures = self._failures[ref] = self._failures.get(ref, 0) + 1
            log.exception("telegram_card_failed", chat=chat_id, ref=ref, error=self._options.safe(error))
            self._pace[chat_id] = asyncio.get_running_loop().time() + self._options.wait_after(failures)
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
        asked_at, left = parcel.reply_to, None
        if known is not None and at is not None and not known.chat.thread_id and parcel.topic is not None:
            parcel = await self._place(chat_id, parcel)
            if parcel.thread_id is not None:  # its phone, or the right to make its topic, was not there before
                at, left = None, at
        if at is not None:
            await self._keep_pace(chat_id)
        loop = asyncio.get_running_loop()
        try:
            shown, parcel = await self._show(chat_id, at, parcel)
        finally:
            interval = self._options.edit_group if parcel.group else self._options.edit_private
            self._pace[chat_id] = loop.time() + interval
        if ref and (known is None or shown != Shown(int(known.message_id), known.picture)):
            chat = ChatRef("telegram", chat_id, str(parcel.thread_id or ""), "group" if parcel.group else "private")
            await self._refs.set(ref, MessageRef(chat, str(shown.message_id), shown.picture))
        if left is not None or (at is None and asked_at is not None):
            await self._say_where(chat_id, ref, parcel, shown, asked_at, left)
        return shown

    async def _show(self, chat_id: str, at: Shown | None, parcel: Parcel) -> tuple[Shown, Parcel]:
        """The message, and the parcel as it was sent: with the topic that it went to."""
        if at is not None:
            try:
                return await self._telegram.edit(int(chat_id), at, parcel), parcel
            except BadRequest as error:
                if not says(error, "to edit not found", "can't be edited", "no text in", "no caption in", "id_invalid"):
                    raise
                log.info("telegram_message_gone", chat=chat_id, message=at.message_id)
        parcel = await self._place(chat_id, parcel)
        try:
            return await self._telegram.send(int(chat_id), parcel), parcel
        except BadRequest as error:
            other = await self._topics.instead(chat_id, parcel, error) if self._topics is not None else None
            if other is None:
                raise
        return await self._telegram.send(int(chat_id), other), other

    async def _place(self, chat_id: str, parcel: Parcel) -> Parcel:
        return await self._topics.place(chat_id, parcel) if self._topics is not None else parcel

    async def _say_where(
        self, chat_id: str, ref: str, parcel: Parcel, shown: Shown, asked_at: int | None, left: Shown | None
    ) -> None:
        """Where the card was, or was asked for, a line says in which topic it is now."""
        receipt = self._topics.receipt(chat_id, parcel, shown) if self._topics is not None else None
        if receipt is None:
            return
        receipt = receipt.model_copy(update={"reply_to": asked_at})
        if left is not None:
            receipt = receipt.model_copy(update={"edit": left.message_id, "edit_picture": left.picture})
        await self.put(chat_id, receipt, once=f"where:{ref}:{shown.message_id}" if ref else "")

    async def _keep_pace(self, chat_id: str) -> None:
        """Wait until this chat may be edited again."""
        wait = self._pace.get(chat_id, 0.0) - asyncio.get_running_loop().time()
        if wait > 0:
            await asyncio.sleep(wait)


def _part_name(name: str, number: int) -> str:
    """What a message before the one called ``name`` is called; one before a question's card is a card of it, too."""
    if name.startswith("question:"):
        return f"{name}{'' if '@' in name else '@'}~{number}"
    return f"part:{name}~{number}" if name else ""


def _too_large(error: TelegramError) -> bool:
    """413 comes as if it were the network's fault; sent again it would be as large."""
    return "entity too large" in error.message.lower()


def _seconds(error: RetryAfter) -> float:
    after = error.retry_after
    return after.total_seconds() if isinstance(after, timedelta) else float(after)


def _from_now(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)
