"""Hosts: the processes that work phones, what phones each of them sees, and the phones that were ever seen.

A host's row is its name's: one process has it at a time, known by its token. Its heartbeat says that it lives; what it
sees of phones counts as long as that is fresh. Clocks of the machines have to agree, see ``clock_ahead``. What people
call a phone stays when it is away.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import sqlalchemy as sa

from storage.engine import Database
from storage.leases import LEASE_SECONDS
from storage.shielded import shielded
from storage.tables import host_phones, hosts, phone_requests, phones

UP, DRAINING, ENDED = "up", "draining", "ended"
USABLE, GONE = "device", "gone"
OPEN, DONE, FAILED = "open", "done", "failed"
SCREENSHOT = "screenshot"
ANSWERS_KEPT = timedelta(minutes=10)  # nobody waits for one that long


@dataclass(frozen=True, slots=True)
class HostRow:
    """``state``: up, draining (it begins nothing new) or ended. ``heartbeat_at``: when it was last heard."""

    name: str
    token: str
    release: str
    state: str
    started_at: datetime
    heartbeat_at: datetime


@dataclass(frozen=True, slots=True)
class HostPhone:
    """A phone as one host sees it. ``alive``: the host lives, so ``state`` holds.

    ``state``: ``device`` (a run can have it), ``offline``, ``unauthorized`` …, ``gone`` where it is listed no more.
    ``since``: when it became usable, or was so last; of a host that does not live, when that was last heard.
    """

    serial: str
    host: str
    state: str
    since: datetime
    alive: bool

    @property
    def usable(self) -> bool:
        return self.alive and self.state == USABLE


@dataclass(frozen=True, slots=True)
class PhoneRequest:
    """``kind``: ``screenshot``. ``jpeg``: what came of it; otherwise ``error`` (see ``agent_core.errors``)."""

    id: int
    host: str
    serial: str
    kind: str
    state: str
    jpeg: bytes | None
    error: str
    error_kind: str
    created_at: datetime


@shielded
class Hosts:
    """``seconds``: how long a host lives without a heartbeat."""

    def __init__(self, db: Database, *, seconds: float = LEASE_SECONDS) -> None:
        self._db = db
        self.ttl = timedelta(seconds=seconds)

    def _alive(self) -> sa.ColumnElement[bool]:
        return sa.and_(hosts.c.state != ENDED, hosts.c.heartbeat_at > self._db.now() - self.ttl)

    async def register(self, name: str, token: str, *, release: str = "", former: str = "") -> HostRow | None:
        """Take the name; None, or the row of the process that has it.

        ``former``: the token of a process that is known to be dead, so that its fresh heartbeat counts for nothing.
        """
        now = self._db.now()
        values = {"token": token, "release": release, "state": UP, "started_at": now, "heartbeat_at": now}
        free = sa.or_(~self._alive(), hosts.c.token.in_([token, *([former] if former else [])]))
        take = self._db.insert(hosts).values(name=name, **values)
        async with self._db.write() as connection:
            done = await connection.execute(
                take.on_conflict_do_update(index_elements=["name"], set_=values, where=free).returning(hosts.c.token)
            )
            if done.scalar_one_or_none() is not None:
                return None
            row = (await connection.execute(sa.select(hosts).where(hosts.c.name == name))).mappings().one()
        return HostRow(**row)

    async def beat(self, name: str, token: str) -> bool:
        """A heartbeat. False: the name is another process's now."""
        change = sa.update(hosts).where(hosts.c.name == name, hosts.c.token == token)
        async with self._db.write() as connection:
            return (await connection.execute(change.values(heartbeat_at=self._db.now()))).rowcount == 1

    async def set_state(self, name: str, token: str, state: str) -> None:
        """``draining``, or ``ended``: from then on it counts as gone."""
        change = sa.update(hosts).where(hosts.c.name == name, hosts.c.token == token)
        async with self._db.write() as connection:
            await connection.execute(change.values(state=state, heartbeat_at=self._db.now()))
        self._db.signal("runs").notify()

    async def sees(self, name: str, token: str, states: Mapping[str, str]) -> bool:
        """What the host sees now, by serial; of what it saw before and does not any more it is ``gone``.

        False, and nothing is written: the name is another process's now.
        """
        now = self._db.now()
        holder = sa.select(hosts.c.token).where(hosts.c.name == name).with_for_update()
        new = self._db.insert(host_phones)
        seen = [{"host": name, "serial": serial, "state": state, "since": now} for serial, state in states.items()]
        changed = new.excluded.state != host_phones.c.state
        # From one state in which no run can have it to another (offline, gone) it is away as long as it was.
        matters = sa.or_(host_phones.c.state == USABLE, new.excluded.state == USABLE)
        values = {
            "state": new.excluded.state,
            "since": sa.case((matters, new.excluded.since), else_=host_phones.c.since),
        }
        gone = (
            sa.update(host_phones)
            .where(host_phones.c.host == name, host_phones.c.serial.not_in(list(states)), host_phones.c.state != GONE)
            .values(state=GONE, since=sa.case((host_phones.c.state == USABLE, now), else_=host_phones.c.since))
        )
        async with self._db.write() as connection:
            if (await connection.execute(holder)).scalar_one_or_none() != token:
                return False
            if seen:
                into = new.values(seen).on_conflict_do_update(
                    index_elements=["host", "serial"], set_=values, where=changed
                )
                await connection.execute(into)
            await connection.execute(gone)
        self._db.signal("runs").notify()
        return True

    async def all(self) -> list[HostRow]:
        async with self._db.read() as connection:
            found = await connection.execute(sa.select(hosts).order_by(hosts.c.name))
            return [HostRow(**row) for row in found.mappings()]

    async def alive(self) -> set[str]:
        """The names of the hosts that live, those that drain among them."""
        async with self._db.read() as connection:
            return set((await connection.execute(sa.select(hosts.c.name).where(self._alive()))).scalars())

    async def phones(self) -> list[HostPhone]:
        """Every phone that was ever seen, once: as the host sees it that can use it, else as the newest one saw it.

        Where no host can, it is away since the last of them could.
        """
        statement = sa.select(
            host_phones.c.serial,
            host_phones.c.host,
            host_phones.c.state,
            host_phones.c.since,
            hosts.c.heartbeat_at,
            self._alive().label("alive"),
        ).join(hosts, hosts.c.name == host_phones.c.host)
        async with self._db.read() as connection:
            rows = (await connection.execute(statement)).all()
            before = (await connection.execute(sa.select(phones.c.serial, phones.c.seen_at))).all()
        # What was seen before there were hosts, or by a command, is known too.
        best = {row.serial: HostPhone(row.serial, "", GONE, row.seen_at, alive=False) for row in before}
        for row in rows:
            # Of a host that is not there any more: it was heard last when it saw the phone last, unless it was gone.
            since = row.since if row.alive or row.state == GONE else row.heartbeat_at
            phone = HostPhone(row.serial, row.host, row.state, since, bool(row.alive))
            known = best.get(phone.serial)
            if known is None or not known.host:
                best[phone.serial] = phone
                continue
            better, other = (phone, known) if _better(phone) > _better(known) else (known, phone)
            best[phone.serial] = better if better.usable else replace(better, since=max(better.since, other.since))
        return [best[serial] for serial in sorted(best)]

    async def clock_ahead(self) -> float:
        """By how many seconds this machine's clock is ahead of the database's; 0 on SQLite, which has none."""
        if self._db.is_sqlite:
            return 0.0
        async with self._db.read() as connection:
            before = self._db.now()
            theirs: datetime = (await connection.execute(sa.select(sa.func.clock_timestamp()))).scalar_one()
            after = self._db.now()
        # An answer that took its time is no wrong clock: theirs was read at some moment between the two.
        least, most = (before - theirs).total_seconds(), (after - theirs).total_seconds()
        return max(least, 0.0) + min(most, 0.0)

    # -- what one process wants of a phone that another reaches

    async def want(self, host: str, serial: str, kind: str = SCREENSHOT) -> int:
        """Ask the host for something; the request's number, for ``answer``."""
        new = sa.insert(phone_requests).values(
            host=host, serial=serial, kind=kind, state=OPEN, created_at=self._db.now()
        )
        async with self._db.write() as connection:
            found: int = (await connection.execute(new.returning(phone_requests.c.id))).scalar_one()
        self._db.signal("phone_requests").notify()
        return found

    async def wanted(self, host: str) -> list[PhoneRequest]:
        """What this host is to answer, the oldest first."""
        statement = (
            sa.select(phone_requests)
            .where(phone_requests.c.host == host, phone_requests.c.state == OPEN)
            .order_by(phone_requests.c.id)
        )
        async with self._db.read() as connection:
            return [PhoneRequest(**row) for row in (await connection.execute(statement)).mappings()]

    async def give(self, number: int, *, jpeg: bytes | None = None, error: str = "", error_kind: str = "") -> None:
        """The host's answer: a picture, or what went wrong."""
        state = DONE if jpeg is not None else FAILED
        change = sa.update(phone_requests).where(phone_requests.c.id == number, phone_requests.c.state == OPEN)
        async with self._db.write() as connection:
            await connection.execute(change.values(state=state, jpeg=jpeg, error=error, error_kind=error_kind))
        self._db.signal("phone_requests").notify()

    async def answer(self, number: int) -> PhoneRequest | None:
        """The request once it is answered, None until then; it is gone with that."""
        over = sa.delete(phone_requests).where(phone_requests.c.id == number, phone_requests.c.state != OPEN)
        async with self._db.write() as connection:
            row = (await connection.execute(over.returning(*phone_requests.c))).mappings().one_or_none()
        return None if row is None else PhoneRequest(**row)

    async def withdraw(self, number: int) -> None:
        """Nobody waits for it any more."""
        async with self._db.write() as connection:
            await connection.execute(sa.delete(phone_requests).where(phone_requests.c.id == number))

    async def forget_requests(self) -> int:
        """Delete what was left behind by who asked and died, answered or not; how many."""
        old = phone_requests.c.created_at < self._db.now() - ANSWERS_KEPT
        async with self._db.write() as connection:
            return (await connection.execute(sa.delete(phone_requests).where(old))).rowcount


def _better(phone: HostPhone) -> tuple[bool, bool, datetime]:
    return phone.usable, phone.alive and phone.state != GONE, phone.since


@shielded
class Phones:
    def __init__(self, db: Database) -> None:
        self._db = db

    async def models(self) -> dict[str, str]:
        """The model ("" for not known) of each phone that was seen, by its serial."""
        async with self._db.read() as connection:
            found = await connection.execute(sa.select(phones.c.serial, phones.c.model).order_by(phones.c.serial))
            return {row.serial: row.model for row in found}

    async def saw(self, models: Mapping[str, str]) -> None:
        """These are attached now. A model that is not told ("": the phone does not let us in) stays as it was."""
        now = self._db.now()
        async with self._db.write() as connection:
            for serial, model in models.items():
                new = self._db.insert(phones).values(serial=serial, model=model, seen_at=now)
                values = {"seen_at": now, **({"model": model} if model else {})}
                await connection.execute(new.on_conflict_do_update(index_elements=["serial"], set_=values))
