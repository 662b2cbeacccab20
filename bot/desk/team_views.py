"""The views of people, invitations and refusals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from agent_core.texts import Lang
from bot.desk.actors import Role


@dataclass(frozen=True, slots=True)
class PersonView:
    """A paired person.

    user_id: their id in Telegram, "" if they have none.
    since: when they were paired. seen: when they last asked the desk; None if they never did.
    phones, chats: as in ``Actor``. phone_names: the phones' names for people.
    """

    id: str
    name: str
    role: Role
    lang: Lang
    user_id: str
    since: datetime
    seen: datetime | None = None
    phones: tuple[str, ...] = ()
    chats: tuple[str, ...] = ()
    phone_names: tuple[str, ...] = ()

    @property
    def own_chat(self) -> str:
        """The key of their own chat."""
        return f"telegram:{self.user_id}" if self.user_id else f"console:{self.id}"


@dataclass(frozen=True, slots=True)
class InviteView:
    """An invitation that nobody has used yet.

    by: who made it. code: only set when it is made, because only its hash is stored.
    name: the person invited to the console, "" for somebody who pairs in Telegram. link: the console's, with the code.
    phones, chats: the limits of the person who uses it, as in ``Actor``; OWN_CHAT is their own private chat.
    phone_names: the phones' names for people.
    """

    id: str
    role: Role
    by: str
    created_at: datetime
    expires_at: datetime
    code: str = field(default="", repr=False)
    name: str = ""
    link: str = field(default="", repr=False)
    phones: tuple[str, ...] = ()
    chats: tuple[str, ...] = ()
    phone_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RefusedView:
    """A refused request. ``at`` is in the owner's zone.

    who: a person's name, or a stranger's id in the channel and the name that they gave.
    why: stranger, code, role, phone, chat, rate, or the kind of the message.
    """

    at: datetime
    who: str
    command: str
    why: str


@dataclass(frozen=True, slots=True)
class AuditView:
    """An entry of the audit log. ``at`` is in the owner's zone.

    who: a name, or the id of nobody who is known now. known: whether it is a name.
    """

    id: int
    at: datetime
    who: str
    channel: str
    command: str
    detail: Mapping[str, Any]
    allowed: bool
    known: bool = True
