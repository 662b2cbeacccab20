"""What the desk returns of people, invitations and refusals."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from bot.desk.actors import Role


@dataclass(frozen=True, slots=True)
class PersonView:
    """Who is in. ``phones`` and ``chats`` as in ``Actor``; ``seen``: when the desk was last asked by them, if ever.

    ``phone_names``: what people call the phones.
    """

    id: str
    name: str
    role: Role
    lang: Literal["zh", "en"]
    user_id: str
    since: datetime
    seen: datetime | None = None
    phones: tuple[str, ...] = ()
    chats: tuple[str, ...] = ()
    phone_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InviteView:
    """A code that nobody has used yet. ``code`` is there once, when it is made: only its hash is kept.

    ``phones`` and ``chats`` as in ``Actor``, for whoever uses it; OWN_CHAT is their own private one. ``phone_names``:
    what people call the phones.
    """

    id: str
    role: Role
    by: str
    created_at: datetime
    expires_at: datetime
    code: str = field(default="", repr=False)
    phones: tuple[str, ...] = ()
    chats: tuple[str, ...] = ()
    phone_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RefusedView:
    """Something that was refused, at a time in the owner's zone. ``who``: a person's name, or the channel's id of a
    stranger and what they call themselves. ``why``: stranger, code, role, phone, chat, rate, or what kind of message it
    was."""

    at: datetime
    who: str
    command: str
    why: str
