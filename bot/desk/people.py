"""Who may come in: pairing by a code, and who somebody is."""

from __future__ import annotations

import asyncio
import secrets
from datetime import timedelta

from agent_core.errors import RateLimited
from bot.desk.house import DeskPart, House
from bot.desk.pairing import PairingLimit
from bot.desk.port import AccessDenied, Actor, Role
from storage.engine import Database
from storage.people import People, PersonRow

CODE_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # no letter that is taken for a digit
CODE_LENGTH = 8
CODE_LIFETIME = timedelta(hours=24)
TELEGRAM = "telegram"
FIRST = "first"  # who makes the codes for the first person


class PeopleDesk(DeskPart):
    def __init__(self, house: House) -> None:
        super().__init__(house)
        self._limit = PairingLimit()
        self._one_by_one = asyncio.Lock()  # guesses that come all at once are counted too

    async def pair(self, channel: str, user_id: str, name: str, lang: str, code: str) -> Actor:
        """Take a stranger in by a pairing code, which is used up.

        AccessDenied on a wrong one, RateLimited after too many: then the code is not even looked at.
        """
        person = f"{channel}:{user_id}"
        async with self._one_by_one:
            try:
                self._limit.check(person, self._db.now())
            except RateLimited:
                await self._audit.write(person, channel, "pair", {"name": name, "limited": True}, allowed=False)
                raise
            row = await self._paired(channel, user_id, name, lang, code)
            if row is None:
                self._limit.wrong(person, self._db.now())
            else:
                self._limit.right(person)
        await self._audit.write(person, channel, "pair", {"name": name}, allowed=row is not None)
        if row is None:
            raise AccessDenied("This pairing code is wrong or was used.", advice="Ask an owner for a new one.")
        # Each start without an owner has printed a code: with the owner there, the others open nothing any more.
        if row.role == Role.OWNER.value:
            await People(self._db).drop_codes(FIRST)
        return _actor(row)

    async def _paired(self, channel: str, user_id: str, name: str, lang: str, code: str) -> PersonRow | None:
        if channel != TELEGRAM or not user_id.isdecimal():
            return None
        return await People(self._db).pair(
            code, telegram_id=int(user_id), name=name, lang="zh" if lang.lower().startswith("zh") else "en"
        )

    async def actor(self, channel: str, user_id: str) -> Actor | None:
        if channel != TELEGRAM or not user_id.isdecimal():
            return None
        row = await People(self._db).by_telegram(int(user_id))
        return _actor(row) if row else None

    async def first_code(self) -> str | None:
        """A new code for the first owner; None where there is one already."""
        if any(person.role == Role.OWNER.value for person in await People(self._db).all()):
            return None
        await People(self._db).drop_codes(FIRST)
        return await new_code(self._db, Role.OWNER, created_by=FIRST)


async def new_code(db: Database, role: Role, *, created_by: str) -> str:
    """A pairing code that can be used once within a day; only its hash is kept."""
    code = "".join(secrets.choice(CODE_ALPHABET) for _ in range(CODE_LENGTH))
    await People(db).add_code(code, role=role.value, lifetime=CODE_LIFETIME, created_by=created_by)
    return code


def _actor(row: PersonRow) -> Actor:
    return Actor(
        id=str(row.id),
        channel=TELEGRAM,
        user_id=str(row.telegram_id),
        name=row.name,
        lang="zh" if row.lang == "zh" else "en",
        role=Role(row.role),
    )
