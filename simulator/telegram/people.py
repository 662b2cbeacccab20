"""The people in front of Telegram: their messages and taps, and their views."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from simulator.telegram.world import Chat, Content, Json, Member, Message, Topic, World, command_entities

T = TypeVar("T")
TIMEOUT = 30.0


ANONYMOUS_ADMIN = Member(id=1087968824, name="Group", is_bot=True, username="GroupAnonymousBot")
CHANNEL_BOT = Member(id=136817688, name="Channel", is_bot=True, username="Channel_Bot")
_FILE: Json = {"file_id": "M1", "file_unique_id": "m1", "file_size": 9}
_PICTURE: Json = {**_FILE, "width": 9, "height": 9}
MEDIA: dict[str, Any] = {
    "voice": {**_FILE, "duration": 1},
    "photo": [_PICTURE],
    "sticker": {**_PICTURE, "type": "regular", "is_animated": False, "is_video": False},
    "video": {**_PICTURE, "duration": 1},
    "location": {"latitude": 1.0, "longitude": 2.0},
}


@dataclass(frozen=True, slots=True)
class Toast:
    """The text that a tapped button showed: ``alert`` as a box to close, else as a brief line. Empty text: nothing."""

    text: str
    alert: bool = False


class FakeUser:
    """One person. Their private chat with the bot is ``chat``; groups are given by argument."""

    def __init__(self, world: World, member: Member) -> None:
        self.world = world
        self.member = member

    @property
    def id(self) -> int:
        return self.member.id

    @property
    def chat(self) -> Chat:
        return self.world.chats[self.member.id]

    async def send(
        self,
        text: str,
        *,
        chat: Chat | None = None,
        reply_to: Message | None = None,
        thread_id: int | None = None,
        forwarded: bool = False,
        as_chat: Chat | None = None,
    ) -> Message:
        """Write a message; the first one in a private chat starts it.

        ``as_chat``: in the name of the group itself (an anonymous admin), or of a channel; then Telegram's own bot
        takes the person's place.
        """
        where = chat or self.chat
        if where.type == "private":
            where.started, where.blocked = True, False
        content = Content(text).with_entities(command_entities(text))
        stand_in = ANONYMOUS_ADMIN if as_chat is where else CHANNEL_BOT
        by = self.member if as_chat is None else stand_in
        message = self.world.post(where, by, content, reply_to=reply_to, thread_id=thread_id)
        message.forwarded = forwarded
        message.service = {"sender_chat": as_chat.json()} if as_chat is not None else {}
        if self._reaches_bot(where, content, reply_to):
            self.world.push("message", message.json())
        return message

    async def send_media(
        self,
        kind: str,
        *,
        caption: str = "",
        chat: Chat | None = None,
        reply_to: Message | None = None,
        album: str = "",
    ) -> Message:
        """Send a message that is neither words nor a document: a kind of ``MEDIA``.

        Messages with the same name form an album.
        """
        where = chat or self.chat
        if where.type == "private":
            where.started, where.blocked = True, False
        content = Content(caption=caption).with_entities(command_entities(caption))
        message = self.world.post(where, self.member, content, reply_to=reply_to)
        message.service, message.media_group_id = {kind: MEDIA[kind]}, album
        if self._reaches_bot(where, content, reply_to):
            self.world.push("message", message.json())
        return message

    async def send_file(
        self,
        data: bytes,
        name: str,
        *,
        caption: str = "",
        mime: str = "application/octet-stream",
        chat: Chat | None = None,
        reply_to: Message | None = None,
        thread_id: int | None = None,
        forwarded: bool = False,
    ) -> Message:
        """Send a document. Its name is the sender's own: Telegram leaves it as it is, except for folders."""
        where = chat or self.chat
        if where.type == "private":
            where.started, where.blocked = True, False
        file = self.world.store(data, name.replace("\\", "/").rpartition("/")[2], mime=mime)
        content = Content(caption=caption, media="document", file=file).with_entities(command_entities(caption))
        message = self.world.post(where, self.member, content, reply_to=reply_to, thread_id=thread_id)
        message.forwarded = forwarded
        if self._reaches_bot(where, content, reply_to):
            self.world.push("message", message.json())
        return message

    def _reaches_bot(self, chat: Chat, content: Content, reply_to: Message | None) -> bool:
        """Tell whether the bot gets a message: in privacy mode, in groups, only commands that may be for it, and
        replies to it.

        The message must begin with a command as Telegram marks them: in Latin letters, with the half-wide slash.
        """
        if chat.kicked:
            return False
        if chat.type in {"private", "channel"} or chat.bot_admin or not self.world.privacy:
            return True
        if reply_to is not None and reply_to.sender.id == self.world.bot.id:
            return True
        if {"type": "bot_command", "offset": 0}.items() - dict(next(iter(content.entities), ())).items():
            return False
        _, _, target = (content.text or content.caption).split(maxsplit=1)[0].partition("@")
        return target.lower() in {"", self.world.bot.username.lower()}

    async def edit(self, message: Message, text: str) -> None:
        """Change one's own message."""
        self.world.edit(message, Content(text).with_entities(command_entities(text)))
        self.world.push("edited_message", message.json())

    async def tap(self, message: Message, button: str, *, timeout: float = TIMEOUT) -> Toast:  # noqa: ASYNC109 - as said
        """Tap the button with this label (or a part of it, or its data) and wait for the bot's answer to it.

        Raises TimeoutError if the bot never answers the callback query: the person would see it spin.
        """
        return await self._answered(*self.tapped(message, button), timeout=timeout)

    async def tap_stale(self, message: Message, data: str, *, timeout: float = TIMEOUT) -> Toast:  # noqa: ASYNC109 - as said
        """Tap a button that this person's app still shows, although the message may have changed: by its data."""
        shown = [button for edit in message.edits for row in edit.content.buttons for button in row]
        if data not in {button.data for button in shown}:
            raise LookupError(f"message {message.id} never had a button {data!r}")
        return await self._answered(*self._query(message, data), timeout=timeout)

    async def _answered(self, update: Json, answered: asyncio.Future[Json], *, timeout: float) -> Toast:  # noqa: ASYNC109
        self.world.push("callback_query", update)
        async with asyncio.timeout(timeout):
            answer = await answered
        return Toast(answer["text"], answer["alert"])

    def tapped(self, message: Message, button: str) -> tuple[Json, asyncio.Future[Json]]:
        """Return the callback query of a tap, not sent yet, and the future of its answer."""
        return self._query(message, message.button(button).data)

    def _query(self, message: Message, data: str) -> tuple[Json, asyncio.Future[Json]]:
        query_id = self.world.serial("query")
        answered: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self.world.toasts[query_id] = answered
        query = {
            "id": query_id,
            "from": self.member.json(),
            "message": message.json(),
            "chat_instance": str(message.chat.id),
            "data": data,
        }
        return query, answered

    async def block(self) -> None:
        self.chat.blocked = True
        self._member_change("member", "kicked")

    async def unblock(self) -> None:
        self.chat.blocked = False
        self._member_change("kicked", "member")

    # Topics, as who may manage them -----------------------------------------------------------------------------------

    def make_topic(self, chat: Chat, name: str) -> Topic:
        topic = self.world.topic(chat, name, self.member)
        self.world.push("message", chat.last.json())
        return topic

    def close_topic(self, chat: Chat, thread_id: int) -> None:
        chat.topics[thread_id].closed = True
        self.world.tell(chat, self.member, {"forum_topic_closed": {}}, thread_id=thread_id)

    def reopen_topic(self, chat: Chat, thread_id: int) -> None:
        chat.topics[thread_id].closed = False
        self.world.tell(chat, self.member, {"forum_topic_reopened": {}}, thread_id=thread_id)

    def _member_change(self, old: str, new: str) -> None:
        def status(name: str) -> Json:
            member: Json = {"status": name, "user": self.world.bot.json()}
            return member | {"until_date": 0} if name == "kicked" else member

        change = {
            "chat": self.chat.json(),
            "from": self.member.json(),
            "date": 1,
            "old_chat_member": status(old),
            "new_chat_member": status(new),
        }
        self.world.push("my_chat_member", change)

    async def sees(
        self,
        met: Callable[[Chat], T],
        *,
        timeout: float = TIMEOUT,  # noqa: ASYNC109 - how long a person looks
        chat: Chat | None = None,
    ) -> T:
        """Wait until ``met`` of the chat is true and return its result. TimeoutError shows the chat as it is."""
        where = chat or self.chat
        try:
            value: Any = await self.world.wait_until(lambda: met(where), timeout)
        except TimeoutError:
            raise TimeoutError(f"not seen within {timeout} s; the chat shows:\n{transcript(where)}") from None
        result: T = value
        return result


def transcript(chat: Chat) -> str:
    """Return the chat as lines, for a person who looks at a failed test or at the demo."""
    lines = []
    for message in chat.messages:
        picture = f"[{message.content.media}] " if message.content.media else ""
        buttons = "".join(f" [{label}]" for row in message.buttons for label in row)
        lines.append(f"{message.id} {message.sender.name}: {picture}{message.words}{buttons}")
    return "\n".join(lines)
