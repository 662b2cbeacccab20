"""The people in front of Telegram: what they write and tap, and what they see."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from bot.telegram.fake.world import Chat, Content, Json, Member, Message, World, command_entities

T = TypeVar("T")
TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class Toast:
    """What a tapped button showed: ``alert`` as a box to be closed, else as a fleeting line. Empty text: nothing."""

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
    ) -> Message:
        """Write a message; the first one in a private chat starts it."""
        where = chat or self.chat
        if where.type == "private":
            where.started, where.blocked = True, False
        content = Content(text).with_entities(command_entities(text))
        message = self.world.post(where, self.member, content, reply_to=reply_to, thread_id=thread_id)
        message.forwarded = forwarded
        if self._reaches_bot(where, text, reply_to):
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
        """Send a document. Its name is the sender's own: Telegram leaves it as it is, but for folders."""
        where = chat or self.chat
        if where.type == "private":
            where.started, where.blocked = True, False
        file = self.world.store(data, name.replace("\\", "/").rpartition("/")[2], mime=mime)
        content = Content(caption=caption, media="document", file=file).with_entities(command_entities(caption))
        message = self.world.post(where, self.member, content, reply_to=reply_to, thread_id=thread_id)
        message.forwarded = forwarded
        if self._reaches_bot(where, caption, reply_to):
            self.world.push("message", message.json())
        return message

    def _reaches_bot(self, chat: Chat, text: str, reply_to: Message | None) -> bool:
        """Privacy mode: in groups a bot gets commands that may be for it, and replies to itself."""
        if chat.type in {"private", "channel"} or (reply_to is not None and reply_to.sender.id == self.world.bot.id):
            return True
        first = text.split(maxsplit=1)[0] if text.split() else ""
        name, _, target = first.partition("@")
        return name.startswith("/") and target.lower() in {"", self.world.bot.username.lower()}

    async def edit(self, message: Message, text: str) -> None:
        """Change one's own message."""
        self.world.edit(message, Content(text).with_entities(command_entities(text)))
        self.world.push("edited_message", message.json())

    async def tap(self, message: Message, button: str, *, timeout: float = TIMEOUT) -> Toast:  # noqa: ASYNC109 - as said
        """Tap the button with this label (or a part of it, or its data) and wait for the bot's answer to it.

        TimeoutError where the bot never answers the callback query: the person would see it spin.
        """
        update, answered = self.tapped(message, button)
        self.world.push("callback_query", update)
        async with asyncio.timeout(timeout):
            answer = await answered
        return Toast(answer["text"], answer["alert"])

    def tapped(self, message: Message, button: str) -> tuple[Json, asyncio.Future[Json]]:
        """The callback query of a tap, not sent yet, and the future of its answer."""
        query_id = self.world.serial("query")
        answered: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self.world.toasts[query_id] = answered
        query = {
            "id": query_id,
            "from": self.member.json(),
            "message": message.json(),
            "chat_instance": str(message.chat.id),
            "data": message.button(button).data,
        }
        return query, answered

    async def block(self) -> None:
        self.chat.blocked = True
        self._member_change("member", "kicked")

    async def unblock(self) -> None:
        self.chat.blocked = False
        self._member_change("kicked", "member")

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
        """Wait until ``met`` of the chat is true and give what it gave. TimeoutError shows the chat as it is."""
        where = chat or self.chat
        try:
            value: Any = await self.world.wait_until(lambda: met(where), timeout)
        except TimeoutError:
            raise TimeoutError(f"not seen within {timeout} s; the chat shows:\n{transcript(where)}") from None
        result: T = value
        return result


def transcript(chat: Chat) -> str:
    """The chat as lines, for a person who looks at a failed test or at the demo."""
    lines = []
    for message in chat.messages:
        picture = f"[{message.content.media}] " if message.content.media else ""
        buttons = "".join(f" [{label}]" for row in message.buttons for label in row)
        lines.append(f"{message.id} {message.sender.name}: {picture}{message.words}{buttons}")
    return "\n".join(lines)
