"""Shows cards in the console's chats: they are stored, and open pages are told that there is something new.

A card is stored as plain JSON, with its files beside it, so that a list stays small.
"""

from __future__ import annotations

import asyncio
import base64
import zlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import structlog
from pydantic import BaseModel, ConfigDict

from agent_core.lru import keep_newest
from bot.channels.chat.cards import Button, Card, Line, ReplayOrder
from bot.channels.chat.history import media_card
from bot.channels.chat.outlet import LiveCard, Refs
from bot.channels.chat.texts import texts
from bot.channels.chat.turn import Outgoing
from bot.desk.actors import ChatRef, MessageRef
from bot.desk.context import CONSOLE
from bot.desk.desk import Desk
from bot.desk.views import EventBatches, EventView, RunView
from storage.chats import ChatMessages
from storage.failures import is_away

log = structlog.get_logger(__name__)

LIVE_SECONDS = 0.3  # at least so long between two looks of live cards
REMEMBERED = 500
SECRET_TIME = timedelta(minutes=10)  # as long as a log-in link works
WAITS = (1.0, 5.0, 30.0)  # after failures in a row
Draw = Callable[[str], Awaitable[LiveCard | None]]


@dataclass(slots=True)
class _Change:
    """What open pages of one chat wait for."""

    number: int
    happened: asyncio.Event


@dataclass(frozen=True, slots=True)
class _Secret:
    """The lines of a message with their secrets, which are shown until a time, and are stored nowhere."""

    lines: tuple[Line, ...]
    until: datetime


class ConsoleOutlet:
    """``bot.channels.chat.outlet.CardOutlet`` over the store of messages."""

    channel = CONSOLE

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._refs = Refs(desk)
        self.messages = ChatMessages(desk.context.db)
        self._one = asyncio.Lock()  # what shows a run is looked up and stored in one go
        self._live: dict[str, tuple[ChatRef, Draw]] = {}
        self._wake = asyncio.Event()
        self._changes: OrderedDict[str, _Change] = OrderedDict()
        self._secrets: OrderedDict[int, _Secret] = OrderedDict()
        self._making: set[asyncio.Task[None]] = set()

    # Cards ------------------------------------------------------------------------------------------------------------

    async def put(
        self, message: Outgoing, *, run: RunView | None = None, urgent: bool = False, soundless: bool = False
    ) -> None:
        """Store what the event log shows: the newest card under a name replaces the one before."""
        await self._put(message, first=False)

    async def say(self, message: Outgoing, *, once: str = "") -> int | None:
        """Store an answer to a person, and return its message's id; None if it shows nothing new."""
        return await self._put(message, first=message.shows.startswith("run:"), once=once)

    async def _put(self, message: Outgoing, *, first: bool, once: str = "") -> int | None:
        """Store a message. ``first``: it is a run's first card, older than any other that shows the run."""
        card, chat = message.card, message.chat
        if card.question and await self._refs.is_over(card.question):
            return None
        stored = StoredCard.of(card, live=first, hint=message.placeholder)
        async with self._one:
            known = await self._refs.get(message.shows) if message.shows else None
            known = known if known is not None and known.chat.key == chat.key else None
            if (known is not None and first) or (known is None and message.changes):
                return None
            place = known or message.replaces
            number, content = int(place.message_id) if place is not None else 0, stored.stored()
            if not (number and await self.messages.change(number, content, encoded(card), ref=message.shows)):
                number = await self.messages.add(
                    chat.chat_id,
                    content,
                    ref=message.shows,
                    once="" if message.shows else message.once or once,
                    reply_to=int(message.reply_to) if message.reply_to else None,
                    files=encoded(card),
                )
            if message.shows and (known is None or known.message_id != str(number)):
                await self._refs.set(message.shows, MessageRef(chat, str(number), card.picture is not None))
        if any(line.kind == "secret" for line in card.lines):
            secret = _Secret(card.lines, self._desk.context.db.now() + SECRET_TIME)
            keep_newest(self._secrets, number, secret, REMEMBERED)
        else:  # the message may show something else by now
            self._secrets.pop(number, None)
        if card.film is not None:
            self._make(chat, number, card.film)
        self.changed(chat)
        return number

    def with_secrets(self, number: int, card: StoredCard) -> StoredCard:
        """Return a message's card with its secrets, for as long as they are shown."""
        secret = self._secrets.get(number)
        if secret is None or self._desk.context.db.now() >= secret.until:
            self._secrets.pop(number, None)
            return card
        return card.model_copy(update={"lines": secret.lines})

    def _make(self, chat: ChatRef, number: int, order: ReplayOrder) -> None:
        """Make a replay, and show it in the place of its message."""

        async def made() -> None:
            try:
                card = await media_card(self._desk.history, order)
            except Exception as error:
                log.exception("console_replay_failed", run=order.run_id, error=repr(error))
                card = Card(texts(order.lang).get("replay.failed"))
            await self.messages.change(number, StoredCard.of(card).stored(), encoded(card))
            self.changed(chat)

        task = asyncio.create_task(made(), name=f"console-replay-{number}")
        self._making.add(task)
        task.add_done_callback(self._making.discard)

    # Live cards -------------------------------------------------------------------------------------------------------

    def show_live(self, chat: ChatRef, run_id: str, draw: Draw) -> None:
        """Have open pages look again; a live card is drawn when somebody looks, and is stored only once."""
        self._live[run_id] = (chat, draw)
        self._wake.set()

    async def run(self) -> None:
        """Tell pages of live cards for ever, and store the first card of runs that nobody has asked for in a chat."""
        while True:
            self._wake.clear()
            live, self._live = self._live, {}
            for run_id, (chat, draw) in live.items():
                shown = await self._desk.runs.card(run_id)
                if shown is None or shown.chat.key != chat.key:
                    drawn = await draw(chat.chat_id)
                    if drawn is not None:
                        await self._put(Outgoing(drawn.card, chat, shows=f"run:{run_id}"), first=True)
                self.changed(chat)
            await asyncio.sleep(LIVE_SECONDS)
            await self._wake.wait()

    async def close(self) -> None:
        """End replays that are being made."""
        for task in self._making:
            task.cancel()
        await asyncio.gather(*self._making, return_exceptions=True)

    # Open pages -------------------------------------------------------------------------------------------------------

    def changed(self, chat: ChatRef) -> None:
        """Tell the open pages of a chat to look again."""
        change = self._change(chat.chat_id)
        change.number += 1
        change.happened.set()
        change.happened = asyncio.Event()

    def _change(self, chat_id: str) -> _Change:
        change = self._changes.get(chat_id) or _Change(0, asyncio.Event())
        keep_newest(self._changes, chat_id, change, REMEMBERED)
        return change

    async def follow(self, chat_id: str) -> EventBatches:
        """Yield whenever something has changed in a chat; it never ends."""
        seen = self._change(chat_id).number
        while True:
            change = self._change(chat_id)
            if change.number == seen:
                await change.happened.wait()
                continue
            seen = change.number
            yield [EventView(seen, "", "chat", created_at=self._desk.context.db.now())]

    # The rest of an outlet --------------------------------------------------------------------------------------------

    def think(self, run_id: str, chat: ChatRef, text: str) -> bool:
        return False

    def thought_over(self, run_id: str) -> None:
        pass

    def shows_all(self, card: Card, *, captioned: bool) -> bool:
        return True

    def is_away(self, error: Exception) -> bool:
        return is_away(error)

    def wait_after(self, failures: int) -> float:
        return WAITS[min(failures, len(WAITS)) - 1]

    def safe(self, error: object) -> str:
        return str(error)


