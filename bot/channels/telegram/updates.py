"""Reads Telegram's updates for the conversation, and decides which to ignore.

An update is checked first: whatever is read of it has the types that the Bot API specifies. Telegram's library makes
objects of anything, so odd data would fail later, in a place where it looks like a bug of ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from telegram import Bot, CallbackQuery, Message, Update, User

from bot.channels.chat import commands
from bot.channels.chat.turn import Attached, Incoming, Person
from bot.channels.telegram.render import file_name
from bot.desk.actors import ChatRef, MessageRef

MOST_NUMBER = 2**52 - 1  # of chats and people, as the Bot API says
MOST_UPDATE = 2**62
_Number = Annotated[int, Field(ge=-MOST_NUMBER, le=MOST_NUMBER)]
BROKEN = "unparsed"  # key for an update that could not be parsed: its value is the problem
_BROKEN = dict.fromkeys((0, *range(0xD800, 0xE000)), "\N{REPLACEMENT CHARACTER}")


class UnreadableUpdate(Exception):
    """This is not an update, or one of a future release. It will not be readable the next time either."""


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")


class _User(_Part):
    id: Annotated[int, Field(gt=0, le=MOST_NUMBER)]
    is_bot: bool
    first_name: str
    last_name: str | None = None
    username: str | None = None
    language_code: str | None = None


class _Chat(_Part):
    id: _Number
    type: str
    title: str | None = None


class _File(_Part):
    file_id: str
    file_name: str | None = None
    file_size: int | None = None


class _Button(_Part):
    callback_data: str | None = None


class _Keyboard(_Part):
    inline_keyboard: list[list[_Button]]


class _Origin(_Part):
    type: str


class _Message(_Part):
    message_id: _Number
    date: Annotated[int, Field(ge=0, le=2**40)]
    chat: _Chat
    sender: _User | None = Field(default=None, alias="from")
    sender_chat: _Chat | None = None
    via_bot: _User | None = None
    forward_origin: _Origin | None = None
    message_thread_id: _Number | None = None
    is_topic_message: bool | None = None
    text: str | None = None
    caption: str | None = None
    document: _File | None = None
    animation: _File | None = None
    photo: list[_File] | None = None
    media_group_id: str | None = None
    is_automatic_forward: bool | None = None
    edit_date: Annotated[int, Field(ge=0, le=2**40)] | None = None
    reply_to_message: _Message | None = None
    reply_markup: _Keyboard | None = None


class _Tap(_Part):
    id: str
    sender: _User = Field(alias="from")
    message: _Message | None = None
    inline_message_id: str | None = None
    data: str | None = None


class _Query(_Part):
    sender: _User = Field(alias="from")
    query: str


class _Update(_Part):
    """The kinds of updates that are read."""

    update_id: int
    message: _Message | None = None
    edited_message: _Message | None = None
    callback_query: _Tap | None = None
    inline_query: _Query | None = None
    chosen_inline_result: _Query | None = None


def number_of(raw: object) -> int | None:
    """Return the update's number; None if it has none that can be stored."""
    update_id = raw.get("update_id") if isinstance(raw, dict) else None
    if not isinstance(update_id, int) or isinstance(update_id, bool) or not 0 <= update_id < MOST_UPDATE:
        return None
    return update_id


