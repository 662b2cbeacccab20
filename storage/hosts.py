"""Hosts: the processes that have phones, which phones each of them sees, and every phone that was ever seen.

A host's row belongs to its name. One process has the name at a time, known by its token. A heartbeat shows that it is
alive; the phones that it reported count as long as the heartbeat is fresh. The clocks of the machines have to agree,
see ``clock_ahead``. A phone keeps its name while it is away.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.engine import Database
from storage.leases import LEASE_SECONDS
from storage.repository import Repository
from storage.runs.rows import QUEUED
from storage.tables import contacts, host_phones, hosts, phone_addresses, phone_requests, phones, runs, schedules

UP, DRAINING, ENDED = "up", "draining", "ended"
USABLE, GONE = "device", "gone"
SHARED = "shared "  # in front of an identity that several phones have
OPEN, DONE, FAILED = "open", "done", "failed"
ANSWERS_KEPT = timedelta(minutes=10)  # nobody waits for an answer that long


@dataclass(frozen=True, slots=True)
class HostRow:
    """A host. ``state``: up, draining (begins nothing new) or ended. ``heartbeat_at``: its last heartbeat."""

    name: str
    token: str
    release: str
    state: str
    started_at: datetime
    heartbeat_at: datetime


@dataclass(frozen=True, slots=True)
class HostPhone:
    """A phone as one host sees it. ``alive``: the host is alive, so ``state`` holds.

    ``state``: ``device`` (usable), ``offline``, ``unauthorized`` …, or ``gone`` if it is no longer listed. ``since``:
    when it became usable, or was last usable; if the host is dead, the host's last heartbeat.
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
    """A request to a host. ``kind``: ``screenshot``. It ends with ``jpeg`` or ``error`` (see ``agent_core.errors``)."""

    id: int
    host: str
    serial: str
    kind: str
    state: str
    jpeg: bytes | None
    error: str
    error_kind: str
    created_at: datetime


def _alive(since: datetime | sa.BindParameter[datetime]) -> sa.ColumnElement[bool]:
    return sa.and_(hosts.c.state != ENDED, hosts.c.heartbeat_at > since)


# Built once, because every view of phones asks for them: see ``storage.history``.
_HOST_PHONES = sa.select(
    host_phones.c.serial,
    host_phones.c.host,
    host_phones.c.state,
    host_phones.c.since,
    hosts.c.heartbeat_at,
    _alive(sa.bindparam("since")).label("alive"),
).join(hosts, hosts.c.name == host_phones.c.host)
_SEEN = sa.select(phones.c.serial, phones.c.seen_at)
_MODELS = sa.select(phones.c.serial, phones.c.model).order_by(phones.c.serial)
_ADDRESSES = sa.select(phone_addresses).order_by(phone_addresses.c.seen_at)


