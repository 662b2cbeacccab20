"""Chats, people, messages and files as Telegram holds them, and their JSON on the wire."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from simulator.telegram.rules import ApiError, Entity, refuse, utf16

Json = dict[str, Any]

AS_TEXT = "as text"  # in an update: the text that is delivered in its place
UPDATE_KINDS = ("message", "edited_message", "channel_post", "callback_query", "my_chat_member")
# Without allowed_updates Telegram sends all kinds but a few rare ones, which are not made here.


@dataclass(frozen=True, slots=True)
class Member:
    id: int
    name: str
    lang: str = "en"
    is_bot: bool = False
    username: str = ""

    def json(self) -> Json:
        user: Json = {"id": self.id, "is_bot": self.is_bot, "first_name": self.name}
        if self.username:
            user["username"] = self.username
        if self.lang and not self.is_bot:
            user["language_code"] = self.lang
        return user


@dataclass(frozen=True, slots=True)
class StoredFile:
    file_id: str
    data: bytes
    name: str
    mime: str = ""
    width: int = 0
    height: int = 0
    media: str = ""  # the kind that it was first sent as

    @property
    def unique_id(self) -> str:
        return "U" + self.file_id

    @property
    def path(self) -> str:
        """The path to fetch it from: a name of the server's own, with the file's ending."""
        _, dot, ending = self.name.rpartition(".")
        plain = ending.isascii() and ending.isalnum()
        return f"documents/file_{self.file_id[1:]}{f'.{ending}' if dot and plain else ''}"

    def json(self) -> Json:
        size: Json = {"file_id": self.file_id, "file_unique_id": self.unique_id, "file_size": len(self.data)}
        if self.width:
            size |= {"width": self.width, "height": self.height}
        return size


@dataclass(frozen=True, slots=True)
class Button:
    text: str
    data: str = ""
    url: str = ""
    style: str = ""

    def json(self) -> Json:
        button = {"text": self.text, "callback_data": self.data, "url": self.url, "style": self.style}
        return {key: value for key, value in button.items() if value}


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a message; an edit replaces all of it. ``media``: the kind that ``file`` was sent as."""

    text: str = ""
    caption: str = ""
    entities: tuple[tuple[tuple[str, Any], ...], ...] = ()
    media: Literal["", "photo", "animation", "document"] = ""
    file: StoredFile | None = None
    buttons: tuple[tuple[Button, ...], ...] = ()

    def with_entities(self, entities: list[Entity]) -> Content:
        return replace(self, entities=tuple(tuple(sorted(entity.items())) for entity in entities))


@dataclass(frozen=True, slots=True)
class Edit:
    """``at`` is on the clock of ``time.monotonic``."""

    at: float
    content: Content


@dataclass(slots=True)
class Message:
    """A message as a person sees it.

    ``edits``: its contents and their times; the first is the message as it was sent.
    """

    id: int
    chat: Chat
    sender: Member
    content: Content
    date: int
    thread_id: int | None = None
    reply_to: Message | None = None
    force_reply: bool = False
    placeholder: str = ""  # the hint in the input that it opens
    selective: bool = False  # the forced reply is for who is named in it, or whose message it answers
    silent: bool = False  # it made no sound
    forwarded: bool = False
    service: Json = field(default_factory=dict)  # the content of a service message
    media_group_id: str = ""
    edits: list[Edit] = field(default_factory=list)
    deleted: bool = False

    @property
    def text(self) -> str:
        return self.content.text

    @property
    def caption(self) -> str:
        return self.content.caption

    @property
    def words(self) -> str:
        """Text or caption."""
        return self.content.text or self.content.caption

    @property
    def photo(self) -> bytes | None:
        return self.content.file.data if self.content.file and self.content.media == "photo" else None

    @property
    def file(self) -> bytes | None:
        return self.content.file.data if self.content.file else None

    @property
    def buttons(self) -> list[list[str]]:
        return [[button.text for button in row] for row in self.content.buttons]

    @property
    def from_bot(self) -> bool:
        return self.sender.is_bot

    @property
    def edited(self) -> bool:
        return len(self.edits) > 1

    def button(self, label_or_data: str) -> Button:
        """Return the button with this label or data, else the one whose label contains it.

        Raises LookupError if there is none.
        """
        every = [button for row in self.content.buttons for button in row]
        exact = [button for button in every if label_or_data in {button.text, button.data}]
        for button in exact or [button for button in every if label_or_data in button.text]:
            return button
        raise LookupError(f"no button {label_or_data!r} under message {self.id}: {[b.text for b in every]}")

    def json(self, *, nested: bool = False) -> Json:
        content = self.content
        message: Json = {"message_id": self.id, "date": self.date, "chat": self.chat.json(), "from": self.sender.json()}
        if self.thread_id is not None:
            message |= {"message_thread_id": self.thread_id, "is_topic_message": True}
        if self.reply_to is not None and not nested:
            message["reply_to_message"] = self.reply_to.json(nested=True)
        if len(self.edits) > 1:
            message["edit_date"] = self.date
        if self.forwarded:
            message["forward_origin"] = {"type": "hidden_user", "sender_user_name": "hidden", "date": self.date}
        if self.media_group_id:
            message["media_group_id"] = self.media_group_id
        message |= self.service
        entities = [dict(entity) for entity in content.entities]
        if content.text:
            message["text"] = content.text
            if entities:
                message["entities"] = entities
        if content.caption:
            message["caption"] = content.caption
            if entities:
                message["caption_entities"] = entities
        message |= self._media()
        if content.buttons:
            rows = [[button.json() for button in row] for row in content.buttons]
            message["reply_markup"] = {"inline_keyboard": rows}
        return message

    def _media(self) -> Json:
        file = self.content.file
        if file is None:
            return {}
        if self.content.media == "photo":
            return {"photo": [file.json()]}
        document = {**file.json(), "file_name": file.name, "mime_type": file.mime or "application/octet-stream"}
        if self.content.media == "animation":
            animation = {"width": 1, "height": 1, **document, "duration": 1}
            document = {key: value for key, value in document.items() if key not in {"width", "height"}}
            return {"animation": animation, "document": document}
        return {"document": document}


