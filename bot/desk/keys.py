"""API keys: the actor of a key, whose rights are checked like a person's in every channel, and the rights of programs
that act on phones themselves. Each request writes the audit log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agent_core.texts import language_of
from bot.desk.actors import Actor, BadRequest, NotFound, Role, no_phone
from bot.desk.context import API, DeskService
from bot.desk.incoming_webhooks import incoming_names
from bot.desk.people import plain_name
from bot.desk.phonebook import PhoneBook
from storage.api_keys import ApiKeys, KeyRow, NameTaken
from storage.engine import Database
from storage.runs import ACTIVE, Runs

SCHEME = "bearer"
MOST_GOING = 1000  # runs that are not over
MAX_HEADER = 512  # characters; no key is as long, and nobody can make us hash a megabyte


async def actor_of_key(db: Database, header: str) -> Actor | None:
    """Return the actor of an ``Authorization`` header's whole value (``Bearer …``); None if it holds no known key."""
    if len(header) > MAX_HEADER or not header.isascii():
        return None
    scheme, _, key = header.strip().partition(" ")
    if scheme.lower() != SCHEME or not key.strip():
        return None
    row = await ApiKeys(db).of(key.strip())
    return actor_of_row(row) if row else None


def actor_of_row(row: KeyRow) -> Actor:
    """Return the actor of a key. Its id has a prefix, so the audit log tells it from a person with the same number."""
    return Actor(
        id=f"key:{row.id}",
        channel=API,
        user_id=str(row.id),
        name=row.name,
        lang=language_of(row.lang),
        role=Role(row.role),
        phones=tuple(row.serials or ()),
    )


async def program_names(db: Database) -> dict[str, str]:
    """Return the names of all keys and incoming webhooks, by the actor's id that runs store."""
    return {actor_of_row(row).id: row.name for row in await ApiKeys(db).all()} | await incoming_names(db)


class DeskKeys(DeskService):
    """The service for API keys. Owners make keys, list them without the secrets, and remove them."""

    async def add(self, actor: Actor, name: str, role: Role, *, phones: Sequence[str] = ()) -> tuple[str, KeyRow]:
        """Make a key, and return it with its row. The key cannot be shown again later.

        phones: the serials or names of the phones that it may use; empty for all.
        Raises BadRequest if the name is taken or not valid, or if an owner's key is limited to phones, and NotFound if
        a phone is not known.
        """
        book = await self._book()
        serials = [book.serial(phone) for phone in phones if phone]
        await self._allow(actor, Role.OWNER, "keys add", name=name, role=role.value, phones=serials)
        if not name or plain_name(name) != name:
            said, advice = "A key's name is one line of at most 64 letters.", "Name the program that has it."
            raise BadRequest(said, advice=advice, key="key_name")
        if role is Role.OWNER and serials:
            said, advice = "An owner is never limited to phones.", "Make it an operator's or viewer's key."
            raise BadRequest(said, advice=advice, key="key_of_owner")
        if unknown := next((serial for serial in serials if serial not in book.known), ""):
            raise no_phone(unknown)
        try:
            return await ApiKeys(self._db).add(
                name, role=role.value, lang=actor.lang, serials=serials, created_by=actor.id
            )
        except NameTaken:
            said, advice = f"There is a key named {name} already.", "Choose another name."
            raise BadRequest(said, advice=advice, key="key_there", name=name) from None

    async def all(self, actor: Actor) -> list[KeyRow]:
        """Return all keys, without the secrets. Times are in the desk's zone."""
        await self._allow(actor, Role.OWNER, "keys list")
        zone = self._zone
        return [
            replace(row, last_used_at=row.last_used_at.astimezone(zone)) if row.last_used_at else row
            for row in await ApiKeys(self._db).all()
        ]

    async def rotate(self, actor: Actor, name: str) -> tuple[str, KeyRow]:
        """Give a key a new secret, and return it with its row. Its runs go on; the old secret is refused at once.

        Raises NotFound if no key has this name.
        """
        await self._allow(actor, Role.OWNER, "keys rotate", name=name)
        made = await ApiKeys(self._db).rotate(name)
        if made is None:
            raise _no_key(name)
        return made

    async def remove(self, actor: Actor, name: str) -> tuple[KeyRow, int]:
        """Remove a key, and stop its runs, sweeps and plans. Returns the key and how many were active or queued.

        Raises NotFound if no key has this name.
        """
        await self._allow(actor, Role.OWNER, "keys remove", name=name)
        row = await ApiKeys(self._db).remove(name)
        if row is None:
            raise _no_key(name)
        began = await Runs(self._db).find(statuses=ACTIVE, requested_by=actor_of_row(row).id, limit=MOST_GOING)
        going = [run for run in began if not run.parent_id]  # a sweep or a plan ends its own runs
        for run in going:
            await self.context.runs.request_stop(run.id, by=actor.name)
        return row, len(going)


def _no_key(name: str) -> NotFound:
    said, advice = f"There is no key named {name}.", "See `phonedesk keys list`."
    return NotFound(said, advice=advice, key="no_key", name=name)


class DeskPrograms(DeskService):
    """The service for channels in which a program acts on a phone in this process instead of queueing a run."""

    async def may_act(
        self, actor: Actor, command: str, device_id: str = "", *, paced: bool = True, **detail: Any
    ) -> str:
        """Return the serial of the phone that ``device_id`` names, or of the default one if it is "".

        paced: whether the call counts towards the limit of requests within a minute.
        Raises AccessDenied for a viewer or for a phone that is not theirs, NotFound for one that nobody has seen.
        """
        wanted, book = await self._meant(actor, device_id)
        await self._allow(actor, Role.OPERATOR, command, phone=wanted, paced=paced, serial=wanted, **detail)
        if device_id and wanted not in book.known:
            raise no_phone(device_id)
        return wanted

    async def serial_of(self, actor: Actor, device_id: str = "") -> str:
        """Return the same serial as ``may_act``, without checking the right to use the phone."""
        wanted, _ = await self._meant(actor, device_id)
        return wanted

    async def _meant(self, actor: Actor, device_id: str) -> tuple[str, PhoneBook]:
        book = await self._book(await self.context.entries() if device_id else [])
        return self._phone_for(actor, book.serial(device_id) if device_id else "", book), book

    async def may_list(self, actor: Actor) -> None:
        """Raise AccessDenied if the actor may not list phones. ``sees`` tells which of them are theirs."""
        await self._allow(actor, Role.VIEWER, "mcp devices", paced=False)
