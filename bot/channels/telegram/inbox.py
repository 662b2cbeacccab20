"""Takes updates in: stores them before they are confirmed, and handles them once, in order for each ordering key.

An update that cannot be parsed does not hold up the others. Updates with one ordering key are handled one after the
other, all others side by side. An ordering key belongs to one person in one chat: nobody waits for somebody else. Each
person has there

- ``stop``: Stop and Hold of a named run. They wait for nothing that takes time.
- ``start``: commands that begin or continue work, and Stop and Hold of current work: in the order they were given.
- ``answer``: taps on a question, replies to its cards.
- ``message``, ``callback_query``: everything else, which may look at a phone, read a file or make a replay.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any

import structlog
from telegram.error import TelegramError

from bot.channels.chat import commands
from bot.channels.telegram.options import TelegramOptions
from bot.channels.telegram.request import BotRequest, answer_of
from bot.channels.telegram.updates import BROKEN, UnreadableUpdate, number_of
from storage.messages import InboxRow, InboxTable
from storage.repository import run_shielded

KINDS = ("message", "edited_message", "callback_query")
STOPS = {"stop", "hold"}  # commands, and prefixes of buttons' data
STARTS = {"start", "run", "plan", "sweep", "resume", "go", "no"} | STOPS
ANSWERS = {"q", "own", "mine"}


def ordering_key(raw: Mapping[str, Any]) -> str:
    """Return the ordering key of an update: those with the same key are handled one after the other."""
    kind, value = _what(raw)
    if value is None:
        return "rest"
    message = value.get("message") if kind == "callback_query" else value
    return f"{_sort(kind, value)}:{_id(message, 'chat')}:{_id(value, 'from')}"


def stops(raw: Mapping[str, Any]) -> bool:
    """Tell whether a message or a tap wants work stopped or held."""
    kind, value = _what(raw)
    return value is not None and kind != "edited_message" and _verb(value)[0] in STOPS


def _what(raw: Mapping[str, Any]) -> tuple[str, Mapping[str, Any] | None]:
    return next(((kind, raw[kind]) for kind in KINDS if isinstance(raw.get(kind), Mapping)), ("", None))


def _sort(kind: str, value: Mapping[str, Any]) -> str:
    if kind == "edited_message":
        return kind
    verb, named = _verb(value)
    if verb in STOPS and named:
        return "stop"
    if verb in STARTS:
        return "start"
    if verb in ANSWERS or (kind == "message" and not verb and _is_reply(value)):
        return "answer"
    return kind


def _verb(value: Mapping[str, Any]) -> tuple[str, bool]:
    """Return the command, or the prefix of a button's data, and whether something follows; "" for other words."""
    data, text = value.get("data"), value.get("text")
    if isinstance(data, str):
        verb, _, rest = data.partition(":")
        return verb, bool(rest)
    command = commands.parse(text) if isinstance(text, str) else None
    return (command.name, bool(command.rest)) if isinstance(command, commands.Command) else ("", False)


def _is_reply(message: Mapping[str, Any]) -> bool:
    """Tell whether a message replies to a bot, without a file.

    In a topic every message replies to the topic's creation; only another reply counts.
    """
    answered = message.get("reply_to_message")
    if not isinstance(answered, Mapping) or "forum_topic_created" in answered or "document" in message:
        return False
    person = answered.get("from")
    return isinstance(person, Mapping) and person.get("is_bot") is True


def _id(value: object, key: str) -> object:
    part = value.get(key) if isinstance(value, Mapping) else None
    return part.get("id") if isinstance(part, Mapping) else ""


log = structlog.get_logger(__name__)

TRIES = 3
MOST_TAKEN = 5000  # updates in hand at once, including those that wait for others of their ordering key
LOOK_AGAIN = 5.0  # seconds, for updates that another process stored
Handle = Callable[[Mapping[str, Any], datetime], Awaitable[None]]


@dataclass(slots=True, eq=False)
class _Place:
    """An update's place among those of its ordering key.

    stop: it is a Stop or a Hold.
    over: it has taken effect.
    """

    task: asyncio.Task[Any] | None
    stop: bool = False
    over: bool = False
    called_off: bool = False


@dataclass(slots=True)
class _OrderedUpdates:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    places: list[_Place] = field(default_factory=list)  # in order

    def call_off(self, stop: _Place) -> None:
        """Cancel the updates before this Stop that have not taken effect."""
        for place in self.places[: self.places.index(stop)]:
            if place.task is not None and not place.stop and not place.over:
                place.called_off = True
                place.task.cancel()