@dataclass(slots=True)
class Topic:
    """A topic of a forum; its number is that of the message that made it."""

    id: int
    name: str
    creator: Member
    closed: bool = False


@dataclass(frozen=True, slots=True)
class Draft:
    """A draft of a message.

    animated: it changed the draft before it. at: on the clock of ``time.monotonic``.
    """

    id: int
    text: str
    at: float
    animated: bool = False


@dataclass(slots=True, eq=False)
class Chat:
    """A chat as a person sees it. ``messages``: those that are there. ``every``: also those that were deleted."""

    id: int
    type: Literal["private", "group", "supergroup", "channel"]
    title: str
    started: bool = False  # a private chat: the person wrote first
    blocked: bool = False
    migrated_to: int | None = None
    no_media: bool = False  # a group in which the bot may send only words
    kicked: bool = False
    forum: bool = False
    bot_admin: bool = False  # it then receives every message, privacy mode or not
    manages_topics: bool = False  # an administrator with can_manage_topics
    topics: dict[int, Topic] = field(default_factory=dict)
    every: list[Message] = field(default_factory=list)
    actions: list[str] = field(default_factory=list)
    drafts: list[Draft] = field(default_factory=list)  # every state that one had, oldest first
    draft: Draft | None = None  # the visible one

    @property
    def messages(self) -> list[Message]:
        return [message for message in self.every if not message.deleted]

    @property
    def from_bot(self) -> list[Message]:
        return [message for message in self.messages if message.from_bot]

    @property
    def last(self) -> Message:
        """The newest message; LookupError in an empty chat."""
        if not self.messages:
            raise LookupError(f"chat {self.id} is empty")
        return self.messages[-1]

    def in_topic(self, name: str) -> list[Message]:
        """Return the bot's messages in the topic of this name ("" for General), oldest first, without service
        messages.
        """
        threads = {topic.id for topic in self.topics.values() if topic.name == name} if name else {None}
        return [message for message in self.from_bot if message.thread_id in threads and not message.service]

    def saying(self, words: str) -> list[Message]:
        """Return the bot's messages that show these words, oldest first."""
        return [message for message in self.from_bot if words in message.words]

    def json(self) -> Json:
        name = {"first_name": self.title} if self.type == "private" else {"title": self.title}
        forum: Json = {"is_forum": True} if self.forum else {}
        return {"id": self.id, "type": self.type, **name, **forum}


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One call of the bot. ``at`` on the clock of ``time.monotonic``; ``code`` is the status of the answer."""

    at: float
    method: str
    chat_id: int | None
    code: int


@dataclass(slots=True)
class Webhook:
    url: str = ""
    secret: str = ""
    last_error: str = ""


class World:
    """Everything behind the server, for one bot."""

    def __init__(self, bot_username: str = "desk_bot") -> None:
        self.bot = Member(id=700_000_001, name="Desk", is_bot=True, username=bot_username)
        self.users: dict[int, Member] = {}
        self.chats: dict[int, Chat] = {}
        self.files: dict[str, StoredFile] = {}
        self.updates: list[Json] = []  # not confirmed yet, oldest first
        self.allowed_updates: list[str] = []
        self.webhook = Webhook()
        self.privacy = True  # in groups the bot receives only commands, replies to itself and service messages
        self.commands: dict[str, list[Json]] = {}  # by scope and language
        self.toasts: dict[str, asyncio.Future[Json]] = {}  # open callback queries
        self.calls: list[CallRecord] = []
        self._limits: dict[int, tuple[int, int]] = {}  # chat → (how many calls, retry_after)
        self._no_drafts: tuple[int, int] | None = None
        self.hanging = 0  # drafts that are never answered
        self._late: dict[str, float] = {}
        self._faults: dict[str, list[Literal["before", "after", "502"]]] = {}
        self._message_ids = itertools.count(100)
        self._update_ids = itertools.count(5000)
        self._serials = itertools.count(1)
        self._changed = asyncio.Event()

    # Events wake the waiting tasks
    # ----------------------------------------------------------------------------------------

    def changed(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait_until(self, met: Callable[[], Any], timeout: float) -> Any:  # noqa: ASYNC109 - a test states it
        """Wait until ``met`` returns something true, and return that.

        An empty list, LookupError and IndexError mean "not yet". Raises TimeoutError after ``timeout`` seconds.
        """
        async with asyncio.timeout(timeout):
            while True:
                changed = self._changed
                try:
                    value = met()
                except LookupError:
                    value = None
                if value:
                    return value
                await changed.wait()

    # Chats and messages -----------------------------------------------------------------------------------------------

    def member(self, user_id: int, name: str, lang: str = "en") -> Member:
        user = self.users[user_id] = Member(id=user_id, name=name, lang=lang, username="")
        self.chats.setdefault(user_id, Chat(user_id, "private", name))
        return user

    def group(
        self, chat_id: int, title: str, kind: Literal["group", "supergroup"] = "supergroup", *, forum: bool = False
    ) -> Chat:
        return self.chats.setdefault(chat_id, Chat(chat_id, kind, title, started=True, forum=forum))

    def topic(self, chat: Chat, name: str, creator: Member) -> Topic:
        """Make a new topic, with the service message that announces it."""
        message = self.post(chat, creator, Content())
        message.service = {"forum_topic_created": {"name": name, "icon_color": 7322096}}
        message.thread_id = message.id
        topic = chat.topics[message.id] = Topic(message.id, name, creator)
        return topic

    def tell(self, chat: Chat, sender: Member, service: Json, *, thread_id: int | None = None) -> Message:
        """Post a service message. The bot receives it unless it is the sender."""
        message = self.post(chat, sender, Content(), thread_id=thread_id)
        message.service = service
        if sender.id != self.bot.id:
            self.push("message", message.json())
        return message

    def delete_topic(self, chat: Chat, thread_id: int) -> None:
        """Delete a topic with all its messages. Nobody is notified."""
        del chat.topics[thread_id]
        for message in chat.every:
            if message.thread_id == thread_id:
                message.deleted = True
        self.changed()

    def upgrade(self, group: Chat, chat_id: int, by: Member) -> Chat:
        """Make a supergroup of a group: another chat, without the old messages."""
        chat = self.group(chat_id, group.title)
        group.migrated_to = chat_id
        self.tell(group, by, {"migrate_to_chat_id": chat_id})
        self.tell(chat, by, {"migrate_from_chat_id": group.id})
        return chat

    def chat_for_bot(self, chat_id: int | str) -> Chat:
        """Return the chat that the bot may write to, or raise the refusal."""
        number = int(chat_id) if str(chat_id).lstrip("-").isdigit() else 0
        chat = self.chats.get(number)
        if str(chat_id).strip() == "":
            raise refuse("chat_id is empty")
        if chat is None:
            raise refuse("chat not found")
        if chat.migrated_to is not None:
            words = "group chat was upgraded to a supergroup chat"
            raise ApiError(400, words, migrate_to_chat_id=chat.migrated_to)
        if chat.blocked:
            raise ApiError(403, "bot was blocked by the user")
        if chat.kicked:
            raise ApiError(403, f"bot was kicked from the {chat.type} chat")
        if chat.type == "private" and not chat.started:
            raise ApiError(403, "bot can't initiate conversation with a user")
        return chat

    def find(self, chat: Chat, message_id: int | None, missing: str) -> Message:
        for message in chat.messages:
            if message.id == message_id:
                return message
        raise refuse(missing)

    def post(
        self,
        chat: Chat,
        sender: Member,
        content: Content,
        *,
        reply_to: Message | None = None,
        thread_id: int | None = None,
    ) -> Message:
        now = time.monotonic()
        message = Message(
            next(self._message_ids), chat, sender, content, int(time.time()), thread_id=thread_id, reply_to=reply_to
        )
        message.edits.append(Edit(now, content))
        chat.every.append(message)
        if sender.id == self.bot.id:
            chat.draft = None
        self.changed()
        return message

    def draft(self, chat: Chat, draft_id: int, text: str) -> None:
        animated = chat.draft is not None and chat.draft.id == draft_id
        chat.draft = Draft(draft_id, text, time.monotonic(), animated)
        chat.drafts.append(chat.draft)
        self.changed()

    def edit(self, message: Message, content: Content) -> None:
        message.content = content
        message.edits.append(Edit(time.monotonic(), content))
        self.changed()

    def delete(self, message: Message) -> None:
        message.deleted = True
        self.changed()

    def store(
        self, data: bytes, name: str, *, mime: str = "", size: tuple[int, int] = (0, 0), media: str = ""
    ) -> StoredFile:
        file = StoredFile(f"F{next(self._serials):06d}", data, name, mime, *size, media)
        self.files[file.file_id] = file
        return file

    def serial(self, prefix: str) -> str:
        return f"{prefix}{next(self._serials):08d}"

    # Updates ----------------------------------------------------------------------------------------------------------

    def push(self, kind: str, value: Json, *, update_id: int | None = None) -> Json | None:
        """Queue an update if the bot asked for this kind."""
        if self.allowed_updates and kind not in self.allowed_updates:
            return None
        update = {"update_id": next(self._update_ids) if update_id is None else update_id, kind: value}
        self.updates.append(update)
        self.changed()
        return update

    def push_raw(self, update: Json) -> None:
        self.updates.append(update)
        self.changed()

    def push_text(self, update_id: int, text: str) -> None:
        """Queue an update that is brought as this very text, whether or not it is JSON."""
        self.push_raw({"update_id": update_id, AS_TEXT: text})

    def confirm_below(self, offset: int) -> None:
        """Forget updates older than ``offset``; a negative one keeps that many of the newest."""
        if offset < 0:
            self.updates = self.updates[offset:]
        else:
            self.updates = [update for update in self.updates if update["update_id"] >= offset]
        self.changed()

    # Trouble on demand ------------------------------------------------------------------------------------------------

    def limit_next(self, chat: Chat | int, times: int = 1, retry_after: int = 1) -> None:
        """Refuse the next ``times`` messages or edits for this chat with 429."""
        self._limits[chat if isinstance(chat, int) else chat.id] = (times, retry_after)

    def refuse_drafts(self, code: int, retry_after: int = 1) -> None:
        """Refuse every draft from now on: 400 (not offered here), 404 (no such method), 429; 0: it is never
        answered.
        """
        self._no_drafts = (code, retry_after)

    def take_drafts(self) -> None:
        self._no_drafts = None

    async def check_drafts(self) -> None:
        if self._no_drafts is None:
            return
        code, retry_after = self._no_drafts
        if code == 429:
            raise ApiError(429, f"retry after {retry_after}", retry_after=retry_after)
        if code == 404:
            raise ApiError(404, "Not Found: method not found")
        if code:
            raise refuse("TEXTDRAFT_PEER_INVALID")
        self.hanging += 1
        await asyncio.Event().wait()

    def check_limit(self, chat_id: int) -> None:
        times, retry_after = self._limits.get(chat_id, (0, 0))
        if times > 0:
            self._limits[chat_id] = (times - 1, retry_after)
            raise ApiError(429, f"retry after {retry_after}", retry_after=retry_after)

    def break_next(self, method: str, times: int = 1, how: Literal["before", "after", "502"] = "before") -> None:
        """Drop the connection before the call is read, or after it took effect; or answer 502 as a gateway does."""
        self._faults.setdefault(method.lower(), []).extend([how] * times)

    def answer_late(self, method: str, seconds: float) -> None:
        """Answer the next call of ``method`` only after so many seconds; it takes effect at once."""
        self._late[method.lower()] = seconds

    def lateness(self, method: str) -> float:
        return self._late.pop(method.lower(), 0.0)

    def fault(self, method: str) -> str:
        waiting = self._faults.get(method.lower())
        return waiting.pop(0) if waiting else ""


def command_entities(text: str) -> list[Entity]:
    """Return the bot_command entities that Telegram finds in a person's text."""
    entities: list[Entity] = []
    offset = 0
    for word in text.replace("\n", " ").split(" "):
        name, _, target = word[1:].partition("@")
        plain = name.replace("_", "a")
        if word.startswith("/") and plain.isascii() and plain.isalnum() and len(name) <= 32:
            length = 1 + len(name) + (1 + len(target) if target else 0)
            entities.append({"type": "bot_command", "offset": offset, "length": length})
        offset += utf16(word) + 1
    return entities
