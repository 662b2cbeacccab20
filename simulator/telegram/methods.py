"""The effect of each method on the world. One function a method, registered under its name."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from aiogram.types import ForceReply, InlineKeyboardMarkup, ReplyKeyboardMarkup

from simulator.telegram import rules
from simulator.telegram.calls import Call, Upload
from simulator.telegram.rules import NOT_MODIFIED, ApiError, refuse
from simulator.telegram.world import Button, Chat, Content, Message, StoredFile, Webhook, World

Handler = Callable[[World, Call], Awaitable[object]]
HANDLERS: dict[str, Handler] = {}

LOOPBACK = {"127.0.0.1", "localhost", "::1"}


def handles(handler: Handler) -> Handler:
    """Register ``send_message`` for ``sendMessage``."""
    first, *others = handler.__name__.split("_")
    HANDLERS[first + "".join(part.capitalize() for part in others)] = handler
    return handler


# Parts of many calls --------------------------------------------------------------------------------------------------


def _buttons(markup: object) -> tuple[tuple[Button, ...], ...]:
    if not isinstance(markup, InlineKeyboardMarkup):
        return ()
    rules.check_keyboard(markup.inline_keyboard)
    return tuple(
        tuple(Button(b.text, b.callback_data or "", b.url or "", b.style or "") for b in row)
        for row in markup.inline_keyboard
        if row
    )


def _file(world: World, call: Call, value: object, media: str) -> StoredFile:
    """Return a file that was uploaded, attached, or is known by its id."""
    if isinstance(value, str) and value.startswith("attach://"):
        name = value.removeprefix("attach://")
        if name not in call.files:
            raise refuse(f'wrong file identifier/HTTP URL specified: there is no attached file "{name}"')
        value = call.files[name]
    if isinstance(value, Upload):
        if not value.data:
            raise refuse("file must be non-empty")
        size = {"photo": rules.photo_size, "animation": rules.animation_size}.get(media, rules.no_size)(value.data)
        return world.store(value.data, value.filename or "file", mime=value.mime, size=size, media=media)
    if isinstance(value, str) and value in world.files:
        rules.check_kind(world.files[value].media == "photo", media)
        return world.files[value]
    raise refuse("wrong file identifier/HTTP URL specified")


def _place(world: World, call: Call) -> tuple[Chat, Message | None, int | None]:
    """Return the chat, the message replied to, and the topic of a send call; it counts against the chat's rate."""
    chat = world.chat_for_bot(call.get("chat_id"))
    world.check_limit(chat.id)
    reply_to: Message | None = None
    asked = call.get("reply_parameters")
    if asked is not None:
        try:
            reply_to = world.find(chat, asked.message_id, "message to be replied not found")
        except ApiError:
            if asked.allow_sending_without_reply is not True:  # left out it is a Default object
                raise
    thread_id = call.get("message_thread_id")
    if thread_id is not None:
        _writable(world, chat, thread_id)
    return chat, reply_to, thread_id


def _writable(world: World, chat: Chat, thread_id: int) -> None:
    """Refuse a topic that does not exist, or that is closed for a bot that neither manages topics nor made it.

    General has no number.
    """
    topic = chat.topics.get(thread_id)
    if topic is None:
        raise refuse("message thread not found")
    if topic.closed and not chat.manages_topics and topic.creator.id != world.bot.id:
        raise refuse("TOPIC_CLOSED")


def _send(world: World, call: Call, content: Content) -> dict[str, Any]:
    chat, reply_to, thread_id = _place(world, call)
    rules.check_rights(content.media, allowed=not chat.no_media)
    markup = call.get("reply_markup")
    if isinstance(markup, ForceReply | ReplyKeyboardMarkup):
        rules.check_placeholder(markup.input_field_placeholder)
    message = world.post(chat, world.bot, content, reply_to=reply_to, thread_id=thread_id)
    message.force_reply = isinstance(markup, ForceReply)
    message.placeholder = (isinstance(markup, ForceReply) and markup.input_field_placeholder) or ""
    message.selective = isinstance(markup, ForceReply) and bool(markup.selective)
    message.silent = bool(call.get("disable_notification"))
    return message.json()


def _own(world: World, call: Call, missing: str = "message to edit not found") -> Message:
    """Return the bot's message that a call is about; it counts against the chat's rate."""
    if call.get("inline_message_id") is not None:
        raise refuse("MESSAGE_ID_INVALID")
    if call.get("chat_id") is None:
        raise refuse("chat_id is empty")
    chat = world.chat_for_bot(call.get("chat_id"))
    world.check_limit(chat.id)
    message = world.find(chat, call.get("message_id"), missing)
    if message.sender.id != world.bot.id or message.force_reply:  # a message with its own keyboard stays
        raise refuse("message can't be edited")
    return message


