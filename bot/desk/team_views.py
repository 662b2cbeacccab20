"""What a channel can ask about the people of the desk. See ``bot.desk.views``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from bot.desk.actors import Actor, Role


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


class TeamDesk(Protocol):
    """Who may do what; all but ``speak`` and ``stream`` is for owners.

    ``who`` means a person by ``#id``, or by a name that only one has.
    """

    async def people(self, actor: Actor) -> Sequence[PersonView]: ...

    async def invite(
        self, actor: Actor, role: Role, hours: float = 24, *, phones: Sequence[str] = (), chats: Sequence[str] = ()
    ) -> InviteView:
        """A code for one person, which can be used once. BadRequest for a time that is none (up to 30 days).

        ``phones`` (serials, or names of phones) and ``chats`` are the person's limits from the first moment. BadRequest
        for an owner; NotFound for a phone or a chat that was never seen.
        """

    async def invites(self, actor: Actor) -> Sequence[InviteView]:
        """Those that are open, the newest first."""

    async def revoke(self, actor: Actor, invite_id: str) -> InviteView: ...

    async def set_role(self, actor: Actor, who: str, role: Role) -> PersonView:
        """BadRequest for the last owner. What an owner had invited while they were one is void once they are not."""

    async def limit(
        self, actor: Actor, who: str, *, phones: Sequence[str] | None = None, chats: Sequence[str] | None = None
    ) -> PersonView:
        """What is given from now on, empty for every one; phones and chats as with ``invite``.

        BadRequest for an owner, who is never limited.
        """

    async def find(self, actor: Actor, who: str) -> PersonView: ...

    async def remove(self, actor: Actor, who: str) -> PersonView:
        """BadRequest for the last owner. Runs and schedules of theirs go on."""

    async def undo_remove(self, actor: Actor, person_id: str) -> PersonView:
        """Take back this owner's newest removal; BadRequest where that was of another person."""

    async def refused(self, actor: Actor, limit: int = 20) -> Sequence[RefusedView]:
        """What was refused, the newest first."""

    async def speak(self, actor: Actor, lang: str) -> Actor:
        """A person's own language."""

    async def stream(self, actor: Actor, wanted: bool) -> Actor:
        """Whether a person wants to see what the model thinks while it thinks."""