class Hosts(Repository):
    """The tables of hosts and of the phones they see.

    ``seconds``: how long a host counts as alive without a heartbeat.
    """

    def __init__(self, db: Database, *, seconds: float = LEASE_SECONDS) -> None:
        super().__init__(db)
        self.ttl = timedelta(seconds=seconds)

    def _alive(self) -> sa.ColumnElement[bool]:
        return _alive(self._db.now() - self.ttl)

    async def register(self, name: str, token: str, *, release: str = "", former: str = "") -> HostRow | None:
        """Take the name. Return None, or the row of the process that has it.

        former: the token of a process that is known to be dead, so that its fresh heartbeat does not count.
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
        """Send a heartbeat. Return False if another process has the name now."""
        change = sa.update(hosts).where(hosts.c.name == name, hosts.c.token == token)
        async with self._db.write() as connection:  # it may take a while to begin: the time is read inside
            return (await connection.execute(change.values(heartbeat_at=self._db.now()))).rowcount == 1

    async def set_state(self, name: str, token: str, state: str) -> None:
        """Set the state: ``draining``, or ``ended``, after which the host counts as gone."""
        change = sa.update(hosts).where(hosts.c.name == name, hosts.c.token == token)
        async with self._db.write() as connection:
            await connection.execute(change.values(state=state, heartbeat_at=self._db.now()))
        self._notify("runs")

    async def sees(self, name: str, token: str, states: Mapping[str, str]) -> bool:
        """Store which phones the host sees now, by serial. Phones that it no longer sees become ``gone``.

        Return False, and write nothing, if another process has the name now.
        """
        now = self._db.now()
        holder = sa.select(hosts.c.token).where(hosts.c.name == name).with_for_update()
        new = self._db.insert(host_phones)
        seen = [{"host": name, "serial": serial, "state": state, "since": now} for serial, state in states.items()]
        changed = new.excluded.state != host_phones.c.state
        # A change between two unusable states (offline, gone) does not restart the time for which the phone is away.
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
        self._notify("runs")
        return True

    async def all(self) -> list[HostRow]:
        return await self._rows(HostRow, sa.select(hosts).order_by(hosts.c.name))

    async def alive(self) -> set[str]:
        """Return the names of the hosts that are alive, including draining ones."""
        async with self._db.read() as connection:
            return set((await connection.execute(sa.select(hosts.c.name).where(self._alive()))).scalars())

    async def phones(self) -> list[HostPhone]:
        """Return every phone that was ever seen, once.

        A phone is returned as seen by the host that can use it, else as seen last. If no host can use it, ``since`` is
        when the last of them could.
        """
        async with self._db.read() as connection:
            rows = (await connection.execute(_HOST_PHONES, {"since": self._db.now() - self.ttl})).all()
            before = (await connection.execute(_SEEN)).all()
        # Phones that were seen before there were hosts, or by a command, are known too.
        best = {row.serial: HostPhone(row.serial, "", GONE, row.seen_at, alive=False) for row in before}
        for row in rows:
            # A dead host saw the phone until its last heartbeat, unless the phone was gone by then.
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
        """Return how many seconds this machine's clock is ahead of the database's; 0 on SQLite, which has no clock."""
        if self._db.is_sqlite:
            return 0.0
        async with self._db.read() as connection:
            before = self._db.now()
            theirs: datetime = (await connection.execute(sa.select(sa.func.clock_timestamp()))).scalar_one()
            after = self._db.now()
        # A slow query is not a wrong clock: the database read its clock at some moment between the two.
        least, most = (before - theirs).total_seconds(), (after - theirs).total_seconds()
        return max(least, 0.0) + min(most, 0.0)

    # -- requests of one process to a phone that another process has

    async def want(self, host: str, serial: str) -> int:
        """Store a request for a picture of a phone to its host. Return its number, for ``answer``."""
        new = sa.insert(phone_requests).values(
            host=host, serial=serial, kind="screenshot", state=OPEN, created_at=self._db.now()
        )
        async with self._db.write() as connection:
            found: int = (await connection.execute(new.returning(phone_requests.c.id))).scalar_one()
        self._notify("phone_requests")
        return found

    async def wanted(self, host: str) -> list[PhoneRequest]:
        """Return the open requests to this host, oldest first."""
        statement = (
            sa.select(phone_requests)
            .where(phone_requests.c.host == host, phone_requests.c.state == OPEN)
            .order_by(phone_requests.c.id)
        )
        return await self._rows(PhoneRequest, statement)

    async def give(self, number: int, *, jpeg: bytes | None = None, error: str = "", error_kind: str = "") -> None:
        """Answer a request with a picture or with an error."""
        state = DONE if jpeg is not None else FAILED
        change = sa.update(phone_requests).where(phone_requests.c.id == number, phone_requests.c.state == OPEN)
        await self._execute(change.values(state=state, jpeg=jpeg, error=error, error_kind=error_kind))
        self._notify("phone_requests")

    async def answer(self, number: int) -> PhoneRequest | None:
        """Return and delete the request if it is answered, else return None."""
        over = sa.delete(phone_requests).where(phone_requests.c.id == number, phone_requests.c.state != OPEN)
        return await self._changed(PhoneRequest, over.returning(*phone_requests.c), durable=False)

    async def withdraw(self, number: int) -> None:
        """Delete a request that nobody waits for."""
        await self._execute(sa.delete(phone_requests).where(phone_requests.c.id == number))

    async def forget_requests(self) -> int:
        """Delete requests whose process died, answered or not. Return how many."""
        old = phone_requests.c.created_at < self._db.now() - ANSWERS_KEPT
        return await self._execute(sa.delete(phone_requests).where(old))


def _better(phone: HostPhone) -> tuple[bool, bool, datetime]:
    return phone.usable, phone.alive and phone.state != GONE, phone.since


class Phones(Repository):
    """The table of all phones that were ever seen."""

    async def models(self) -> dict[str, str]:
        """Return the model of each phone that was seen, by serial; "" if unknown."""
        return {row.serial: row.model for row in await self._read(_MODELS)}

    async def saw(self, models: Mapping[str, str]) -> None:
        """Store the attached phones. A model that is unknown ("": the phone denies access) stays as it was."""
        now = self._db.now()
        async with self._db.write() as connection:
            for serial, model in models.items():
                new = self._db.insert(phones).values(serial=serial, model=model, seen_at=now)
                values = {"seen_at": now, **({"model": model} if model else {})}
                await connection.execute(new.on_conflict_do_update(index_elements=["serial"], set_=values))

    async def addresses(self) -> dict[str, str]:
        """Return the serial of the phone that was last reached at each network address, newest addresses last."""
        return {row.address: row.serial for row in await self._read(_ADDRESSES)}

    async def maker_serial_at(self, address: str) -> str:
        """Return the maker's serial of the phone that was last reached at this address, "" if it has none."""
        there = sa.select(phones.c.hardware).where(
            phone_addresses.c.address == address, phones.c.serial == phone_addresses.c.serial
        )
        hardware = await self._value(there) or ""
        return "" if hardware.startswith(SHARED) else hardware.partition(" ")[0]

    async def identities(self) -> dict[str, str]:
        """Return the serial of each phone that was identified, by its identity."""
        async with self._db.read() as connection:
            known = sa.select(phones.c.hardware, phones.c.serial).where(phones.c.hardware != "")
            found = await connection.execute(known)
            return {row.hardware: row.serial for row in found}

    async def identify(self, maker_serial: str, hardware: str, transport: str, *, address: bool) -> str:
        """Return the serial under which the product knows a phone, and store it.

        It is the maker's serial; for another phone with the same serial, some letters are added. All processes on one
        database agree on it, and it never changes. Phones that share their identity, see ``share``, are known by their
        transports.

        hardware: the identity, see ``Hardware``.
        transport: a name by which adb reaches it.
        address: it is a network address, which belongs to the phone from now on. Requests and runs that wait for the
        phone at this address become this phone's.
        """
        async with self._db.write() as connection:
            rows = await connection.execute(
                sa.select(phones.c.serial, phones.c.hardware).where(
                    sa.or_(phones.c.hardware.in_((hardware, SHARED + hardware)), phones.c.serial == maker_serial)
                )
            )
            known = {row.serial: row.hardware for row in rows}
            if SHARED + hardware in known.values():
                return transport
            serial = next((one for one, its in known.items() if its == hardware), "")
            if not serial:
                serial = maker_serial if not known.get(maker_serial) else f"{maker_serial}-{hardware[-4:]}"
            now = self._db.now()
            seen = {"hardware": hardware, "seen_at": now}
            await connection.execute(self._db.upsert(phones, seen, serial=serial))
            if address:
                there = {"serial": serial, "seen_at": now}
                await connection.execute(self._db.upsert(phone_addresses, there, address=transport))
            if transport != serial:
                await _known_as(connection, transport, serial)
        return serial

    async def share(self, hardware: str) -> None:
        """Store that several phones have this identity (copies of one emulator), so that it tells nothing."""
        mine = phones.c.hardware == hardware
        async with self._db.write() as connection:
            serials = (await connection.execute(sa.select(phones.c.serial).where(mine))).scalars().all()
            await connection.execute(sa.delete(phone_addresses).where(phone_addresses.c.serial.in_(serials)))
            await connection.execute(sa.update(phones).where(mine).values(hardware=SHARED + hardware))


async def _known_as(connection: AsyncConnection, transport: str, serial: str) -> None:
    """Give the requests and runs that wait for the phone at ``transport`` to the phone with this serial."""
    nameless = sa.and_(phones.c.serial == transport, phones.c.hardware == "")
    await connection.execute(sa.delete(phones).where(nameless))
    same = contacts.alias()
    there = sa.exists().where(same.c.serial == serial, same.c.app == contacts.c.app, same.c.name == contacts.c.name)
    for table, waits in ((runs, runs.c.status == QUEUED), (schedules, sa.true()), (contacts, ~there)):
        await connection.execute(sa.update(table).where(table.c.serial == transport, waits).values(serial=serial))