def _change(world: World, message: Message, content: Content) -> dict[str, Any]:
    if content == message.content:
        raise refuse(NOT_MODIFIED)
    world.edit(message, content)
    return message.json()


def _captioned(world: World, call: Call, media: str, value: object) -> Content:
    caption, entities = rules.checked_caption(call.get("caption"), call.get("parse_mode"))
    return Content(
        caption=caption,
        media=media,  # type: ignore[arg-type]  # the three callers pass its literals
        file=_file(world, call, value, media),
        buttons=_buttons(call.get("reply_markup")),
    ).with_entities(entities)


# People and settings --------------------------------------------------------------------------------------------------


@handles
async def get_me(world: World, call: Call) -> object:
    return {
        **world.bot.json(),
        "can_join_groups": True,
        "can_read_all_group_messages": not world.privacy,
        "supports_inline_queries": False,
    }


@handles
async def close(world: World, call: Call) -> object:
    return True


@handles
async def log_out(world: World, call: Call) -> object:
    return True


@handles
async def set_webhook(world: World, call: Call) -> object:
    url = str(call.get("url") or "")
    parts = urlsplit(url)
    # Telegram's own servers want https; a local server takes http for this machine, as its --local mode does.
    if url and not (parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)):
        raise refuse("bad webhook: An HTTPS URL must be provided for webhook")
    secret = call.get("secret_token") or ""
    if not re.fullmatch(r"[A-Za-z0-9_-]{0,256}", secret):
        raise refuse("secret token contains unallowed characters")
    if call.get("drop_pending_updates"):
        world.updates.clear()
    if call.get("allowed_updates") is not None:
        world.allowed_updates = list(call.get("allowed_updates"))
    world.webhook = Webhook(url, secret)
    world.changed()
    return True


@handles
async def delete_webhook(world: World, call: Call) -> object:
    if call.get("drop_pending_updates"):
        world.updates.clear()
    world.webhook = Webhook()
    world.changed()
    return True


@handles
async def get_webhook_info(world: World, call: Call) -> object:
    info: dict[str, Any] = {
        "url": world.webhook.url,
        "has_custom_certificate": False,
        "pending_update_count": len(world.updates),
        "allowed_updates": world.allowed_updates,
    }
    if world.webhook.last_error:
        info |= {"last_error_message": world.webhook.last_error, "last_error_date": 1}
    return info


def _scope(world: World, call: Call) -> str:
    scope = call.get("scope")
    where = "default" if scope is None else scope.model_dump_json(exclude_none=True)
    lang = call.get("language_code") or ""
    rules.check_language(lang)
    if scope is not None and scope.type in {"chat", "chat_administrators", "chat_member"}:
        world.chat_for_bot(scope.chat_id)
    return f"{where}/{lang}"


@handles
async def set_my_commands(world: World, call: Call) -> object:
    commands = [(command.command, command.description) for command in call.get("commands")]
    rules.check_commands(commands)
    world.commands[_scope(world, call)] = [{"command": name, "description": words} for name, words in commands]
    return True


@handles
async def get_my_commands(world: World, call: Call) -> object:
    return world.commands.get(_scope(world, call), [])


@handles
async def delete_my_commands(world: World, call: Call) -> object:
    world.commands.pop(_scope(world, call), None)
    return True


@handles
async def get_chat(world: World, call: Call) -> object:
    chat = world.chat_for_bot(call.get("chat_id"))
    return {
        **chat.json(),
        "accent_color_id": 0,
        "max_reaction_count": 11,
        "accepted_gift_types": dict.fromkeys(
            (
                "unlimited_gifts",
                "limited_gifts",
                "unique_gifts",
                "premium_subscription",
                "gifts_from_channels",
            ),
            False,
        ),
    }


@handles
async def get_file(world: World, call: Call) -> object:
    file = world.files.get(call.get("file_id"))
    if file is None:
        raise refuse("invalid file_id")
    if len(file.data) > rules.MAX_DOWNLOAD_BYTES:
        raise refuse("file is too big")
    return {**file.json(), "file_path": file.path}


# Sending --------------------------------------------------------------------------------------------------------------


@handles
async def send_message(world: World, call: Call) -> object:
    text, entities = rules.checked_text(call.get("text"), call.get("parse_mode"))
    return _send(world, call, Content(text, buttons=_buttons(call.get("reply_markup"))).with_entities(entities))


@handles
async def send_photo(world: World, call: Call) -> object:
    return _send(world, call, _captioned(world, call, "photo", call.get("photo")))


@handles
async def send_animation(world: World, call: Call) -> object:
    return _send(world, call, _captioned(world, call, "animation", call.get("animation")))


@handles
async def send_document(world: World, call: Call) -> object:
    return _send(world, call, _captioned(world, call, "document", call.get("document")))


