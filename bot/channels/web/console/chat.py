"""The console's chat: the same commands and cards as in Telegram, in a private chat of each person.

What is written and tapped goes through ``Conversation``, what happens comes through ``Feed``; this is the channel
between them and a page.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Annotated
from urllib.parse import quote

import structlog
from aiohttp import hdrs, web
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bot.app.request_body import body_of
from bot.app.server_names import CONSOLE as PATH
from bot.app.server_names import ServerNames
from bot.channels.chat import manual
from bot.channels.chat.conversation import Conversation
from bot.channels.chat.feed import Feed
from bot.channels.chat.texts import texts
from bot.channels.chat.turn import Incoming, Outgoing, Person, Said
from bot.channels.web.api.events import EventStreams
from bot.channels.web.callers import forged, refusal_of_page, secret_of
from bot.channels.web.console.chat_outlet import ConsoleOutlet, StoredCard, mark_of, type_of
from bot.channels.web.console.texts import console_texts
from bot.channels.web.console.visit import Pages, Shown, Visit
from bot.channels.web.problems import problem, problem_of_input
from bot.desk.actors import Actor, ChatRef, MessageRef
from bot.desk.context import CONSOLE
from bot.desk.desk import Desk
from storage.chats import ChatMessageRow
from storage.events import Events

log = structlog.get_logger(__name__)

chat = Pages("chat")
CHAT = PATH + "/chat"
MOST_SHOWN = 50  # messages
MOST_TEXT = 10_000  # characters
MOST_BODY = 64 * 1024
AGAIN = 2.0  # seconds until a loop that failed goes on

Number = Annotated[int, Field(ge=1, lt=2**53)]


class _Written(BaseModel):
    model_config = ConfigDict(extra="forbid")
    text: Annotated[str, Field(min_length=1, max_length=MOST_TEXT)]
    reply_to: Number | None = None


class _Tapped(BaseModel):
    model_config = ConfigDict(extra="forbid")
    message: Number
    action: Annotated[str, Field(min_length=1, max_length=200)]


@dataclass(frozen=True, slots=True)
class PageMessage:
    """A message on the page. ``pictures``: their paths. ``documents``: their paths and names."""

    id: int
    own: bool
    card: StoredCard
    pictures: tuple[str, ...]
    documents: tuple[tuple[str, str], ...]


class ConsoleChat:
    """The channel of the console. Each person has one chat, which nobody else sees."""

    def __init__(self, desk: Desk, names: ServerNames, *, heartbeat: float) -> None:
        self._desk = desk
        self._names = names
        self._outlet = ConsoleOutlet(desk)
        self._feed = Feed(desk, self._outlet, clock=desk.context.db.now)
        self._conversation = Conversation(desk, clock=desk.context.db.now, show=self._say)
        self._streams = EventStreams(desk, heartbeat=heartbeat)

    def add_to(self, app: web.Application) -> None:
        """Serve the chat in this application, for as long as it runs."""
        app[KEY] = self
        app.router.add_post(CHAT, self._as_person(self._write))
        app.router.add_post(f"{CHAT}/tap", self._as_person(self._tap))
        app.router.add_get(f"{CHAT}/events", self._as_person(self._follow))
        app.router.add_get(CHAT + "/{message:[0-9]{1,15}}/{number:[0-9]{1,2}}", self._as_person(self._file))
        app.cleanup_ctx.append(self._running)
        app.on_shutdown.append(self._streams.end)

    async def _running(self, _: web.Application) -> AsyncIterator[None]:
        await Events(self._desk.context.db).begin(CONSOLE)  # not with what happened before there was a chat
        tasks = [
            asyncio.create_task(self._forever(loop), name=f"console-{loop.__qualname__}")
            for loop in (self._feed.run, self._outlet.run)
        ]
        yield
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._outlet.close()

    @staticmethod
    async def _forever(loop: Callable[[], Awaitable[None]]) -> None:
        """Run a loop, and start it again after an error, which is logged."""
        while True:
            try:
                await loop()
            except Exception as error:
                log.exception("console_loop_failed", loop=loop.__qualname__, error=repr(error))
            await asyncio.sleep(AGAIN)

    # What is shown ----------------------------------------------------------------------------------------------------

    async def messages(self, actor: Actor) -> list[PageMessage]:
        """Return the last messages of a person's chat, the oldest first."""
        return [await self._shown(row) for row in await self._outlet.messages.last(actor.user_id, MOST_SHOWN)]

    async def _shown(self, row: ChatMessageRow) -> PageMessage:
        card, picture = await self._drawn(row)
        if picture is not None:
            return PageMessage(row.id, row.own, card, (f"{CHAT}/{row.id}/0?v={mark_of(picture)}",), ())
        paths = [f"{CHAT}/{row.id}/{number}?v={row.version}" for number in range(len(card.files))]
        pictures = tuple(path for path, file in zip(paths, card.files, strict=True) if file.kind == "picture")
        documents = tuple(
            (path, file.name) for path, file in zip(paths, card.files, strict=True) if file.kind != "picture"
        )
        return PageMessage(row.id, row.own, card, pictures, documents)

    async def _drawn(self, row: ChatMessageRow) -> tuple[StoredCard, bytes | None]:
        """Return the card of a message as it is now, and its picture if it is a live card that has one."""
        card = self._outlet.with_secrets(row.id, StoredCard.model_validate(row.card))
        live = await self._feed.live_card(row.ref.partition(":")[2], row.chat_id) if card.live else None
        if live is None:
            return card, None
        return StoredCard.of(live.card, live=True), live.card.picture

    async def _file(self, request: web.Request, actor: Actor) -> web.StreamResponse:
        """Give a picture or a document of a message in the person's own chat."""
        row = await self._outlet.messages.get(actor.user_id, int(request.match_info["message"]))
        number = int(request.match_info["number"])
        if row is None:
            raise web.HTTPNotFound
        card, data = await self._drawn(row)
        if data is None:
            files = await self._outlet.messages.files(actor.user_id, row.id)
            if number >= min(len(files), len(card.files)):
                # The page asked for a live card's picture, and the run has ended meanwhile: its card comes at once.
                raise web.HTTPNoContent if number == 0 and "v" in request.query else web.HTTPNotFound
            data = base64.b64decode(files[number])
        name = card.files[number].name if number < len(card.files) else ""
        headers = {hdrs.CONTENT_DISPOSITION: f"attachment; filename*=UTF-8''{quote(name, safe='')}"} if name else None
        kind = "application/octet-stream" if name else type_of(data)
        return web.Response(body=data, content_type=kind, headers=headers)

    async def _follow(self, request: web.Request, actor: Actor) -> web.StreamResponse:
        return await self._streams.answer(request, self._outlet.follow(actor.user_id))

    # What is written and tapped ---------------------------------------------------------------------------------------

    def _as_person(
        self, answer: Callable[[web.Request, Actor], Awaitable[web.StreamResponse]]
    ) -> Callable[..., Awaitable[web.StreamResponse]]:
        """Return the handler of requests of whoever is logged in; those that change something come from our pages."""

        async def handled(request: web.Request) -> web.StreamResponse:
            refusal = refusal_of_page(request, self._names)
            if refusal is None and request.method == hdrs.METH_POST:
                refusal = forged(request, self._names)
            if refusal is not None:
                return refusal
            actor = await self._desk.console.actor_of(secret_of(request))
            if actor is None:
                return web.json_response({}, status=HTTPStatus.UNAUTHORIZED)
            try:
                return await answer(request, actor)
            except ValidationError as error:
                return problem_of_input(error, "body", console_texts(actor.lang))

        return handled

    async def _write(self, request: web.Request, actor: Actor) -> web.StreamResponse:
        written = _Written.model_validate_json(await body_of(request, MOST_BODY))
        place, key = ChatRef(CONSOLE, actor.user_id), _key_of(request, actor)
        replied = await self._outlet.messages.get(actor.user_id, written.reply_to) if written.reply_to else None
        number = await self._outlet.messages.add(
            actor.user_id, StoredCard(title=written.text).stored(), own=True, once=key, reply_to=written.reply_to
        )
        self._outlet.changed(place)
        incoming = Incoming("text", _person(actor), place, key, written.text, message_id=str(number))
        if replied is not None:
            card, _ = await self._drawn(replied)
            incoming = replace(
                incoming, kind="reply", reply_to=_ref(place, replied.id, card), reply_question=card.question
            )
        return await self._answered(incoming, actor)

    async def _tap(self, request: web.Request, actor: Actor) -> web.StreamResponse:
        tapped = _Tapped.model_validate_json(await body_of(request, MOST_BODY))
        row = await self._outlet.messages.get(actor.user_id, tapped.message)
        if row is None:
            return problem(HTTPStatus.NOT_FOUND, "desk.not_found", console_texts(actor.lang).own("chat.gone"))
        card, _ = await self._drawn(row)
        place = ChatRef(CONSOLE, actor.user_id)
        asked = await self._outlet.messages.get(actor.user_id, row.reply_to) if row.reply_to else None
        incoming = Incoming(
            "button",
            _person(actor),
            place,
            _key_of(request, actor),
            action=tapped.action,
            message_id=str(row.id),
            reply_to=_ref(place, row.id, card),
            reply_question=card.question,
            subject=StoredCard.model_validate(asked.card).title if asked is not None else "",
            buttons=card.actions,
        )
        return await self._answered(incoming, actor)

    async def _answered(self, incoming: Incoming, actor: Actor) -> web.Response:
        """Have the conversation deal with it, and answer with what a tap says, and what now waits for the words."""
        try:
            said = await self._conversation.handle(incoming, actor)
        except Exception as error:
            log.exception("console_chat_failed", error=repr(error))
            said = Said(toast=texts(actor.lang).get("common.internal"), alert=True)
        asks = None
        for number, message in enumerate(said.messages):
            shown = await self._outlet.say(message, once=f"said:{incoming.key}:{number}")
            asks = shown if message.asks is not None else asks
        return web.json_response({"said": said.toast, "alert": said.alert, "asks": asks})

    async def _say(self, message: Outgoing) -> None:
        await self._outlet.say(message, once=message.once)


KEY = web.AppKey("console_chat", ConsoleChat)


def _person(actor: Actor) -> Person:
    return Person(actor.user_id, actor.name, actor.lang)


def _ref(place: ChatRef, number: int, card: StoredCard) -> MessageRef:
    return MessageRef(place, str(number), any(file.kind == "picture" for file in card.files))


def _key_of(request: web.Request, actor: Actor) -> str:
    """Return the name of a request, which is the same if a page sends it again."""
    given = request.headers.get("Idempotency-Key", "")[:100]
    return f"{CONSOLE}:{actor.user_id}:{given or secrets.token_hex(16)}"


@chat.page("/chat", "chat.html")
async def show_chat(visit: Visit) -> Shown:
    return {
        "messages": await visit.request.app[KEY].messages(visit.actor),
        "commands": manual.listed(visit.actor.role, visit.words.lang, plans=visit.desk.plans.ready),
        "most": MOST_TEXT,
    }
