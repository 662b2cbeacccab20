"""Log-in links of the console, and the sessions that they begin. Only the hashes of their secrets are stored."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.api_keys import RANDOM_BYTES, hash_of
from storage.repository import Repository
from storage.tables import console_sessions

LINK, SESSION = "link", "session"
LINK_LIFETIME = timedelta(minutes=10)
SESSION_LIFETIME = timedelta(days=30)  # from its last use
RENEWED_EVERY = timedelta(hours=1)  # precision of "last use", so that not every request writes a row


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A link or a session. ``actor``: a person's id, or ``terminal``. ``lang``: the language of its pages."""

    kind: str
    actor: str
    lang: str
    created_at: datetime
    expires_at: datetime


_SHOWN = [column for column in console_sessions.c if column.name != "secret_hash"]


class ConsoleSessions(Repository):
    """The table of links and sessions."""

    async def add_link(self, actor: str, lang: str, lifetime: timedelta = LINK_LIFETIME) -> str:
        """Return the code of a new link. It begins one session within ``lifetime``."""
        now = self._db.now()
        async with self._db.write(durable=True) as connection:
            await connection.execute(sa.delete(console_sessions).where(console_sessions.c.expires_at <= now))
            return await self._add(connection, LINK, actor, lang, lifetime)

    async def begin(self, code: str) -> tuple[str, SessionRow] | None:
        """Use up a link. Return the secret of the new session and its row, or None if there is no such link."""
        use = sa.delete(console_sessions).where(self._valid(code, LINK)).returning(*_SHOWN)
        async with self._db.write(durable=True) as connection:
            link = (await connection.execute(use)).mappings().one_or_none()
            if link is None:
                return None
            secret = await self._add(connection, SESSION, link["actor"], link["lang"], SESSION_LIFETIME)
            found = await connection.execute(sa.select(*_SHOWN).where(self._valid(secret, SESSION)))
            return secret, SessionRow(**found.mappings().one())

    async def of(self, secret: str) -> SessionRow | None:
        """Return the session with this secret, and prolong it; None if there is none, or its time is over."""
        async with self._db.read() as connection:
            found = await connection.execute(sa.select(*_SHOWN).where(self._valid(secret, SESSION)))
            row = found.mappings().one_or_none()
        if row is None:
            return None
        until = self._db.now() + SESSION_LIFETIME
        if until - row["expires_at"] >= RENEWED_EVERY:
            await self._change(secret, expires_at=until)
        return SessionRow(**row)

    async def speak(self, secret: str, lang: str) -> None:
        """Set the language of a session's pages."""
        await self._change(secret, lang=lang)

    async def speak_of(self, actor: str, lang: str) -> None:
        """Set the language of all sessions of this person."""
        theirs = sa.update(console_sessions).where(console_sessions.c.actor == actor).values(lang=lang)
        await self._execute(theirs)

    async def end(self, secret: str) -> None:
        """End a session."""
        await self._execute(sa.delete(console_sessions).where(self._valid(secret, SESSION)), durable=True)

    async def end_of(self, actor: str) -> None:
        """End all sessions of this person, and make their links void."""
        await self._execute(sa.delete(console_sessions).where(console_sessions.c.actor == actor), durable=True)

    async def _add(self, connection: AsyncConnection, kind: str, actor: str, lang: str, lifetime: timedelta) -> str:
        secret = secrets.token_urlsafe(RANDOM_BYTES)
        now = self._db.now()
        row = {"kind": kind, "actor": actor, "lang": lang, "created_at": now, "expires_at": now + lifetime}
        await connection.execute(sa.insert(console_sessions).values(secret_hash=hash_of(secret), **row))
        return secret

    async def _change(self, secret: str, **values: str | datetime) -> None:
        change = sa.update(console_sessions).where(self._valid(secret, SESSION)).values(**values)
        await self._execute(change)

    def _valid(self, secret: str, kind: str) -> sa.ColumnElement[bool]:
        table = console_sessions.c
        is_it = (table.secret_hash == hash_of(secret)) & (table.kind == kind)
        return is_it & (table.expires_at > self._db.now())
