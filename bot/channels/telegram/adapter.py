"""The Telegram channel: its lifecycle, and updates by polling or by webhook."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import urlencode

import structlog
from aiohttp import web
from telegram import Bot, Message, Update
from telegram.error import BadRequest, Conflict, InvalidToken, TelegramError

from agent_core.texts import language_of
from bot.app.request_body import body_of
from bot.channels.chat.cards import Card, plain
from bot.channels.chat.conversation import Conversation
from bot.channels.chat.feed import Feed
from bot.channels.chat.outlet import Refs
from bot.channels.chat.texts import Lang, texts
from bot.channels.chat.turn import Outgoing, Said, utc_now
from bot.channels.telegram import render, updates
from bot.channels.telegram.delivery import MessageDelivery
from bot.channels.telegram.files import ReplayMaker, TelegramFiles
from bot.channels.telegram.inbox import MOST, Inbox, UpdatesRequest, salvaged
from bot.channels.telegram.menu import Menu
from bot.channels.telegram.options import TelegramOptions
from bot.channels.telegram.outbox import Outbox
from bot.channels.telegram.outlet import Drafts, TelegramOutlet, topic_of
from bot.channels.telegram.render import cut
from bot.channels.telegram.request import BotRequest, RateLimitedLog, failure_of, introduce, public
from bot.channels.telegram.sending import Telegram
from bot.channels.telegram.topics import Topics
from bot.channels.telegram.updates import UnreadableUpdate
from bot.desk.actors import ChatRef, Role
from bot.desk.desk import Desk
from storage.chats import TopicTable
from storage.failures import is_away
from storage.messages import InboxTable, OutboxTable
from storage.repository import run_shielded

log = structlog.get_logger(__name__)

WEBHOOK_PATH = "/telegram/webhook"
SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105 - the header's name
EARLY = 0.5  # seconds; long polling answers later than this, unless there is an update
MAX_BODY = 1024 * 1024
DRAIN_SECONDS = 5.0
SHOWN_POLL = 0.05  # seconds
_WHY = {
    "silent": "Telegram did not answer in time.",
    "not_reached": "Telegram cannot be reached.",
    "refused": "Telegram does not know the token.",
    "no_api": "What answered is no Bot API, or refused the call.",
}


class TelegramAdapter:
    """The connection of the desk to Telegram.

    ``start`` returns at once and keeps trying until Telegram is reached; then ``ready`` is set. A token that Telegram
    refuses ends the channel: ``failed`` holds the error, and the rest of the product continues.
    """

    def __init__(
        self,
        desk: Desk,
        inbox: InboxTable,
        outbox: OutboxTable,
        options: TelegramOptions,
        *,
        topics: TopicTable | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        # These log the addresses that are called, with the token in them, at INFO and DEBUG.
        for name in ("httpx", "httpcore", "telegram"):
            logging.getLogger(name).setLevel(logging.WARNING)
        self.options = options
        self.route = options.route
        self.ready = asyncio.Event()
        self.failed: Exception | None = None
        self.trouble: TelegramError | None = None  # why Telegram was not reached at the last try
        self.tried = asyncio.Event()  # Telegram was reached, or not, at least once
        self.settled = asyncio.Event()  # the channel is ``ready``, or has ``failed``
        self._updates_request = UpdatesRequest(self.route, options.poll_seconds + 10)
        self.bot = Bot(
            options.token,
            base_url=options.base_url,
            base_file_url=options.base_file_url,
            request=BotRequest(self.route, options.read_seconds, pool_seconds=options.pool_seconds, connections=16),
            get_updates_request=self._updates_request,
        )
        self._conversation = Conversation(desk, clock=clock, files=TelegramFiles(self.bot, self.route), show=self._put)
        self._topics = Topics(topics, self.bot, options, no_right=self._no_right_to_topics, gone=self._topic_gone)
        telegram = Telegram(self.bot)
        self._outbox = Outbox(
            outbox,
            telegram,
            MessageDelivery(telegram, Refs(desk), options, self._topics),
            options,
            films=ReplayMaker(desk, self.bot),
            moved=self._chat_moved,
            given_up=self._not_shown,
        )
        gave_up = partial(self._apologize, key="common.internal")
        called_off = partial(self._apologize, key="common.called_off")
        self._inbox = Inbox(inbox, options, self._handle, gave_up, called_off)
        self._menu = Menu(self.bot, desk, options)
        self._desk = desk
        self._clock = clock
        self._drafts = Drafts(self.bot, options, wanted=self._streams, free=self._outbox.free)
        self._feed = Feed(desk, TelegramOutlet(self._outbox, options, self._drafts, clock), clock=clock)
        self._refusals = RateLimitedLog()
        self._task: asyncio.Task[None] | None = None
        self._intake: list[asyncio.Task[None]] = []
        self._is_ending = False

    # Lifecycle --------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="telegram")

    async def stop_intake(self) -> None:
        """Handle no more updates, and finish running handlers; what happens meanwhile is still shown."""
        self._is_ending = True
        for task in self._intake:
            task.cancel()
        await asyncio.gather(*self._intake, return_exceptions=True)
        await self._inbox.finish(DRAIN_SECONDS)

    async def show_rest(self, seconds: float) -> None:
        """Wait up to ``seconds`` until chats show what has happened so far. The rest follows at the next start."""
        if not self.ready.is_set():
            return
        try:
            async with asyncio.timeout(seconds):
                newest = await run_shielded(self._desk.newest_event())
                while self._feed.is_behind(newest) or not await run_shielded(self._outbox.is_empty()):  # noqa: ASYNC110 - of rows
                    await asyncio.sleep(SHOWN_POLL)
        except Exception as error:
            if not (isinstance(error, TimeoutError) or is_away(error)):
                raise
            log.info("telegram_not_all_shown", advice="The rest follows at the next start.")

    async def stop(self) -> None:
        """Stop the intake first, then the rest. Messages that are not sent stay in the outbox."""
        await self.stop_intake()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        await self.bot.shutdown()

    async def __aenter__(self) -> TelegramAdapter:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def add_routes(self, app: web.Application) -> None:
        """Serve the webhook in this application."""
        app.router.add_post(WEBHOOK_PATH, self.webhook)

    async def _run(self) -> None:
        try:
            await self._connect()
        except InvalidToken:
            self.failed = InvalidToken("Telegram does not know this token. Check PHONEDESK_TELEGRAM__TOKEN.")
            log.error("telegram_token_refused", advice="Check PHONEDESK_TELEGRAM__TOKEN.")
            self.tried.set()
            self.settled.set()
            return
        intake = [self._inbox.run] if self.options.webhook_url else [self._inbox.run, self._poll]
        async with asyncio.TaskGroup() as group:

            def begin(loop: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
                return group.create_task(self._forever(loop), name=f"telegram-{loop.__qualname__}")

            for loop in (self._outbox.run, self._feed.run, self._menu.run, self._drafts.run):
                begin(loop)
            if not self._is_ending:
                self._intake = [begin(loop) for loop in intake]
            self.ready.set()
            self.tried.set()
            self.settled.set()

    async def _forever(self, loop: Callable[[], Awaitable[None]]) -> None:
        """Run a loop, and start it again after an error, which is logged; its unfinished work is still in its store."""
        failures = 0
        while True:
            try:
                await loop()
            except Exception as error:
                failures += 1
                log.exception("telegram_loop_failed", loop=loop.__qualname__, error=self.options.safe(error))
            await asyncio.sleep(self.options.wait_after(max(1, failures)))

    async def _connect(self) -> None:
        """Announce the bot and how it wants updates, until Telegram has answered."""
        failures = 0
        while True:
            try:
                await introduce(self.bot)
                await self._introduce()
            except InvalidToken:
                raise
            except TelegramError as error:
                failures += 1
                wait = self.options.wait_after(failures)
                self._told(error, "telegram_not_reached", wait)
                self.trouble = error
                self.tried.set()
                await asyncio.sleep(wait)
            else:
                self.trouble = None
                self._conversation.bot_name = self.bot.username
                self._conversation.start_link = f"https://t.me/{self.bot.username}?start="
                log.info(
                    "telegram_ready", bot=self.bot.username, by="webhook" if self.options.webhook_url else "polling"
                )
                return

    def _told(self, error: TelegramError, event: str, wait: float) -> None:
        """Log an error in plain words; the library's own words are logged for debugging."""
        advice = self.route.advice
        if isinstance(error, Conflict):
            advice = "Another process polls with this token: stop it."
        url = self.options.base_url.removesuffix("/bot")
        log.warning(event, why=_WHY[failure_of(error)], url=url, again_in=wait, advice=advice)
        log.debug("telegram_error", error=self.options.safe(error))

    async def _introduce(self) -> None:
        if self.options.webhook_url:
            await self.bot.set_webhook(
                self.options.webhook_url,
                secret_token=self.options.webhook_secret,
                allowed_updates=updates.ALLOWED_UPDATES,
            )
        else:
            await self.bot.delete_webhook()

    # Updates in -------------------------------------------------------------------------------------------------------

    async def _poll(self) -> None:
        """Request updates, store them, and only then confirm them by requesting later ones.

        The answer is taken as plain data: one update that cannot be read, or parsed, must not hold up the others.
        """
        offset: int | None = None
        failures = 0
        while True:
            asked = asyncio.get_running_loop().time()
            try:
                answer = await self._get_updates(offset)
            except TelegramError as error:
                failures += 1
                wait = self.options.wait_after(failures)
                self._told(error, "telegram_poll_failed", wait)
                await asyncio.sleep(wait)
                continue
            if failures:
                log.info("telegram_polled_again", url=self.options.base_url.removesuffix("/bot"))
            failures = 0
            before = offset
            for raw in answer[:MOST] if isinstance(answer, list) else []:
                if await self._inbox.take(raw):
                    offset = raw["update_id"] + 1
            early = asyncio.get_running_loop().time() - asked < min(EARLY, self.options.poll_seconds)
            if offset == before and (answer or early):
                # No update in it can be confirmed, so it will come again; or the server does not wait for updates.
                await asyncio.sleep(self.options.wait_after(1))

    async def _get_updates(self, offset: int | None) -> Any:
        """Return Telegram's answer as plain data; ``Bot.get_updates`` would fail as a whole at one odd update."""
        asked = {"timeout": str(self.options.poll_seconds), "allowed_updates": json.dumps(updates.ALLOWED_UPDATES)}
        if offset is not None:
            asked["offset"] = str(offset)
        url = f"{self.options.base_url}{self.options.token}/getUpdates?{urlencode(asked)}"
        return await self._updates_request.post(url)

    async def webhook(self, request: web.Request) -> web.Response:
        """Handle ``POST /telegram/webhook``.

        Answers 200 once the update is stored, 403 for a wrong secret, 400 if the body is not an update, 413 if it is
        too large, 408 if it is too slow. Without the secret no body is read.
        """
        given = request.headers.get(SECRET_HEADER, "")
        if not hmac.compare_digest(given.encode("utf-8", "surrogateescape"), self.options.webhook_secret.encode()):
            await self._wrong_secret(public(request.remote))
            return web.Response(status=403)
        body = await body_of(request, MAX_BODY, self.options.body_seconds)
        try:
            text = body.decode("utf-8")
        except ValueError:
            return web.Response(status=400)
        try:
            raw = json.loads(text)
        except (ValueError, RecursionError):  # an update with a number is taken, or Telegram would send it for ever
            raw = next(iter(salvaged(text)), None)
        return web.Response(status=200 if await self._inbox.take(raw) else 400)

    async def _wrong_secret(self, address: str) -> None:
        """Log the first wrong secret at once, and later ones in one line per quarter of an hour to bound the log."""
        count = self._refusals.count(asyncio.get_running_loop().time())
        if count:
            log.warning("telegram_webhook_secret_wrong", remote=address, times=count)
            await self._desk.people.turned_away(updates.CHANNEL, "webhook", address, "secret")

    # Handling ---------------------------------------------------------------------------------------------------------

    async def _handle(self, raw: Mapping[str, Any], received_at: datetime) -> None:
        update = updates.understood(raw, self.bot)
        incoming = updates.read(update, bot_id=self.bot.id, bot_name=self.bot.username)
        said = Said()
        try:
            if update.message is not None:
                await self._note(update.message)
            if incoming is None:
                await self._write_down(update)
                await self._explain(update)
            else:
                phone = await self._topics.phone_at(incoming.chat)
                incoming = replace(incoming, phone=phone, received_at=received_at)
                said = await self._conversation.handle(incoming)
                self._menu.look()  # a person who paired, or got another role, sees their commands
                for number, message in enumerate(said.messages):
                    # If it is handled a second time, because a kill came before it was marked as done, it is not said
                    # twice.
                    await self._put(message, once=message.once or f"said:{update.update_id}:{number}")
        finally:
            # A tap is always answered, or its button would spin for a minute.
            if update.callback_query is not None:
                await self._toast(update.callback_query.id, said)

    async def _note(self, message: Message) -> None:
        """Record what a message says about its chat, whatever its text is."""
        if message.migrate_to_chat_id is not None:
            await self._chat_moved(str(message.chat.id), str(message.migrate_to_chat_id))
        elif message.migrate_from_chat_id is not None:
            await self._chat_moved(str(message.migrate_from_chat_id), str(message.chat.id))
        await self._topics.saw(message)

    async def _chat_moved(self, old_id: str, new_id: str) -> None:
        """Move a chat to its new id.

        This is called several times, by our messages and by Telegram's; it takes effect once.
        """
        shown = await self._desk.chat_moved(updates.CHANNEL, old_id, new_id)
        await self._outbox.move(old_id, new_id)
        await self._feed.again(shown)

    async def _topic_gone(self, chat_id: str, thread_id: str) -> None:
        """Show questions and live cards of the topic again elsewhere."""
        await self._feed.again(await self._desk.topic_gone(updates.CHANNEL, chat_id, thread_id))

    async def _not_shown(self, ref: str) -> None:
        await self._feed.not_shown(ref)

    async def _no_right_to_topics(self, chat_id: str, title: str) -> None:
        """Put one hint for each owner into their private chat."""
        for owner in await self._desk.people.members(updates.CHANNEL):
            if owner.role is Role.OWNER:
                words = texts(owner.lang)
                card = plain(words.get("topics.no_right", chat=title or chat_id), words.get("topics.how"))
                await self._outbox.put(owner.user_id, render.outgoing(card), once=f"topics:{chat_id}:{owner.user_id}")

    async def _write_down(self, update: Update) -> None:
        """Record an attempt to use a way that commands do not accept."""
        tried = updates.refused(update, bot_name=self.bot.username)
        if tried is not None:
            person, what = tried
            await self._desk.people.turned_away(updates.CHANNEL, person.user_id, person.name, what)

    async def _explain(self, update: Update) -> None:
        """Explain what would work to people who tried to reach us in vain; once per message, or per chat and day.

        Strangers get no explanation: they have had their one line, or get it when they write.
        """
        edited = updates.edited_command(update, bot_name=self.bot.username)
        if edited is not None:
            actor = await self._desk.people.actor(updates.CHANNEL, edited.person.user_id)
            if actor is not None:
                card = plain(texts(actor.lang).get("common.edited"))
                once = f"edited:{edited.chat.chat_id}:{edited.message_id}"
                await self._put(Outgoing(card, edited.chat, edited.message_id), once=once)
        nameless = updates.nameless(update, bot_id=self.bot.id, bot_name=self.bot.username)
        if nameless is not None:
            chat = updates.chat_ref(nameless)
            card = plain(texts(await self._house_lang()).get("access.nameless"))
            once = f"nameless:{chat.chat_id}:{self._clock():%Y-%m-%d}"
            await self._put(Outgoing(card, chat, str(nameless.message_id)), once=once)

    async def _house_lang(self) -> Lang:
        """Return the language of the first owner, for a chat whose people we do not know."""
        owners = [member for member in await self._desk.people.members(updates.CHANNEL) if member.role is Role.OWNER]
        return owners[0].lang if owners else language_of("")

    async def _streams(self, chat: ChatRef) -> bool:
        """Tell whether the person of a private chat, which has their number, wants to see thoughts as they come."""
        actor = await self._desk.people.actor(updates.CHANNEL, chat.chat_id)
        return actor is not None and actor.streams

    async def _put(self, message: Outgoing, *, once: str = "") -> None:
        chat = message.chat
        kind, _, name = message.shows.partition(":")
        run = await self._desk.runs.get(name) if kind == "run" and chat.kind == "group" else None
        outgoing = render.outgoing(
            message.card,
            thread_id=chat.thread_id,
            reply_to=message.reply_to,
            kind=chat.kind,
            topic=topic_of(run) if run is not None else None,
        )
        if message.asks is not None:
            outgoing = render.asking(outgoing, message.asks, message.placeholder)
        if message.replaces is not None:
            change = {"edit": int(message.replaces.message_id), "edit_picture": message.replaces.picture}
            outgoing = outgoing.model_copy(update=change)
        await self._outbox.put(
            chat.chat_id,
            outgoing,
            ref=message.shows,
            once="" if message.shows else once,
            begins=kind == "run",
        )

    async def _toast(self, query_id: str, said: Said) -> None:
        try:
            text = cut(said.toast, render.MAX_TOAST) or None
            await self.bot.answer_callback_query(query_id, text, show_alert=said.alert)
        except BadRequest as error:  # too old: the person has seen it spin and stop
            log.info("telegram_tap_too_old", error=self.options.safe(error))
        except TelegramError as error:
            log.warning("telegram_tap_not_answered", error=self.options.safe(error))

    async def _apologize(self, raw: Mapping[str, Any], *, key: str) -> None:
        """Tell the person that their message was not dealt with. ``key``: of the text that says why."""
        try:
            incoming = updates.read(updates.understood(raw, self.bot), bot_id=self.bot.id, bot_name=self.bot.username)
        except UnreadableUpdate as error:
            log.warning("telegram_update_unreadable", error=self.options.safe(error))
            return
        if incoming is not None:
            words = texts(language_of(incoming.person.lang))
            await self._put(Outgoing(Card(words.get(key)), incoming.chat, incoming.message_id))