def _media_content(world: World, call: Call, item: Any) -> Content:
    """Return the content of a part of an album. ``item`` is one of aiogram's InputMedia… classes."""
    if item.type not in {"photo", "animation", "document"}:
        raise refuse(f"{item.type} is not held by this server")
    mode = item.parse_mode if isinstance(item.parse_mode, str) else None
    caption, entities = rules.checked_caption(item.caption, mode)
    content = Content(caption=caption, media=item.type, file=_file(world, call, item.media, item.type))
    return content.with_entities(entities)


@handles
async def send_media_group(world: World, call: Call) -> object:
    items = call.get("media")
    if not 2 <= len(items) <= 10:
        raise refuse("there must be 2-10 media in the album")
    kinds = {item.type for item in items}
    if (len(kinds) > 1 and not kinds <= {"photo", "video"}) or "animation" in kinds:
        raise refuse("media of these types can't be sent in one album")
    contents = [_media_content(world, call, item) for item in items]
    chat, reply_to, thread_id = _place(world, call)
    rules.check_rights("photo", allowed=not chat.no_media)
    group = world.serial("album")
    messages = []
    for content in contents:
        message = world.post(chat, world.bot, content, reply_to=reply_to, thread_id=thread_id)
        message.media_group_id = group
        messages.append(message.json())
    return messages


@handles
async def send_chat_action(world: World, call: Call) -> object:
    known = {"typing", "upload_photo", "record_video", "upload_video", "upload_document", "find_location"}
    if call.get("action") not in known:
        raise refuse("wrong parameter action in request")
    chat = world.chat_for_bot(call.get("chat_id"))
    if call.get("message_thread_id") is not None:
        _writable(world, chat, call.get("message_thread_id"))
    chat.actions.append(call.get("action"))
    world.changed()
    return True


@handles
async def send_message_draft(world: World, call: Call) -> object:
    """Show a preview in a private chat, which the bot's next message removes; "" shows that the bot thinks."""
    if not call.get("draft_id"):
        raise refuse("draft_id must be non-zero")
    await world.check_drafts()
    text, _ = rules.checked_text(call.get("text"), call.get("parse_mode")) if call.get("text") else ("", [])
    chat = world.chat_for_bot(call.get("chat_id"))
    if chat.type != "private":
        raise refuse("TEXTDRAFT_PEER_INVALID")
    world.check_limit(chat.id)
    if call.get("message_thread_id") is not None:
        _writable(world, chat, call.get("message_thread_id"))
    world.draft(chat, int(call.get("draft_id")), text)
    return True


# Changing -------------------------------------------------------------------------------------------------------------


@handles
async def edit_message_text(world: World, call: Call) -> object:
    message = _own(world, call)
    if message.content.media:
        raise refuse("there is no text in the message to edit")
    text, entities = rules.checked_text(call.get("text"), call.get("parse_mode"))
    content = Content(text, buttons=_buttons(call.get("reply_markup"))).with_entities(entities)
    return _change(world, message, content)


@handles
async def edit_message_caption(world: World, call: Call) -> object:
    message = _own(world, call)
    if not message.content.media:
        raise refuse("there is no caption in the message to edit")
    caption, entities = rules.checked_caption(call.get("caption"), call.get("parse_mode"))
    content = Content(
        caption=caption,
        media=message.content.media,
        file=message.content.file,
        buttons=_buttons(call.get("reply_markup")),
    )
    return _change(world, message, content.with_entities(entities))


@handles
async def edit_message_media(world: World, call: Call) -> object:
    message = _own(world, call)
    content = _media_content(world, call, call.get("media"))
    if message.media_group_id and content.media != message.content.media:
        raise refuse("message can't be edited: album items keep their type")
    old = message.content.file
    if old is not None and content.file is not None and old.data == content.file.data:
        content = replace(content, file=old)  # the same picture sent again is not a change, as at Telegram
    return _change(world, message, replace(content, buttons=_buttons(call.get("reply_markup"))))


@handles
async def edit_message_reply_markup(world: World, call: Call) -> object:
    message = _own(world, call)
    return _change(world, message, replace(message.content, buttons=_buttons(call.get("reply_markup"))))


@handles
async def delete_message(world: World, call: Call) -> object:
    chat = world.chat_for_bot(call.get("chat_id"))
    world.delete(world.find(chat, call.get("message_id"), "message to delete not found"))
    return True


@handles
async def answer_callback_query(world: World, call: Call) -> object:
    waiting = world.toasts.pop(call.get("callback_query_id"), None)
    if waiting is None or waiting.done():
        raise refuse("query is too old and response timeout expired or query ID is invalid")
    text = call.get("text") or ""
    if rules.utf16(text) > rules.MAX_TOAST:
        world.toasts[call.get("callback_query_id")] = waiting
        raise refuse("MESSAGE_TOO_LONG")
    waiting.set_result({"text": text, "alert": bool(call.get("show_alert"))})
    return True
