"""Who asks the desk, from where, and how they are told that they may not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from agent_core.errors import PhonedeskError, RateLimited, SecurityError
from agent_core.texts import Listed


class AccessDenied(SecurityError):
    """A wrong pairing code, or a role that may not do this."""

    kind = "security.access"


class StillLimited(RateLimited):
    """This person has been told already that they ask too much: a chat says nothing until it is over."""


class NotFound(PhonedeskError):
    """No run, schedule, phone or question of this name."""

    kind = "desk.not_found"


class BadRequest(PhonedeskError):
    """What was asked for cannot be read: a schedule's expression, an empty task."""

    kind = "desk.bad_request"


class DoubleEntry(BadRequest):
    """The knowledge base has an entry for this question already."""

    kind = "desk.double"


class Role(StrEnum):
    VIEWER = "viewer"
    OPERATOR = "operator"
    OWNER = "owner"

    def covers(self, least: Role) -> bool:
        """Whether this role may do what ``least`` may."""
        ranks = list(Role)
        return ranks.index(self) >= ranks.index(least)


@dataclass(frozen=True, slots=True)
class Actor:
    """A paired person as one channel knows them. ``id`` is ours, ``user_id`` the channel's.

    ``phones`` (serials) and ``chats`` (their keys) are all that the person may use, empty for every one.
    ``chat`` is where they ask from. ``request`` names what they asked: desk calls for one request count once.
    ``said_at``: when they did, where it had to wait for its turn; None for now.
    ``streams``: they want to see what the model thinks while it thinks, where the channel can show it.
    """

    id: str
    channel: str
    user_id: str
    name: str
    lang: Literal["zh", "en"]
    role: Role
    phones: tuple[str, ...] = ()
    chats: tuple[str, ...] = ()
    chat: ChatRef | None = None
    request: str = ""
    said_at: datetime | None = None
    streams: bool = True


def not_one_of(message: str, said: str, known: Iterable[str]) -> BadRequest:
    """``said`` is none of ``known``; ``message`` tells that in English, the texts by the error's key."""
    listed = Listed(known)
    return BadRequest(message, advice=f"One of {listed}.", key="not_one_of", said=said, known=listed)


def role_denied(actor: Actor, least: Role) -> AccessDenied:
    """What somebody is told whose role does not reach ``least``."""
    said, advice = f"This is for the role {least}; yours is {actor.role}.", "Ask an owner for it."
    return AccessDenied(said, advice=advice, key="role_denied", role=actor.role, least=least)


@dataclass(frozen=True, slots=True)
class ChatRef:
    """Where something was asked, and where its card is shown. ``thread_id`` is a forum's topic, empty for none."""

    channel: str
    chat_id: str
    thread_id: str = ""
    kind: Literal["private", "group"] = "private"

    @property
    def key(self) -> str:
        """How the chat stands in a person's limits; its topics belong to it."""
        return f"{self.channel}:{self.chat_id}"


@dataclass(frozen=True, slots=True)
class MessageRef:
    """A message of ours in a chat, by the channel's own ids. ``picture``: it carries one (edited as a caption)."""

    chat: ChatRef
    message_id: str
    picture: bool = False