def mark_of(picture: bytes) -> int:
    """Return a number that differs for another picture, so that a page loads it anew."""
    return zlib.crc32(picture)


# Cards in the store ---------------------------------------------------------------------------------------------------


class StoredFile(BaseModel):
    """A file of a message, without its bytes. ``kind``: picture, or document to download. ``name``: of a document."""

    model_config = ConfigDict(frozen=True)

    kind: str
    name: str = ""


class StoredCard(BaseModel):
    """A card without its files and its secrets: the text of a secret line is "".

    live: the card of a run that is under way, which is drawn anew whenever somebody looks.
    hint: what an empty input for its answer shows, if the person's own words are asked for.
    """

    model_config = ConfigDict(frozen=True)

    title: str
    lines: tuple[Line, ...] = ()
    buttons: tuple[tuple[Button, ...], ...] = ()
    files: tuple[StoredFile, ...] = ()
    question: str = ""
    live: bool = False
    hint: str = ""

    @classmethod
    def of(cls, card: Card, *, live: bool = False, hint: str = "") -> StoredCard:
        """Return a card as it is stored."""
        files = tuple(file for file, _ in _files_of(card))
        return cls(
            title=card.title,
            lines=tuple(replace(line, text="") if line.kind == "secret" else line for line in card.lines),
            buttons=card.buttons,
            files=files,
            question=card.question,
            live=live,
            hint=hint,
        )

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions of the buttons."""
        return tuple(button.action for row in self.buttons for button in row)

    def stored(self) -> Mapping[str, Any]:
        return self.model_dump(mode="json", exclude_defaults=True)


def _files_of(card: Card) -> list[tuple[StoredFile, bytes]]:
    """Return the files of a card with their bytes, in the order in which they are shown."""
    pictures = [*card.album, *([card.picture] if card.picture else [])]
    if card.animation is not None:
        pictures.append(card.animation.data)
    files = [(StoredFile(kind="picture"), picture) for picture in pictures]
    if card.document is not None:
        files.append((StoredFile(kind="document", name=card.document.name), card.document.data))
    return files


def encoded(card: Card) -> Sequence[str]:
    """Return the files of a card as they are stored."""
    return [base64.b64encode(data).decode() for _, data in _files_of(card)]


def type_of(data: bytes) -> str:
    """Return the content type of a picture, by its first bytes: nothing else is shown as one."""
    kinds = {b"\xff\xd8\xff": "image/jpeg", b"\x89PNG": "image/png", b"GIF8": "image/gif"}
    return next((kind for begin, kind in kinds.items() if data.startswith(begin)), "application/octet-stream")
