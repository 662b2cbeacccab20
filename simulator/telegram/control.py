"""The people's side over HTTP, under ``/control/``, for other processes (the demo, acceptance tests)."""

from __future__ import annotations

from typing import Any, TypeVar

from aiohttp import web
from pydantic import Base64Bytes, BaseModel, ConfigDict, ValidationError

from simulator.telegram.people import FakeUser, transcript
from simulator.telegram.world import Chat, Json, Message, World


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class NewUser(_Body):
    id: int
    name: str = "Person"
    lang: str = "en"


class Written(_Body):
    """``chat``: a group's id; without it the person's private chat."""

    user: int
    text: str
    chat: int | None = None
    reply_to: int | None = None


class Filed(_Body):
    """A document: ``data`` in Base64."""

    user: int
    name: str
    data: Base64Bytes
    caption: str = ""
    chat: int | None = None


class Tapped(_Body):
    user: int
    message_id: int
    button: str  # label, a part of it, or data
    chat: int | None = None


class Limited(_Body):
    chat: int
    times: int = 1
    retry_after: int = 1


class ByUser(_Body):
    user: int


B = TypeVar("B", bound=BaseModel)


def message_json(message: Message) -> Json:
    """Return a message as a person sees it. Pictures are fetched from ``picture``."""
    file = message.content.file
    return {
        "id": message.id,
        "from_bot": message.from_bot,
        "by": message.sender.name,
        "text": message.text,
        "caption": message.caption,
        "media": message.content.media,
        "picture": f"/control/files/{file.file_id}" if file else None,
        "buttons": [
            [{"text": b.text, "data": b.data, "style": b.style} for b in row] for row in message.content.buttons
        ],
        "reply_to": message.reply_to.id if message.reply_to else None,
        "edits": [{"at": edit.at, "words": edit.content.text or edit.content.caption} for edit in message.edits],
    }


class Control:
    """The routes; ``users`` is shared with the object API."""

    def __init__(self, world: World, users: dict[int, FakeUser]) -> None:
        self.world = world
        self.users = users

    def add_to(self, app: web.Application) -> None:
        app.router.add_post("/control/users", self.new_user)
        app.router.add_post("/control/send", self.send)
        app.router.add_post("/control/document", self.document)
        app.router.add_post("/control/tap", self.tap)
        app.router.add_post("/control/block", self.block)
        app.router.add_post("/control/limit", self.limit)
        app.router.add_get("/control/chats", self.chats)
        app.router.add_get("/control/chats/{chat}", self.chat)
        app.router.add_get("/control/chats/{chat}/text", self.text)
        app.router.add_get("/control/files/{file}", self.file)

    async def new_user(self, request: web.Request) -> web.Response:
        body = await _body(request, NewUser)
        self.users[body.id] = FakeUser(self.world, self.world.member(body.id, body.name, body.lang))
        return web.json_response({"id": body.id})

    async def send(self, request: web.Request) -> web.Response:
        body = await _body(request, Written)
        user = self._user(body.user)
        chat = self._chat(body.chat if body.chat is not None else body.user)
        reply_to = None if body.reply_to is None else _message(chat, body.reply_to)
        message = await user.send(body.text, chat=chat, reply_to=reply_to)
        return web.json_response(message_json(message))

    async def document(self, request: web.Request) -> web.Response:
        body = await _body(request, Filed)
        chat = self._chat(body.chat if body.chat is not None else body.user)
        message = await self._user(body.user).send_file(body.data, body.name, caption=body.caption, chat=chat)
        return web.json_response(message_json(message))

    async def tap(self, request: web.Request) -> web.Response:
        body = await _body(request, Tapped)
        message = _message(self._chat(body.chat if body.chat is not None else body.user), body.message_id)
        try:
            toast = await self._user(body.user).tap(message, body.button)
        except LookupError as error:
            raise web.HTTPNotFound(text=str(error)) from None
        except TimeoutError:
            raise web.HTTPGatewayTimeout(text="the bot has not answered the tap") from None
        return web.json_response({"text": toast.text, "alert": toast.alert})

    async def block(self, request: web.Request) -> web.Response:
        body = await _body(request, ByUser)
        await self._user(body.user).block()
        return web.json_response({})

    async def limit(self, request: web.Request) -> web.Response:
        body = await _body(request, Limited)
        self.world.limit_next(body.chat, body.times, body.retry_after)
        return web.json_response({})

    async def chats(self, request: web.Request) -> web.Response:
        chats = [{"id": chat.id, "type": chat.type, "title": chat.title} for chat in self.world.chats.values()]
        return web.json_response(chats)

    async def chat(self, request: web.Request) -> web.Response:
        chat = self._chat(int(request.match_info["chat"]))
        return web.json_response({**chat.json(), "messages": [message_json(message) for message in chat.messages]})

    async def text(self, request: web.Request) -> web.Response:
        return web.Response(text=transcript(self._chat(int(request.match_info["chat"]))) + "\n")

    async def file(self, request: web.Request) -> web.Response:
        file = self.world.files.get(request.match_info["file"])
        if file is None:
            raise web.HTTPNotFound
        return web.Response(body=file.data, content_type=file.mime or "application/octet-stream")

    def _user(self, user_id: int) -> FakeUser:
        if user_id not in self.users:
            raise web.HTTPNotFound(text=f"no user {user_id}")
        return self.users[user_id]

    def _chat(self, chat_id: int) -> Chat:
        if chat_id not in self.world.chats:
            raise web.HTTPNotFound(text=f"no chat {chat_id}")
        return self.world.chats[chat_id]


def _message(chat: Chat, message_id: int) -> Message:
    for message in chat.messages:
        if message.id == message_id:
            return message
    raise web.HTTPNotFound(text=f"no message {message_id} in chat {chat.id}")


async def _body(request: web.Request, model: type[B]) -> B:
    try:
        data: Any = await request.json()
        return model.model_validate(data)
    except (ValueError, ValidationError) as error:
        raise web.HTTPBadRequest(text=str(error)) from None
