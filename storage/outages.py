"""The subjects of alerts and since when each is down: rows, so that a restart repeats no alert and forgets none.

A change that people are alerted to is written in one transaction with its event ``alert``: ``subject``, ``state`` (down
or up), ``since`` (ISO, when it went down), ``seconds`` it was down (up only) and ``why``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa

from storage.events import append_event
from storage.repository import Repository
from storage.tables import events, watched


@dataclass(frozen=True, slots=True)
class OutageRow:
    """The state of a subject. ``down_since`` None: it is up. ``told_at`` None: nobody has been alerted."""

    subject: str
    down_since: datetime | None
    seen_down_at: datetime | None
    told_at: datetime | None
    why: str
    looked_at: datetime


@dataclass(frozen=True, slots=True)
class Sign:
    """The evidence in a run's event: the model replied (``error_kind`` ""), or an error ended the run or put it off."""

    event_id: int
    at: datetime
    error_kind: str = ""


class Outages(Repository):
    """The table of outages."""

    async def all(self) -> list[OutageRow]:
        return await self._rows(OutageRow, sa.select(watched).order_by(watched.c.subject))

    async def up(self, subject: str) -> bool:
        """Record that the subject works.

        Return True if people were alerted that it was down; they now get the message that it is back.
        """
        now = self._db.now()
        fresh = {"down_since": None, "seen_down_at": None, "told_at": None, "why": "", "looked_at": now}
        add = self._db.insert(watched).values(subject=subject, **fresh).on_conflict_do_nothing()
        async with self._db.write(durable=True) as connection:
            await connection.execute(add)
            row = OutageRow(**(await connection.execute(self._locked(subject))).mappings().one())
            await connection.execute(sa.update(watched).where(watched.c.subject == subject).values(**fresh))
            if row.down_since is None or row.told_at is None:
                return False
            told = {
                "subject": subject,
                "state": "up",
                "since": row.down_since.isoformat(),
                "seconds": (now - row.down_since).total_seconds(),
                "why": row.why,
            }
            await append_event(connection, self._db, "", "alert", told)
        self._notify("events")
        return True

    async def down(self, subject: str, why: str, *, after: timedelta, gap: timedelta) -> bool:
        """Record that the subject does not work. Return True if that has lasted for ``after`` now, so that people are
        alerted.

        gap: if it was not checked for longer than this, and nobody was alerted, it counts as down only from now on.
        """
        now = self._db.now()
        fresh = {"down_since": now, "seen_down_at": now, "why": why, "looked_at": now}
        add = self._db.insert(watched).values(subject=subject, **fresh).on_conflict_do_nothing()
        async with self._db.write(durable=True) as connection:
            await connection.execute(add)
            row = OutageRow(**(await connection.execute(self._locked(subject))).mappings().one())
            since = row.down_since
            unseen = row.seen_down_at is None or now - row.seen_down_at > gap
            if since is None or (row.told_at is None and unseen):
                since = now
            tell = row.told_at is None and now - since >= after
            values = {**fresh, "down_since": since, "told_at": now if tell else row.told_at}
            await connection.execute(sa.update(watched).where(watched.c.subject == subject).values(**values))
            if tell:
                told = {"subject": subject, "state": "down", "since": since.isoformat(), "why": why}
                await append_event(connection, self._db, "", "alert", told)
        if tell:
            self._notify("events")
        return tell

    async def once(self, subject: str, which: str, why: Mapping[str, object]) -> bool:
        """Alert people about ``subject`` once for each ``which`` (a day …), with ``why``.

        Return False if they were alerted already.
        """
        now, name = self._db.now(), f"{subject}:{which}"
        row = {"subject": name, "down_since": now, "seen_down_at": now, "told_at": now, "looked_at": now}
        told = {"subject": name, "state": "down", "since": now.isoformat(), **why}
        async with self._db.write(durable=True) as connection:
            add = self._db.insert(watched).values(**row).on_conflict_do_nothing()
            if not (await connection.execute(add)).rowcount:
                return False
            earlier = sa.and_(watched.c.subject.like(f"{subject}:%"), watched.c.subject < name)
            await connection.execute(sa.delete(watched).where(earlier))
            await append_event(connection, self._db, "", "alert", told)
        self._notify("events")
        return True

    async def forget(self, subject: str) -> None:
        await self._execute(sa.delete(watched).where(watched.c.subject == subject))

    async def signs(self, after: int) -> list[Sign]:
        """Return the evidence from runs in the events after this id, oldest first."""
        kind = events.c.data["error_kind"].as_string()
        replied = (events.c.kind == "step") & events.c.data[("timings", "first_token")].as_string().is_not(None)
        failed = events.c.kind.in_(("outcome", "status")) & (sa.func.coalesce(kind, "") != "")
        wanted = (
            sa.select(events.c.id, events.c.created_at, events.c.kind, kind.label("error_kind"))
            .where(events.c.id > after, sa.or_(replied, failed))
            .order_by(events.c.id)
        )
        return [
            Sign(row.id, row.created_at, "" if row.kind == "step" else str(row.error_kind))
            for row in await self._read(wanted)
        ]

    @staticmethod
    def _locked(subject: str) -> sa.Select[tuple[object, ...]]:
        return sa.select(watched).where(watched.c.subject == subject).with_for_update()
