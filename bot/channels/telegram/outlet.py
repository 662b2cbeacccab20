"""Shows cards in Telegram: draws them, and puts them into the outbox; and a model's thinking while it thinks.

Thinking is shown as a draft in the private chat of the run: a preview that Telegram shows for half a minute and then
drops; anything that a person should keep is in the card. So a draft is not a row of the outbox: sent late, or again
after a restart, it would show an old thought, and a queue that retries it would hold up important messages. It is sent
now or not at all: the newest words of a run win, nothing waits for it, and a chat in which Telegram refuses it gets no
more of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import zlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

import structlog
from telegram import Bot
from telegram.error import BadRequest, Forbidden, InvalidToken, RetryAfter, TelegramError

from agent_core.lru import keep_newest
from bot.channels.chat.cards import Card
from bot.channels.chat.outlet import LiveCard
from bot.channels.chat.texts import texts
from bot.channels.chat.turn import Outgoing
from bot.channels.telegram import render
from bot.channels.telegram.options import TelegramOptions
from bot.channels.telegram.outbox import Outbox
from bot.channels.telegram.outgoing import OutgoingMessage, Topic
from bot.channels.telegram.render import CUT, MAX_TEXT, clean, units
from bot.channels.telegram.request import is_away, pause_of
from bot.channels.telegram.updates import CHANNEL
from bot.desk.actors import ChatRef
from bot.desk.views import RunView

log = structlog.get_logger(__name__)


class TelegramOutlet:
    """``bot.channels.chat.outlet.CardOutlet`` over the outbox."""

    channel = CHANNEL

    def __init__(self, outbox: Outbox, options: TelegramOptions, drafts: Drafts, clock: Callable[[], datetime]) -> None:
        self._outbox = outbox
        self._options = options
        self._drafts = drafts
        self._clock = clock

    async def put(
        self, message: Outgoing, *, run: RunView | None = None, urgent: bool = False, soundless: bool = False
    ) -> None:
        chat, topic = message.chat, topic_of(run) if run is not None else None
        if message.changes and not await self._outbox.shows(chat.chat_id, message.shows):
            return
        drawn = render.outgoing(
            message.card, thread_id=chat.thread_id, kind=chat.kind, reply_to=message.reply_to, topic=topic
        )
        drawn = self._hushed(drawn, urgent=urgent, soundless=soundless)
        await self._outbox.put(chat.chat_id, drawn, ref=message.shows, once="" if message.shows else message.once)

    def show_live(self, chat: ChatRef, run_id: str, draw: Callable[[str], Awaitable[LiveCard | None]]) -> None:
        async def drawn(chat_id: str) -> OutgoingMessage | None:
            live = await draw(chat_id)
            if live is None or live.run.chat is None:
                return None
            place = live.run.chat
            message = render.outgoing(
                live.card, thread_id=place.thread_id, kind=place.kind, topic=topic_of(live.run), in_one=True
            )
            return self._hushed(message, soundless=live.run.watch)

        self._outbox.show(chat.chat_id, f"run:{run_id}", drawn)

    def _hushed(self, message: OutgoingMessage, *, soundless: bool, urgent: bool = False) -> OutgoingMessage:
        """Return the message, without a sound if it is to make none, or if it is not urgent and the hours are quiet."""
        silent = soundless or (not urgent and self._options.is_quiet(self._clock()))
        return message.model_copy(update={"silent": True}) if silent else message

    def think(self, run_id: str, chat: ChatRef, text: str) -> bool:
        return self._drafts.think(run_id, chat, text)

    def thought_over(self, run_id: str) -> None:
        self._drafts.over(run_id)

    def shows_all(self, card: Card, *, captioned: bool) -> bool:
        return render.fits(card, captioned=captioned)

    def is_away(self, error: Exception) -> bool:
        return is_away(error)

    def wait_after(self, failures: int) -> float:
        return self._options.wait_after(failures)

    def safe(self, error: object) -> str:
        return self._options.safe(error)


def topic_of(run: RunView) -> Topic | None:
    """Return the phone whose topic a run is shown in; None while it has no phone."""
    if not run.serial:
        return None
    return Topic(serial=run.serial, name=run.phone or run.serial, receipt=texts(run.lang).get("topics.receipt"))


# Drafts ---------------------------------------------------------------------------------------------------------------

DRAFT_SHOWN_SECONDS = 25.0  # Telegram drops a draft after 30
DRAFT_SEND_SECONDS = 5.0  # by then the thought is old
DRAFT_REFUSED_SECONDS = 3600.0  # how long a chat that refused gets no drafts
DRAFTS_REMEMBERED = 500
DRAFT_MARK = "💭 "


@dataclass(frozen=True, slots=True)
class _Thought:
    chat: ChatRef
    text: str


class Drafts:
    """The drafts in private chats.

    wanted: tells whether the person of a private chat wants to see thoughts.
    free: tells whether nothing is being sent to the chat, and Telegram has not asked for a pause there.
    """

    def __init__(
        self,
        bot: Bot,
        options: TelegramOptions,
        *,
        wanted: Callable[[ChatRef], Awaitable[bool]],
        free: Callable[[str], bool],
    ) -> None:
        self._bot = bot
        self._options = options
        self._wanted = wanted
        self._free = free
        self._thoughts: dict[str, _Thought] = {}  # run → its newest words that are not sent
        self._shown: OrderedDict[str, float] = OrderedDict()  # run → loop time at which its draft was sent
        self._next: OrderedDict[str, float] = OrderedDict()  # chat → loop time before which it gets no draft
        self._off: OrderedDict[str, None] = OrderedDict()  # runs without drafts from now on
        self._busy: set[str] = set()  # chats to which one is being sent
        self._wake = asyncio.Event()

    def think(self, run_id: str, chat: ChatRef, text: str) -> bool:
        """Show these words soon.

        Returns False if the run has no draft in view, so that its card has to show the thought.
        """
        if chat.kind != "private" or run_id in self._off or not clean(text):
            return False
        self._thoughts[run_id] = _Thought(chat, text)
        self._wake.set()
        return self.shown(run_id)

    def shown(self, run_id: str) -> bool:
        """Tell whether a draft of the run is visible now."""
        return asyncio.get_running_loop().time() - self._shown.get(run_id, float("-inf")) < DRAFT_SHOWN_SECONDS

    def over(self, run_id: str) -> None:
        """End the thought: nothing more of it is sent."""
        self._thoughts.pop(run_id, None)
        self._shown.pop(run_id, None)

    async def run(self) -> None:
        """Send drafts for ever."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._wake.clear()
                for run_id, thought in list(self._thoughts.items()):
                    if self._ready(thought.chat.chat_id):
                        del self._thoughts[run_id]
                        self._busy.add(thought.chat.chat_id)
                        group.create_task(self._show(run_id, thought))
                await self._wait()

    def _ready(self, chat_id: str) -> bool:
        now = asyncio.get_running_loop().time()
        return chat_id not in self._busy and now >= self._next.get(chat_id, 0.0) and self._free(chat_id)

    async def _wait(self) -> None:
        """Wait until there is something new; while a thought waits for its chat, look again soon."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._options.edit_private / 4 if self._thoughts else None):
                await self._wake.wait()

    async def _show(self, run_id: str, thought: _Thought) -> None:
        chat_id = thought.chat.chat_id
        wait = self._options.edit_private
        try:
            if await self._wanted(thought.chat):
                wait = await self._send(run_id, thought)
            else:
                self._shown.pop(run_id, None)
        except Exception as error:  # a thought that is not shown is no reason to end anything
            log.exception("telegram_draft_failed", chat=chat_id, error=self._options.safe(error))
        finally:
            self._busy.discard(chat_id)
            keep_newest(self._next, chat_id, asyncio.get_running_loop().time() + wait, DRAFTS_REMEMBERED)

    async def _send(self, run_id: str, thought: _Thought) -> float:
        """Send one draft; return the seconds for which this chat gets no other."""
        chat, pause = thought.chat, self._options.edit_private
        try:
            async with asyncio.timeout(DRAFT_SEND_SECONDS):
                await self._bot.send_message_draft(
                    int(chat.chat_id),
                    draft_id(run_id),
                    draft_text(thought.text),
                    message_thread_id=int(chat.thread_id) if chat.thread_id else None,
                )
        except RetryAfter as error:
            self._turn_off(run_id, chat, error)
            return max(pause, pause_of(error))
        except (BadRequest, Forbidden, InvalidToken) as error:  # not here, or not by this server: an unknown method
            self._turn_off(run_id, chat, error)
            return DRAFT_REFUSED_SECONDS
        except (TelegramError, TimeoutError) as error:  # the network: the next words may get through
            log.info("telegram_draft_lost", chat=chat.chat_id, error=self._options.safe(error))
            self._shown.pop(run_id, None)
        else:
            keep_newest(self._shown, run_id, asyncio.get_running_loop().time(), DRAFTS_REMEMBERED)
        return pause

    def _turn_off(self, run_id: str, chat: ChatRef, error: TelegramError) -> None:
        log.info("telegram_drafts_off", chat=chat.chat_id, run=run_id, error=self._options.safe(error))
        keep_newest(self._off, run_id, None, DRAFTS_REMEMBERED)
        self.over(run_id)


def draft_id(run_id: str) -> int:
    """Return the number of a run's draft, which changes in place; never 0."""
    return zlib.crc32(run_id.encode()) % (2**31 - 1) + 1


def draft_text(thinking: str) -> str:
    """Return the thought, or its newest words if it is too long for a message.

    Plain text, because half a thought is not valid HTML.
    """
    text = DRAFT_MARK + clean(thinking)
    if units(text) <= MAX_TEXT:
        return text
    room = MAX_TEXT - units(DRAFT_MARK + CUT)
    return DRAFT_MARK + CUT + clean(thinking).encode("utf-16-le")[-2 * room :].decode("utf-16-le", "ignore")
