"""Paired people: pairing by a code, finding a person, and refusing strangers and too many requests."""

from __future__ import annotations

import asyncio
import secrets
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from agent_core.errors import RateLimited
from agent_core.texts import language_of
from bot.desk.actors import AccessDenied, Actor, Role, StillLimited
from bot.desk.context import CONSOLE, TELEGRAM, DeskContext, DeskService, own_chat, own_chats
from bot.desk.request_limits import Notebook, PairingLimit
from bot.desk.views import OWN_CHAT
from storage.engine import Database
from storage.events import Events
from storage.people import TERMINAL, CodeRow, People, PersonRow

CODE_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # no characters that are easily confused
CODE_LENGTH = 8
LINK_BYTES = 24  # of the code in a link, which nobody types
CODE_LIFETIME = timedelta(hours=24)
MAX_NAME = 64
SECRET = "secret"  # noqa: S105 - no secret, but the reason why a webhook's caller was turned away
FIRST = "first"  # the maker of the codes for the first person


class DeskPeople(DeskService):
    """The service for pairing and for who somebody is."""

    def __init__(self, context: DeskContext) -> None:
        super().__init__(context)
        self._limit = PairingLimit()
        self._notebook = Notebook()
        self._one_by_one = asyncio.Lock()  # so that simultaneous guesses are counted too

    async def pair(self, channel: str, user_id: str, name: str, lang: str, code: str) -> Actor:
        """Pair a stranger by a pairing code, which is used up, and return them. The first person becomes an owner.

        Raises AccessDenied for a wrong code, RateLimited after too many of them (the code is not checked then), and
        StillLimited once the person has been told that.
        """
        person = f"{channel}:{user_id}"
        name = plain_name(name) or user_id
        async with self._one_by_one:
            try:
                self._limit.check(person, self._db.now())
            except StillLimited:
                raise
            except RateLimited:
                await self._refused(person, channel, {"name": name, "limited": True})
                raise
            row = await self._paired(channel, user_id, name, lang, code)
            if row is None:
                self._limit.wrong(person, self._db.now())
            else:
                self._limit.right(person)
        if row is None:
            await self._refused(person, channel, {"name": name})
            said = "This pairing code is wrong or was used."
            if await self._owners():
                raise AccessDenied(said, advice="Ask an owner for a new one.", key="wrong_code")
            advice = "The code stands in the terminal of phonedesk serve, which shows a new one when it starts."
            raise AccessDenied(said, advice=advice, key="wrong_first_code")
        await self._joined(row, person, channel)
        return actor_of(row)

    async def join(self, code: str, lang: str) -> Actor | None:
        """Make a member of the person with this code of the console, which is used up. Return None for a wrong code."""
        row = await People(self._db).join(code, lang=language_of(lang))
        if row is None:
            return None
        if OWN_CHAT in (row.chats or ()):
            own = own_chat(row).key
            await People(self._db).limit(row.id, chats=[own if chat == OWN_CHAT else chat for chat in row.chats or ()])
        await self._joined(row, str(row.id), CONSOLE)
        return await self.actor(CONSOLE, str(row.id))

    async def _joined(self, row: PersonRow, who: str, channel: str) -> None:
        """Write down that somebody is in. ``who``: as the audit log names them."""
        await self._audit.write(who, channel, "pair", {"name": row.name})
        # Each start without an owner has printed a code. Now that there is an owner, the other codes are void.
        if row.role == Role.OWNER.value:
            await People(self._db).drop_codes(FIRST)
        await Events(self._db).append("", "paired", {"name": row.name, "role": row.role})

    async def _refused(self, person: str, channel: str, detail: dict[str, Any]) -> None:
        """Write a refused pairing to the audit log, unless it has many already: strangers must not fill it."""
        noted = f"{person} limited" if "limited" in detail else person
        if self._notebook.takes(noted, self._db.now()):
            await self._audit.write(person, channel, "pair", detail, allowed=False)

    async def _paired(self, channel: str, user_id: str, name: str, lang: str, code: str) -> PersonRow | None:
        if channel != TELEGRAM or not user_id.isdecimal():
            return None
        row = await People(self._db).pair(code, telegram_id=int(user_id), name=name, lang=language_of(lang))
        if row is None or OWN_CHAT not in (row.chats or ()):
            return row
        chats = [f"{TELEGRAM}:{user_id}" if chat == OWN_CHAT else chat for chat in row.chats or ()]
        await People(self._db).limit(row.id, chats=chats)
        return await People(self._db).get(row.id)

    async def actor(self, channel: str, user_id: str) -> Actor | None:
        """Return the person, or None for a stranger. The channel adds the chat and the request.

        In the console a person is known by our own id, and the owner at this machine is one, too. Somebody who is
        limited to certain chats may use it only if one of their own chats is among them.
        """
        if channel == CONSOLE:
            if user_id == TERMINAL:
                return Actor(TERMINAL, CONSOLE, TERMINAL, TERMINAL, self.context.lang, Role.OWNER)
            person = await self._person_of(user_id)
            if person is None:
                return None
            actor = actor_of(person)
            if actor.chats and not own_chats(person) & set(actor.chats):
                return None
            return replace(actor, channel=CONSOLE, user_id=user_id, chats=())
        if channel != TELEGRAM or not user_id.isdecimal():
            return None
        row = await People(self._db).by_telegram(int(user_id))
        return actor_of(row) if row else None

    async def members(self, channel: str) -> Sequence[Actor]:
        """Return everybody who is paired in this channel."""
        return [actor for row in await People(self._db).all() if (actor := actor_of(row)).channel == channel]

    async def admit(self, actor: Actor) -> None:
        """Count a request. Raises RateLimited if it is one too many, and StillLimited if the person already knows
        that.
        """
        await self._count(actor, "asked")

    async def turned_away(self, channel: str, user_id: str, name: str, what: str) -> None:
        """Write a refusal to the audit log that no call of the desk writes. ``what``: one word for the attempt."""
        known = await self.actor(channel, user_id)
        who = known.id if known else f"{channel}:{user_id}"
        if self._notebook.takes(who, self._db.now()):
            why = what if known or what == SECRET else "stranger"
            detail = {"name": plain_name(name), "why": why}
            await self._audit.write(who, channel, what, detail, allowed=False)

    async def first_code(self) -> str | None:
        """Return a new code for the first owner; None if there is an owner already."""
        if await self._owners():
            return None
        await People(self._db).drop_codes(FIRST)
        return await new_code(self._db, Role.OWNER, created_by=FIRST)


