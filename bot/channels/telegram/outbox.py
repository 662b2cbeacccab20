"""Sends messages: kept until Telegram has them, in order for each chat, no faster than Telegram allows.

There are two ways in. Messages that must arrive (answers, question cards, outcomes) are put into the store. The live
card is not: only its newest state matters, so it is drawn when it is sent and lost with the process; the next event of
its run draws it again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog
from pydantic import ValidationError
from telegram.error import BadRequest, ChatMigrated, Forbidden, InvalidToken, RetryAfter, TelegramError

from agent_core.lru import keep_newest
from bot.channels.telegram.delivery import Delivered, MessageDelivery
from bot.channels.telegram.files import ReplayMaker
from bot.channels.telegram.options import TelegramOptions
from bot.channels.telegram.outgoing import OutgoingMessage
from bot.channels.telegram.request import is_away, pause_of
from bot.channels.telegram.sending import Telegram
from storage.messages import OutboxRow, OutboxTable
from storage.repository import run_shielded

log = structlog.get_logger(__name__)

DRAIN_SECONDS = 3.0
LOOK_AGAIN = 5.0  # seconds, for messages that another process put in
SHUT_SECONDS = 60.0  # how long no live card is drawn for a chat that shuts us out
OWN_FAULTS = 5  # failures of a message while Telegram answers, before it goes without its picture, or is given up
MISTAKES = 3  # tries of a message that fails by a bug of ours
REMEMBERED = 1000  # names of messages sent once; older ones are in the store
OF_ITS_CHAT = ("thread_id", "reply_to", "edit", "edit_picture")  # of an outgoing message: useless in another chat
Draw = Callable[[str], Awaitable[OutgoingMessage | None]]  # draws for this chat


@dataclass(slots=True)
class _Tried:
    """This process's knowledge of an open row.

    faults: failures while Telegram did answer.
    mistakes: failures by a bug of ours.
    waits: for the database.
    made: the replay that was made for it.
    """

    faults: int = 0
    mistakes: int = 0
    waits: int = 0
    made: OutgoingMessage | None = None
    taken: Delivered | None = None  # Telegram has it: it is never sent again


class Outbox:
    """The sender of stored messages and live cards.

    films: makes a message with a replay into one that can be sent, while later messages continue.
    moved: called for a chat that continues under another id (old, new).
    given_up: called with the ref of a message that its chat refuses.
    """

    def __init__(
        self,
        store: OutboxTable,
        telegram: Telegram,
        delivery: MessageDelivery,
        options: TelegramOptions,
        *,
        films: ReplayMaker,
        moved: Callable[[str, str], Awaitable[None]],
        given_up: Callable[[str], Awaitable[None]],
    ) -> None:
        self._store = store
        self._films = films
        self._moved = moved
        self._given_up = given_up
        self._shut: dict[str, float] = {}  # chat → loop time before which no live card is drawn
        self._telegram = telegram
        self._delivery = delivery
        self._options = options
        self._live: OrderedDict[str, tuple[str, Draw]] = OrderedDict()  # ref → chat, how to draw it
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._developing: dict[int, asyncio.Task[None]] = {}  # by row
        self._ended_now: set[str] = set()  # chats whose work ended while the store was read: its rows are old
        self._quiet: dict[str, float] = {}  # chat → loop time before which nothing is sent
        self._failures: dict[str, int] = {}  # of live cards, in a row
        self._tried: OrderedDict[int, _Tried] = OrderedDict()  # by row
        self._said_once: OrderedDict[str, None] = OrderedDict()  # by this process; earlier ones are in the store
        self._wake = asyncio.Event()

    # In ---------------------------------------------------------------------------------------------------------------

    async def put(
        self, chat_id: str, outgoing: OutgoingMessage, *, ref: str = "", once: str = "", begins: bool = False
    ) -> None:
        """Keep a message until it is sent. Under a ``ref`` the newest wins, and edits the message that shows it.

        once: a name under which nothing is sent a second time.
        begins: this is the first look of ``ref``, older than whatever already shows it; an unsent live card follows it.
        """
        if begins and await self.shows(chat_id, ref):
            return
        live = self._live.get(ref) if begins else None
        if once:
            if once in self._said_once:
                return
            keep_newest(self._said_once, once, None, REMEMBERED)  # before asking the store: two may come at once
        try:
            if once and await self._store.is_said(once):
                return
            await self._keep(chat_id, outgoing, ref, once)
            if live is not None:
                self._live.setdefault(ref, live)
        except BaseException:
            self._said_once.pop(once, None)  # not said: another try must not find it done
            raise

    async def shows(self, chat_id: str, ref: str) -> bool:
        """Tell whether a message shows ``ref``, or waits to be sent."""
        return await self._delivery.known(chat_id, ref) is not None or await self._store.is_said(ref)

    async def _keep(self, chat_id: str, outgoing: OutgoingMessage, ref: str, once: str) -> None:
        self._live.pop(ref, None)
        name = ref or once
        *before, last = [outgoing] if await self._is_edit(chat_id, ref, outgoing) else outgoing.messages()
        for number, part in enumerate(before):
            await self._store.put(chat_id, part.payload(), ref=_part_name(name, number), replace=bool(name))
        await self._store.put(chat_id, last.payload(), ref=name, replace=bool(name))
        self._wake.set()

    async def _is_edit(self, chat_id: str, ref: str, outgoing: OutgoingMessage) -> bool:
        """Tell whether it replaces one message, and so must fit into it."""
        return (
            outgoing.edit is not None
            or not outgoing.whole
            or bool(ref and await self._delivery.known(chat_id, ref) is not None)
        )

    async def move(self, old_id: str, new_id: str) -> None:
        """Move waiting messages of a chat to its new id."""
        await self._store.move_chat(old_id, new_id)
        for ref, (chat_id, draw) in list(self._live.items()):
            if chat_id == old_id:
                self._live[ref] = (new_id, draw)
        self._wake.set()

    def show(self, chat_id: str, ref: str, draw: Draw) -> None:
        """Bring the live card ``ref`` up to date when the chat's pace allows. ``draw`` returns None for "no more"."""
        self._live[ref] = (chat_id, draw)
        self._wake.set()

    async def is_empty(self) -> bool:
        """Tell whether nothing is being sent, and nothing is due; a replay that is being made does not count."""
        return not (self._busy or self._live or await self._store.due(without=set(self._developing)))

    # Out --------------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Send messages for ever."""
        try:
            while True:
                self._wake.clear()
                self._ended_now.clear()
                looked = datetime.now(UTC)
                for row in await run_shielded(self._store.due(without=set(self._developing))):
                    if row.chat_key in self._ended_now or not self.free(row.chat_key):
                        continue
                    if row.payload.get("film") and self._of(row).made is None:
                        self._develop(row)
                    else:
                        self._begin(row.chat_key, self._send_stored(row))
                for ref, (chat_id, draw) in list(self._live.items()):
                    if self._is_shut(chat_id):
                        del self._live[ref]
                    elif self.free(chat_id, editing=True):
                        del self._live[ref]
                        self._begin(chat_id, self._send_live(chat_id, ref, draw))
                await self._wait(looked)
        finally:
            await self._finish()

    async def _finish(self) -> None:
        """Let current sends end: a send that is cut off would be repeated."""
        tasks, films = list(self._busy.values()), list(self._developing.values())
        for film in films:
            film.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=DRAIN_SECONDS)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, *films, return_exceptions=True)

    def free(self, chat_id: str, *, editing: bool = False) -> bool:
        """Tell whether nothing is being sent to this chat, and Telegram has not asked for a pause there.

        editing: and whether its pace allows an edit.
        """
        now = asyncio.get_running_loop().time()
        until = max(self._quiet.get(chat_id, 0.0), self._delivery.paced_until(chat_id) if editing else 0.0)
        return chat_id not in self._busy and now >= until

    def _is_shut(self, chat_id: str) -> bool:
        return self._shut.get(chat_id, 0.0) > asyncio.get_running_loop().time()

    def _begin(self, chat_id: str, work: Any) -> None:
        def done(task: asyncio.Task[None]) -> None:
            del self._busy[chat_id]
            self._ended(chat_id, task)

        task = self._busy[chat_id] = asyncio.create_task(work, name=f"telegram-send-{chat_id}")
        task.add_done_callback(done)

    def _develop(self, row: OutboxRow) -> None:
        """Make a row's replay beside everything else: later messages of its chat go first."""

        def done(task: asyncio.Task[None]) -> None:
            del self._developing[row.id]
            self._ended(row.chat_key, task)

        task = asyncio.create_task(self._make(row), name=f"telegram-film-{row.id}")
        self._developing[row.id] = task
        task.add_done_callback(done)
        self._wake.set()  # for the next message of this chat

    async def _make(self, row: OutboxRow) -> None:
        try:
            self._of(row).made = await self._films.develop(row.chat_key, OutgoingMessage.model_validate(row.payload))
        except ValidationError as error:
            await self._give_up(row, self._options.safe(error))

    def _ended(self, chat_id: str, task: asyncio.Task[None]) -> None:
        self._ended_now.add(chat_id)
        self._wake.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            # The store itself fails; the row is still there and comes again.
            log.error("telegram_outbox_failed", chat=chat_id, error=self._options.safe(error), exc_info=error)
            self._quiet[chat_id] = asyncio.get_running_loop().time() + self._options.wait_after(1)

    async def _wait(self, looked: datetime) -> None:
        """Wait until a message came in or was sent, or one is due that was not due at ``looked``."""
        loop_now = asyncio.get_running_loop().time()
        waits = [LOOK_AGAIN]
        due = await run_shielded(self._store.next_time(after=looked, without=set(self._developing)))
        if due is not None:
            waits.append(max(0.0, (due - datetime.now(UTC)).total_seconds()))
        times = [*self._quiet.values(), *(self._delivery.paced_until(chat_id) for chat_id, _ in self._live.values())]
        waits += [time - loop_now for time in times if time > loop_now]
        # Not wait_for: in Python 3.11 it can swallow a cancellation that meets the wake-up.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(waits) + 0.001):
                await self._wake.wait()

    def _of(self, row: OutboxRow) -> _Tried:
        tried = self._tried.setdefault(row.id, _Tried())
        while len(self._tried) > REMEMBERED:
            self._tried.popitem(last=False)
        return tried

    def _parcel(self, row: OutboxRow, tried: _Tried) -> OutgoingMessage:
        """Return the message to send for a row: its replay once made, or finally only words."""
        outgoing = OutgoingMessage.model_validate(row.payload)
        alone = tried.faults >= OWN_FAULTS
        if outgoing.film is not None:
            place = {name: getattr(outgoing, name) for name in OF_ITS_CHAT}
            made = self._films.failed(outgoing) if alone or tried.made is None else tried.made
            return made.model_copy(update=place)
        return (outgoing.words_alone() if alone else None) or outgoing

    async def _send_stored(self, row: OutboxRow) -> None:
        tried = self._of(row)
        try:
            if tried.taken is None:
                tried.taken = await self._delivery.send(row.chat_key, row.ref, self._parcel(row, tried))
            if tried.taken is not None:
                await self._write_down(row.chat_key, row.ref, tried.taken)
        except RetryAfter as error:
            await self._quiet_down(row.chat_key, error)
            at = _from_now(pause_of(error))
            await self._store.retry(row.id, at=at, error=self._options.safe(error), counts=False)
        except ChatMigrated as error:
            await self._has_moved(row.chat_key, str(error.new_chat_id))
        except (BadRequest, Forbidden, ValidationError) as error:
            self._shut_out(row.chat_key, error)
            await self._give_up(row, self._options.safe(error))
        except (TelegramError, InvalidToken) as error:  # the network, or Telegram itself
            await self._not_reached(row, error)
        except Exception as error:  # it must not hold up other messages of this chat
            said = self._options.safe(f"{type(error).__name__}: {error}")
            log.exception("telegram_message_failed", chat=row.chat_key, ref=row.ref, error=said)
            await self._went_wrong(row, tried, said, away=is_away(error))
        else:
            self._shut.pop(row.chat_key, None)
            await self._sent(row, tried)

    async def _sent(self, row: OutboxRow, tried: _Tried) -> None:
        """Mark the row as sent. If this fails, only the marking is repeated."""
        taken = tried.taken
        await self._store.sent(row.id, {"message_id": taken.shown.message_id} if taken is not None else None)
        self._tried.pop(row.id, None)

    async def _write_down(self, chat_id: str, ref: str, done: Delivered) -> None:
        receipt = await self._delivery.write_down(chat_id, ref, done)
        if receipt is not None:
            await self.put(chat_id, receipt, once=f"where:{ref or chat_id}:{done.shown.message_id}")

    async def _went_wrong(self, row: OutboxRow, tried: _Tried, said: str, *, away: bool) -> None:
        """Wait for the database; repeat a bug of ours ``MISTAKES`` times, however often the network failed before."""
        if away and not self._is_too_late(row):
            tried.waits += 1
            at = _from_now(self._options.wait_after(tried.waits))
            await self._store.retry(row.id, at=at, error=said, counts=False)
            return
        tried.mistakes += 1
        if tried.mistakes < MISTAKES:
            at = _from_now(self._options.wait_after(tried.mistakes))
            await self._store.retry(row.id, at=at, error=said, counts=False)
        elif tried.taken is not None:
            await self._sent(row, tried)  # it has arrived, so nobody else needs to see it
        else:
            await self._give_up(row, said)

    def _is_too_late(self, row: OutboxRow) -> bool:
        return datetime.now(UTC) - row.created_at > timedelta(seconds=self._options.give_up_seconds)

    async def _not_reached(self, row: OutboxRow, error: TelegramError | InvalidToken) -> None:
        said = self._options.safe(error)
        late = datetime.now(UTC) - row.created_at
        if _too_large(error):
            await self._give_up(row, said)
        elif self._is_too_late(row):
            await self._give_up(row, f"not sent for {late.total_seconds() / 3600:.0f} hours: {said}")
        elif await self._is_hopeless(row) and late > timedelta(seconds=self._options.own_fault_seconds):
            await self._give_up(row, f"Telegram answers, but not to this message: {said}")
        else:
            wait = self._options.wait_after(row.attempts + 1)
            log.warning("telegram_not_reached", chat=row.chat_key, error=said, again_in=wait)
            await self._store.retry(row.id, at=_from_now(wait), error=said)

    async def _is_hopeless(self, row: OutboxRow) -> bool:
        """Tell whether only this message failed too often while Telegram did answer, finally without its picture or
        replay.
        """
        if not await self._telegram.answers():
            return False
        tried = self._of(row)
        tried.faults += 1
        can_be_words = OutgoingMessage.model_validate(row.payload).words_alone() is not None
        return tried.faults >= (2 * OWN_FAULTS if can_be_words else OWN_FAULTS)

    async def _give_up(self, row: OutboxRow, why: str) -> None:
        self._tried.pop(row.id, None)
        log.error("telegram_message_given_up", chat=row.chat_key, ref=row.ref, error=why)
        await self._store.failed(row.id, why)
        if row.ref:
            await self._given_up(row.ref)

    def _shut_out(self, chat_id: str, error: Exception) -> None:
        """Draw no live cards for a while if we are blocked or thrown out: each would be refused."""
        if isinstance(error, Forbidden):
            self._shut[chat_id] = asyncio.get_running_loop().time() + SHUT_SECONDS

    async def _has_moved(self, old_id: str, new_id: str) -> None:
        log.info("telegram_group_moved", chat=old_id, new=new_id)
        await self._moved(old_id, new_id)

    async def _send_live(self, chat_id: str, ref: str, draw: Draw) -> None:
        try:
            outgoing = await draw(chat_id)
            done = await self._delivery.send(chat_id, ref, outgoing) if outgoing is not None else None
            if done is not None:
                await self._write_down(chat_id, ref, done)
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
        except Exception as error:  # the database is away, or a bug of ours: stored messages of the chat continue
            failures = self._failures[ref] = self._failures.get(ref, 0) + 1
            log.exception("telegram_card_failed", chat=chat_id, ref=ref, error=self._options.safe(error))
            self._delivery.wait_for(chat_id, self._options.wait_after(failures))
        self._live.setdefault(ref, (chat_id, draw))  # a newer state that came meanwhile stays

    async def _quiet_down(self, chat_id: str, error: RetryAfter) -> None:
        seconds = pause_of(error)
        log.warning("telegram_too_many_requests", chat=chat_id, retry_after=seconds)
        self._quiet[chat_id] = asyncio.get_running_loop().time() + seconds
        await self._store.delay_chat(chat_id, _from_now(seconds))


def _part_name(name: str, number: int) -> str:
    """Return the name of a message before the one called ``name``; before a question's card it names a card, too."""
    if name.startswith("question:"):
        return f"{name}{'' if '@' in name else '@'}~{number}"
    return f"part:{name}~{number}" if name else ""


def _too_large(error: TelegramError) -> bool:
    """Tell whether it is a 413, which comes like a network error; sent again it would be as large."""
    return "entity too large" in error.message.lower()


def _from_now(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)