def checked(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the update without characters that no text can hold. Raises UnreadableUpdate if it is none."""
    if BROKEN in raw:
        raise UnreadableUpdate(str(raw[BROKEN]))
    try:
        _Update.model_validate(raw)
        return {key: _clean(value) for key, value in raw.items()}
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UnreadableUpdate(f"{where}: {first['msg']}") from None
    except RecursionError:
        raise UnreadableUpdate("too deep") from None


def _clean(value: Any) -> Any:
    """Replace halves of surrogate pairs and NUL in JSON data, because no database can store them."""
    if isinstance(value, str):
        return value.translate(_BROKEN)
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return value


CHANNEL = "telegram"
# An edited message has no effect; it is received for the audit log, and to inform the person.
ALLOWED_UPDATES = ["message", "edited_message", "callback_query"]
# Kinds of messages besides words and documents. Any other message without words is a service message.
OTHER_KINDS = (
    "voice", "photo", "sticker", "video", "video_note", "audio", "animation", "location", "venue", "contact", "poll",
    "dice", "story", "paid_media", "checklist", "game",
)  # fmt: skip


def understood(raw: Mapping[str, Any], bot: Bot) -> Update:
    """Parse an update. Raises UnreadableUpdate if it is none."""
    plain = checked(raw)
    try:
        return Update.de_json(plain, bot)
    except Exception as error:  # whatever the library fails at, it would fail the next time, too
        raise UnreadableUpdate(f"{type(error).__name__}: {error}") from error


def chat_ref(message: Message) -> ChatRef:
    thread = message.message_thread_id if getattr(message, "is_topic_message", None) else None
    kind = "private" if message.chat.type == "private" else "group"
    return ChatRef(CHANNEL, str(message.chat.id), str(thread or ""), kind)  # type: ignore[arg-type]  # one of the two


def message_ref(message: Message) -> MessageRef:
    return MessageRef(chat_ref(message), str(message.message_id), bool(message.photo or message.document))


def read(update: Update, *, bot_id: int, bot_name: str) -> Incoming | None:
    """Return a person's message or tap; None for edits, channels, bots and forwarded commands."""
    if update.callback_query is not None:
        return _tap(update.update_id, update.callback_query)
    message = update.message
    if message is None or message.from_user is None or message.from_user.is_bot:
        return None
    if not _own_chat(message, message.from_user):
        return None
    document = attached(message)
    text = message.text or message.caption or ""
    other = _other_kind(message)
    if not text and document is None and not other:
        return None
    if message.sender_chat is not None or message.via_bot is not None or message.chat.type == "channel":
        return None
    if message.forward_origin is not None and commands.parse(text, bot_name=bot_name) is not None:
        if document is None:
            return None
        text = ""  # the file was handed on; the command was somebody else's
    answered = message.reply_to_message
    ours = answered is not None and answered.from_user is not None and answered.from_user.id == bot_id
    return Incoming(
        "reply" if ours else "text",
        _person(message.from_user),
        chat_ref(message),
        f"{CHANNEL}:{update.update_id}",
        text,
        message_id=str(message.message_id),
        reply_to=message_ref(answered) if answered is not None and ours else None,
        reply_question=_question_under(answered) if answered is not None and ours else "",
        document=document,
        other=other,
        album=message.media_group_id or "",
    )


def _other_kind(message: Message) -> str:
    return next((kind for kind in OTHER_KINDS if getattr(message, kind, None)), "")


def nameless(update: Update, *, bot_id: int, bot_name: str) -> Message | None:
    """Return the message of somebody who wrote to us as their group (an anonymous admin), or as a channel.

    Nobody can tell who it was. Returns None for any other message, and for one that is not meant for us.
    """
    message = update.message
    if message is None or message.sender_chat is None or message.chat.type not in {"group", "supergroup"}:
        return None
    if message.is_automatic_forward or message.forward_origin is not None or message.via_bot is not None:
        return None
    answered = message.reply_to_message
    ours = answered is not None and answered.from_user is not None and answered.from_user.id == bot_id
    meant = commands.parse(message.text or message.caption or "", bot_name=bot_name)
    slashed = isinstance(meant, commands.Command) and (message.text or message.caption or "").lstrip()[:1] in "/／"
    return message if ours or slashed else None


def edited_command(update: Update, *, bot_name: str) -> Incoming | None:
    """Return a command that was edited in; it has no effect, but the person is informed."""
    message = update.edited_message
    if message is None or message.from_user is None or message.from_user.is_bot or message.sender_chat is not None:
        return None
    if message.via_bot is not None or not _own_chat(message, message.from_user):
        return None
    command = commands.parse(message.text or message.caption or "", bot_name=bot_name)
    if not isinstance(command, commands.Command):
        return None
    key = f"{CHANNEL}:{update.update_id}"
    return Incoming("text", _person(message.from_user), chat_ref(message), key, message_id=str(message.message_id))


def refused(update: Update, *, bot_name: str) -> tuple[Person, str] | None:
    """Return the person who tried to command us in a way that has no effect, and the way.

    The ways are edited, forwarded, inline, channel, button, forged. Returns None for updates that ``read`` accepts,
    that name no person, or that were never meant for us.
    """
    if update.inline_query is not None:
        return _person(update.inline_query.from_user), "inline"
    if update.chosen_inline_result is not None:
        return _person(update.chosen_inline_result.from_user), "inline"
    tap = update.callback_query
    if tap is not None:
        way = "button" if tap.inline_message_id is not None else "forged"  # an inline message is not ours
        return (_person(tap.from_user), way) if not tap.from_user.is_bot else None
    message = update.message or update.edited_message
    if message is None or message.from_user is None or message.from_user.is_bot:
        return None
    if not isinstance(commands.parse(message.text or message.caption or "", bot_name=bot_name), commands.Command):
        return None
    ways = {
        "forged": not _own_chat(message, message.from_user),
        "edited": update.message is None,
        "inline": message.via_bot is not None,
        "channel": message.sender_chat is not None,
        "forwarded": message.forward_origin is not None and attached(message) is None,
    }
    tried = next((way for way, was in ways.items() if was), None)
    return (_person(message.from_user), tried) if tried else None


def _own_chat(message: Message, person: User) -> bool:
    """Tell whether a chat is genuine: a private chat has the number of the one person in it."""
    return message.chat.type != "private" or message.chat.id == person.id


def attached(message: Message | None) -> Attached | None:
    """Return the document of a message; a moving picture is none."""
    if message is None or message.document is None or message.animation is not None:
        return None
    document = message.document
    return Attached(document.file_id, file_name(document.file_name or "file"), document.file_size or 0)


def _actions_under(message: Message) -> tuple[str, ...]:
    """Return the actions of a message's buttons as Telegram itself has them: a client may send anything as tapped."""
    rows = message.reply_markup.inline_keyboard if message.reply_markup is not None else ()
    found = (button.callback_data for row in rows for button in row)
    return tuple(data for data in found if isinstance(data, str))


def _question_under(message: Message) -> str:
    """Return the question that our message's buttons answer (``q:<question>:<number>``); "" if there is none."""
    return next((data.split(":")[1] for data in _actions_under(message) if data.startswith("q:")), "")


def _tap(update_id: int, query: CallbackQuery) -> Incoming | None:
    message = query.message
    if (
        not isinstance(message, Message)
        or query.data is None
        or query.from_user.is_bot
        or not _own_chat(message, query.from_user)
    ):
        return None  # recorded by the adapter; the tap is answered anyway
    replied = message.reply_to_message
    # Words that were edited after the offer differ from the words that it showed.
    subject = replied.text or replied.caption if replied is not None and replied.edit_date is None else None
    return Incoming(
        "button",
        _person(query.from_user),
        chat_ref(message),
        f"{CHANNEL}:{update_id}",
        action=query.data,
        message_id=str(message.message_id),
        reply_to=message_ref(message),
        subject=subject or "",
        buttons=_actions_under(message),
        document=attached(message.reply_to_message),
    )


def _person(user: User) -> Person:
    return Person(str(user.id), user.full_name, user.language_code or "")
