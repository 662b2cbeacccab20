"""The people and programs that ask the desk, the chats that they use, and the desk's errors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from agent_core.errors import PhonedeskError, RateLimited, SecurityError
from agent_core.texts import Lang, Listed


class AccessDenied(SecurityError):
    """A wrong pairing code, or a role that may not do this."""

    kind = "security.access"


class StillLimited(RateLimited):
    """The person has already been told that they ask too often. A chat says nothing until the limit is over."""


class NotFound(PhonedeskError):
    """There is no run, schedule, phone or question with this name."""

    kind = "desk.not_found"


class BadRequest(PhonedeskError):
    """The request cannot be understood, for example a schedule's expression or an empty task."""

    kind = "desk.bad_request"


class Conflict(BadRequest):
    """The request fits nothing in the present state: the run has ended, somebody else has answered."""

    kind = "desk.conflict"


class DoubleEntry(Conflict):
    """The knowledge base has an entry for this question already."""

    kind = "desk.double"


class Role(StrEnum):
    """The rights of a person, from the least to the most."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    OWNER = "owner"

    def covers(self, least: Role) -> bool:
        """Tell whether this role may do everything that ``least`` may do."""
        ranks = list(Role)
        return ranks.index(self) >= ranks.index(least)


@dataclass(frozen=True, slots=True)
class Actor:
    """A paired person, or an API key, as one channel knows them.

    id: our id. user_id: the channel's id.
    phones, chats: the serials and chat keys that they may use; empty for all.
    chat: the chat that they ask from.
    request: names their request. Several desk calls for one request count once.
    said_at: when they asked, if the request had to wait for its turn; None for now.
    streams: they want to see the model's thinking while it thinks, if the channel can show it.
    looks: a page is made for them, and again after every change: its reads count towards no limit.
    """

    id: str
    channel: str
    user_id: str
    name: str
    lang: Lang
    role: Role
    phones: tuple[str, ...] = ()
    chats: tuple[str, ...] = ()
    chat: ChatRef | None = None
    request: str = ""
    said_at: datetime | None = None
    streams: bool = True
    looks: bool = False


def not_one_of(message: str, said: str, known: Iterable[str]) -> BadRequest:
    """Return the error for an unknown word.

    message: the English text. Other languages have theirs in the text files, under the error's key.
    """
    listed = Listed(known)
    return BadRequest(message, advice=f"One of {listed}.", key="not_one_of", said=said, known=listed)


def no_phone(serial: str) -> NotFound:
    """Return the error for a phone that is not known."""
    said, advice = f"There is no phone {serial}.", "See /devices for the phones that are attached."
    return NotFound(said, advice=advice, key="no_phone", name=serial)


def nothing_to_undo() -> BadRequest:
    """Return the error for somebody who has changed nothing, or something else since."""
    advice = "Only one's own newest one can be taken back."
    return BadRequest("There is nothing to undo.", advice=advice, key="nothing_to_undo")


def role_denied(actor: Actor, least: Role) -> AccessDenied:
    """Return the error for somebody whose role is below ``least``."""
    said, advice = f"This is for the role {least}; yours is {actor.role}.", "Ask an owner for it."
    return AccessDenied(said, advice=advice, key="role_denied", role=actor.role, least=least)


@dataclass(frozen=True, slots=True)
class ChatRef:
    """A chat in which something was asked or a card is shown. ``thread_id`` is a forum's topic, "" for none."""

    channel: str
    chat_id: str
    thread_id: str = ""
    kind: Literal["private", "group"] = "private"

    @property
    def key(self) -> str:
        """The chat's name in a person's limits. All topics of a chat share it."""
        return f"{self.channel}:{self.chat_id}"


@dataclass(frozen=True, slots=True)
class MessageRef:
    """A message of ours in a chat, by the channel's ids. ``picture``: it has one; its text is edited as a caption."""

    chat: ChatRef
    message_id: str
    picture: bool = False