class Inbox:
    """The inbox: it hands each stored update to ``handle``, with the time at which it came.

    If ``handle`` raises, the error is logged and it gets the update again, three times in all; then ``gave_up`` is
    called. After UnreadableUpdate the update is given up at once and silently.

    A handler may get an update again that a killed process had begun; its effects carry the update's number as a key,
    so that they happen once. An update that was begun and neither ended nor put back has ended its process: that counts
    as a try. Such updates are retried one at a time, so that others that merely ran beside it do not count.

    While one update is retried, the others of its ordering key wait. A Stop waits ``stop_patience`` seconds for its
    person's earlier messages; those without effect by then are cancelled, and ``called_off`` is called.
    """

    def __init__(
        self,
        store: InboxTable,
        options: TelegramOptions,
        handle: Handle,
        gave_up: Callable[[Mapping[str, Any]], Awaitable[None]],
        called_off: Callable[[Mapping[str, Any]], Awaitable[None]] | None = None,
    ) -> None:
        self._store = store
        self._options = options
        self._handle = handle
        self._gave_up = gave_up
        self._called_off = called_off
        self._ordered: dict[str, _OrderedUpdates] = {}
        self._alone = asyncio.Lock()  # for updates that were tried before
        self._taken: set[int] = set()
        self._over: set[int] = set()  # handled while the store is read: its rows may be older
        self._tasks: set[asyncio.Task[None]] = set()
        self._wake = asyncio.Event()

    async def take(self, raw: object) -> bool:
        """Store an update. Return False if it is not one. An update that is already stored is no error."""
        update_id = number_of(raw)
        if update_id is None:
            log.warning("telegram_update_without_number")
            return False
        try:
            text = json.dumps(raw)  # in ASCII: no database can store half a surrogate pair
        except RecursionError:
            log.warning("telegram_update_too_deep", update_id=update_id)
            text = json.dumps({"update_id": update_id})  # it is confirmed, or it would come for ever
        if await run_shielded(self._store.store(update_id, text)):
            self._wake.set()
        return True

    async def run(self) -> None:
        """Handle stored updates for ever. After a cancellation, ``finish`` ends the handlers that have begun."""
        while True:
            self._wake.clear()
            self._over.clear()
            while len(self._taken) < MOST_TAKEN:
                # Updates in hand are left out: a chat whose updates wait for each other must not hide the others.
                rows = await run_shielded(self._store.waiting(without=self._taken | self._over))
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
        """Wait for the handlers that are at work, then cancel the rest."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _deal_with(self, row: InboxRow) -> None:
        place = _Place(asyncio.current_task())
        try:
            await self._dealt_with(row, place)
        except asyncio.CancelledError:
            if not place.called_off:
                raise
            await self._call_off(row)
        except Exception as error:  # the store failed: anything not written comes again
            said = self._options.safe(f"{type(error).__name__}: {error}")
            log.exception("telegram_inbox_failed", update_id=row.update_id, error=said)
            await asyncio.sleep(self._options.wait_after(1))
        finally:
            self._taken.discard(row.update_id)
            self._over.add(row.update_id)
            self._wake.set()

    async def _dealt_with(self, row: InboxRow, place: _Place) -> None:
        try:
            raw = _read(row)
        except UnreadableUpdate as error:
            await self._store.begun(row.update_id)
            await self._unreadable(row, error)
            return
        if row.attempts >= TRIES:
            await self._put_aside(row, raw)
            return
        async with self._in_turn(row, raw, place):
            for tries in range(row.attempts + 1, TRIES + 1):
                if await self._is_over(row, raw, tries, place):
                    return
                if tries < TRIES:
                    await asyncio.sleep(self._options.wait_after(tries))

    async def _is_over(self, row: InboxRow, raw: Mapping[str, Any], tries: int, place: _Place) -> bool:
        """Try it once; return whether it is not to be tried again."""
        begun = False
        try:
            async with asyncio.timeout(self._options.handling_seconds):
                begun = True
                await self._store.begun(row.update_id)
                await self._handle(raw, row.received_at)
                place.over = True
            await self._store.done(row.update_id)
        except asyncio.CancelledError:
            if begun:
                await self._store.put_back(row.update_id)  # we are ending, which is not the update's fault
            raise
        except UnreadableUpdate as error:
            await self._unreadable(row, error)
        except Exception as error:
            said = self._options.safe(f"{type(error).__name__}: {error}")
            log.exception("telegram_update_failed", update_id=row.update_id, tries=tries, error=said)
            await self._store.failed(row.update_id, said, give_up=tries >= TRIES)
            if tries >= TRIES:
                await self._gave_up(raw)
            return tries >= TRIES
        return True

    async def _unreadable(self, row: InboxRow, error: UnreadableUpdate) -> None:
        said = self._options.safe(str(error))
        log.warning("telegram_update_unreadable", update_id=row.update_id, error=said)
        await self._store.failed(row.update_id, said, give_up=True)

    @contextlib.asynccontextmanager
    async def _in_turn(self, row: InboxRow, raw: Mapping[str, Any], place: _Place) -> AsyncIterator[None]:
        """Wait for the others of its ordering key.

        An update that may have ended a process runs alone among its kind, except a Stop.
        """
        name = ordering_key(raw)
        here = self._ordered.setdefault(name, _OrderedUpdates())
        place.stop = stops(raw)
        here.places.append(place)
        patience = None
        if place.stop:
            loop = asyncio.get_running_loop()
            patience = loop.call_later(self._options.stop_patience, here.call_off, place)
        try:
            async with here.lock:
                if patience is not None:
                    patience.cancel()
                async with self._alone if row.attempts and not place.stop else contextlib.nullcontext():
                    yield
        finally:
            if patience is not None:
                patience.cancel()
            here.places.remove(place)
            if not here.places:
                del self._ordered[name]

    async def _call_off(self, row: InboxRow) -> None:
        """Mark the row as called off before the person is informed."""
        log.info("telegram_update_called_off", update_id=row.update_id)
        await self._store.failed(row.update_id, "Called off: a Stop came after it.", give_up=True)
        if self._called_off is not None:
            await self._called_off(_read(row))

    async def _put_aside(self, row: InboxRow, raw: Mapping[str, Any]) -> None:
        """Give up an update that ended the process too often; the row is marked before anybody is informed."""
        said = f"The process ended {row.attempts} times while it was handled."
        log.error("telegram_update_put_aside", update_id=row.update_id, error=said)
        await self._store.failed(row.update_id, said, give_up=True)
        await self._gave_up(raw)


def _read(row: InboxRow) -> dict[str, Any]:
    try:
        raw = json.loads(row.raw)
    except (ValueError, RecursionError) as error:
        raise UnreadableUpdate(f"{type(error).__name__}: {error}") from error
    if not isinstance(raw, dict):
        raise UnreadableUpdate("an update must be an object")
    return raw


MOST = 100  # updates in one answer, as the Bot API says
SHOWN = 200  # characters that are kept of malformed JSON
# Telegram writes an update's number first. Inside a text the quotation marks would be escaped by backslashes.
_BEGINS = re.compile(r'\{\s*"update_id"\s*:\s*(\d{1,18})(?=[\s,}])')
_NOTHING = re.compile(r'\s*\{\s*"ok"\s*:\s*true\s*,\s*"result"\s*:\s*\[')


class UpdatesRequest(BotRequest):
    """A request whose answer is taken apart if it cannot be parsed as a whole."""

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, Any]:
        try:
            return answer_of(payload)
        except (ValueError, RecursionError) as error:
            text = payload.decode("utf-8", "replace")
            found = salvaged(text) if _NOTHING.match(text) else []
            if not found:
                raise TelegramError("Invalid server response") from error
            return {"ok": True, "result": found}


def salvaged(text: str) -> list[dict[str, Any]]:
    """Return the updates in malformed JSON, MOST at most; empty if no number is found.

    A broken one has its number, and the problem under ``BROKEN``.
    """
    begins = list(islice(_BEGINS.finditer(text), MOST + 1))
    ends = [*(begin.start() for begin in begins), len(text)][1:]
    return [_one(int(begin[1]), text[begin.start() : end]) for begin, end in zip(begins[:MOST], ends, strict=False)]


def _one(number: int, text: str) -> dict[str, Any]:
    try:
        update, _ = json.JSONDecoder().raw_decode(text)
    except RecursionError:
        return {"update_id": number, BROKEN: f"too deep: {text[:SHOWN]}"}
    except ValueError as error:
        return {"update_id": number, BROKEN: f"{error}: {text[:SHOWN]}"}
    return dict(update)
