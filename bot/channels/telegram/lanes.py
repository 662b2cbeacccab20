"""What of the updates belongs together and is handled one after the other; all else goes side by side.

A lane is a person's own in a chat: nobody waits for somebody else. A person has there

- ``stop``: Stop and Hold of a run that is named. They wait for nothing that takes its time.
- ``start``: what begins work or lets it go on, and Stop and Hold of what is going on: in the order they were said in.
- ``answer``: taps on a question, replies to its cards.
- ``message``, ``callback_query``: all the rest, which may look at a phone, read a file or make a film.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot.channels.chat import commands

KINDS = ("message", "edited_message", "callback_query")
STOPS = {"stop", "hold"}  # commands, and what the data of buttons begins with
STARTS = {"start", "run", "plan", "sweep", "resume", "go", "no"} | STOPS
ANSWERS = {"q", "own", "mine"}


def lane(raw: Mapping[str, Any]) -> str:
    """The name of an update's lane."""
    kind, value = _what(raw)
    if value is None:
        return "rest"
    message = value.get("message") if kind == "callback_query" else value
    return f"{_sort(kind, value)}:{_id(message, 'chat')}:{_id(value, 'from')}"


def stops(raw: Mapping[str, Any]) -> bool:
    """Whether a message, or a tap, wants work stopped or held."""
    kind, value = _what(raw)
    return value is not None and kind != "edited_message" and _verb(value)[0] in STOPS


def _what(raw: Mapping[str, Any]) -> tuple[str, Mapping[str, Any] | None]:
    return next(((kind, raw[kind]) for kind in KINDS if isinstance(raw.get(kind), Mapping)), ("", None))


def _sort(kind: str, value: Mapping[str, Any]) -> str:
    if kind == "edited_message":
        return kind
    verb, named = _verb(value)
    if verb in STOPS and named:
        return "stop"
    if verb in STARTS:
        return "start"
    if verb in ANSWERS or (kind == "message" and not verb and _is_reply(value)):
        return "answer"
    return kind


def _verb(value: Mapping[str, Any]) -> tuple[str, bool]:
    """The command, or what the data of a button begins with, and whether something follows; "" for other words."""
    data, text = value.get("data"), value.get("text")
    if isinstance(data, str):
        verb, _, rest = data.partition(":")
        return verb, bool(rest)
    command = commands.parse(text) if isinstance(text, str) else None
    return (command.name, bool(command.rest)) if isinstance(command, commands.Command) else ("", False)


def _is_reply(message: Mapping[str, Any]) -> bool:
    """To a bot, without a file. What stands in a topic replies to the making of it, unless it replies to more."""
    answered = message.get("reply_to_message")
    if not isinstance(answered, Mapping) or "forum_topic_created" in answered or "document" in message:
        return False
    person = answered.get("from")
    return isinstance(person, Mapping) and person.get("is_bot") is True


def _id(value: object, key: str) -> object:
    part = value.get(key) if isinstance(value, Mapping) else None
    return part.get("id") if isinstance(part, Mapping) else ""