async def new_code(db: Database, role: Role, *, created_by: str) -> str:
    """Return a new pairing code that can be used once within a day. Only its hash is stored."""
    code, _ = await add_code(db, role, created_by=created_by)
    return code


async def add_code(
    db: Database,
    role: Role,
    *,
    created_by: str,
    lifetime: timedelta = CODE_LIFETIME,
    phones: Sequence[str] = (),
    chats: Sequence[str] = (),
    name: str = "",
) -> tuple[str, CodeRow]:
    """Return a new pairing code and its row. Only the code's hash is stored.

    name: the person who joins by the console; "" for a code that is sent to the bot.
    phones, chats: the limits of whoever uses the code; empty for none.
    """
    code = "".join(secrets.choice(CODE_ALPHABET) for _ in range(CODE_LENGTH))
    if name:
        code = secrets.token_urlsafe(LINK_BYTES)
    row = await People(db).add_code(
        code, role=role.value, lifetime=lifetime, created_by=created_by, chats=chats, serials=phones, name=name
    )
    return code, row


def plain_name(name: str) -> str:
    """Return a name that a person chose as one line, without characters that reverse or hide the text beside it."""
    shown = "".join(
        " " if char.isspace() else char for char in name if char.isspace() or unicodedata.category(char)[0] != "C"
    )
    return " ".join(shown.split())[:MAX_NAME]


def actor_of(row: PersonRow) -> Actor:
    """Return the actor of a person in their own chat. An owner is never limited to phones or chats."""
    chat = own_chat(row)
    return Actor(
        id=str(row.id),
        channel=chat.channel,
        user_id=chat.chat_id,
        name=row.name,
        lang=language_of(row.lang),
        role=Role(row.role),
        phones=() if row.role == Role.OWNER else tuple(row.serials or ()),
        chats=() if row.role == Role.OWNER else tuple(row.chats or ()),
        streams=row.streams,
    )
