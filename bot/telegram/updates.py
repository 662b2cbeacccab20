"""From Telegram's updates to what the conversation understands, and what is passed over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from telegram import Bot, CallbackQuery, Message, Update, User

from bot.chat import commands
from bot.chat.conversation import Attached, Incoming, Person
from bot.desk.actors import ChatRef, MessageRef
from bot.telegram.render import file_name
from bot.telegram.sound import UnreadableUpdate, checked

CHANNEL = "telegram"
ALLOWED_UPDATES = ["message", "callback_query"]
STOPS = {"stop", "hold"}  # commands, and what the data of buttons begins with


def lane(raw: Mapping[str, Any]) -> str:
    """Updates of one lane are handled one after the other: those of a chat, its taps apart from its messages.

    What ends or holds work has a lane of its own: it waits for nothing that takes its time.
    """
    for kind in ALLOWED_UPDATES:
        value = raw.get(kind)
        if isinstance(value, Mapping):
            message = value.get("message") if kind == "callback_query" else value
            chat = message.get("chat") if isinstance(message, Mapping) else None
            name = "stop" if _stops(value) else kind
            return f"{name}:{chat.get('id') if isinstance(chat, Mapping) else ''}"
    return "rest"


def _stops(value: Mapping[str, Any]) -> bool:
    """Whether a message, or a tap, wants work stopped or held."""
    data, text = value.get("data"), value.get("text")
    if isinstance(data, str):
        return data.partition(":")[0] in STOPS
    command = commands.parse(text) if isinstance(text, str) else None
    return isinstance(command, commands.Command) and command.name in STOPS


def understood(raw: Mapping[str, Any], bot: Bot) -> Update:
    """UnreadableUpdate where it is none."""
    plain = checked(raw)
    try:
        return Update.de_json(plain, bot)
    except Exception as error:  # whatever the library stumbles over: it would the next time, too
        raise UnreadableUpdate(f"{type(error).__name__}: {error}") from error


def chat_ref(message: Message) -> ChatRef:
    thread = message.message_thread_id if getattr(message, "is_topic_message", None) else None
    kind = "private" if message.chat.type == "private" else "group"
    return ChatRef(CHANNEL, str(message.chat.id), str(thread or ""), kind)  # type: ignore[arg-type]  # one of the two


def message_ref(message: Message) -> MessageRef:
    return MessageRef(chat_ref(message), str(message.message_id), bool(message.photo or message.document))


def read(update: Update, *, bot_id: int, bot_name: str) -> Incoming | None:
    """What a person wrote or tapped. None for all that is not for us: edits, channels, bots, forwarded commands."""
    if update.callback_query is not None:
        return _tap(update.update_id, update.callback_query)
    message = update.message
    if message is None or message.from_user is None or message.from_user.is_bot:
        return None
    if not _own_chat(message, message.from_user):
        return None
    document = attached(message)
    text = message.text or (message.caption or "" if document is not None else "")
    if not text and document is None:
        return None
    if message.sender_chat is not None or message.via_bot is not None or message.chat.type == "channel":
        return None
    if message.forward_origin is not None and commands.parse(text, bot_name=bot_name) is not None:
        if document is None:
            return None
        text = ""  # the file is what was handed on; the command was somebody else's
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
    )


def refused(update: Update, *, bot_name: str) -> tuple[Person, str] | None:
    """Who tried to command us by a way that counts for nothing, and which: edited, forwarded, inline, channel, button,
    forged.

    None for what ``read`` takes, for what names no person, and for what was never meant for us.
    """
    if update.inline_query is not None:
        return _person(update.inline_query.from_user), "inline"
    if update.chosen_inline_result is not None:
        return _person(update.chosen_inline_result.from_user), "inline"
    tap = update.callback_query
    if tap is not None:
        return (_person(tap.from_user), _tapped_wrongly(tap)) if not tap.from_user.is_bot else None
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
    way = next((way for way, was in ways.items() if was), None)
    return (_person(message.from_user), way) if way else None


def _tapped_wrongly(tap: CallbackQuery) -> str:
    """Why a tap counts for nothing: under a message that another bot, or nobody, has sent for us, or such as no app
    sends."""
    return "button" if tap.inline_message_id is not None else "forged"


def _own_chat(message: Message, person: User) -> bool:
    """A private chat has the number of the one person in it."""
    return message.chat.type != "private" or message.chat.id == person.id


def attached(message: Message | None) -> Attached | None:
    """The document that a message carries; a moving picture is none."""
    if message is None or message.document is None or message.animation is not None:
        return None
    document = message.document
    return Attached(document.file_id, file_name(document.file_name or "file"), document.file_size or 0)


def _actions_under(message: Message) -> tuple[str, ...]:
    """What the buttons under the message do, as Telegram itself has it: a client may send anything as tapped."""
    rows = message.reply_markup.inline_keyboard if message.reply_markup is not None else ()
    found = (button.callback_data for row in rows for button in row)
    return tuple(data for data in found if isinstance(data, str))


def _question_under(message: Message) -> str:
    """The question that our message's buttons answer (``q:<question>:<number>``); "" where it has none."""
    return next((data.split(":")[1] for data in _actions_under(message) if data.startswith("q:")), "")


def _tap(update_id: int, query: CallbackQuery) -> Incoming | None:
    message = query.message
    if (
        not isinstance(message, Message)
        or query.data is None
        or query.from_user.is_bot
        or not _own_chat(message, query.from_user)
    ):
        return None  # written down by the adapter; the tap is answered all the same
    subject = message.reply_to_message.text if message.reply_to_message is not None else None
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
