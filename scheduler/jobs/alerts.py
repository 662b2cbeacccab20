"""Alerts: a phone, the model or the knowledge base is down for a while, or is back; a phone's battery is low or hot.

Each is reported once.

A *probe* finds out whether something is up. A phone's probe reads adb's list, each time. Those of the model and the
knowledge base use the network, so they are rare: signs from runs count first.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from agent_core.devices.base import Battery
from scheduler.jobs.periodic import Periodic
from storage.engine import Database
from storage.events import Events
from storage.outages import OutageRow, Outages

LOOK_SECONDS = 30.0
FORGOTTEN = timedelta(days=14)  # a phone that was away this long, and that no setting names, is forgotten
PHONE = "phone:"
BATTERY, HEAT = "battery:", "heat:"
BATTERY_SECONDS = 300.0
NO_OUTAGE = frozenset({"model.refused", "model.limit"})  # errors that concern one request, or that we caused

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PhonesSeen:
    """The phones now.

    usable: serials of the phones that a run could use.
    named: serials in the settings, whether the phones were seen or not.
    why: why a listed phone is unusable, by serial; under "" why there is no list.
    """

    usable: frozenset[str]
    named: frozenset[str] = frozenset()
    why: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Probe:
    """A check of whether a service works.

    ask: returns "" if the service works, else what is wrong. Its argument ``doubted`` is True if the newest sign from
        runs is an error of the service, or if it is down; a check that costs nothing may then not be enough.
    errors: the prefix of the error kinds that count, see ``agent_core.errors``.
    proves: whether a reply of the model shows that the service works.
    """

    ask: Callable[[bool], Awaitable[str]]
    errors: str
    proves: bool = False


@dataclass(frozen=True, slots=True)
class AlertTimes:
    """The timing of alerts.

    ``after``: how long something must be down before people are alerted.
    ``poll``: the time between two probes.
    """

    after: timedelta
    poll: timedelta

    def pause(self, row: OutageRow | None) -> timedelta:
        """Return how long to wait before the next probe.

        It is shorter while it is uncertain whether the service is down.
        """
        if row is None or row.down_since is None:
            return self.poll
        return min(self.poll, max(self.after / 2, timedelta(seconds=LOOK_SECONDS)))

    @property
    def gap(self) -> timedelta:
        """The longest time between two checks that can belong to the same outage."""
        return 2 * (self.poll + self.after) + timedelta(seconds=2 * LOOK_SECONDS)


@dataclass(slots=True)
class _Shown:
    """This process's knowledge of a service: when it was probed, and signs from runs."""

    asked_at: datetime | None = None
    worked_at: datetime | None = None
    failed_at: datetime | None = None

    def works_since(self, seen_down_at: datetime | None) -> bool:
        """Tell whether a run showed that it works after the newest error, the last probe and the last failed check."""
        worked = self.worked_at
        others = (self.failed_at, self.asked_at, seen_down_at)
        return worked is not None and all(other is None or worked > other for other in others)


class AlertWatch(Periodic):
    """Alerts people, from ``start`` to ``stop``. The outages, their beginnings and the alerts sent are in the rows.

    phones: returns the phones as adb sees them.
    probes: by subject (``model``, ``knowledge``).
    batteries: reads those of the attached phones, by serial; it is asked every five minutes.
    """

    def __init__(
        self,
        db: Database,
        times: AlertTimes,
        *,
        phones: Callable[[], Awaitable[PhonesSeen]],
        probes: Mapping[str, Probe],
        batteries: Callable[[], Awaitable[Mapping[str, Battery]]],
    ) -> None:
        super().__init__("alert-watch", self.once, LOOK_SECONDS)
        self._db = db
        self._outages = Outages(db)
        self._times = times
        self._phones = phones
        self._probes = probes
        self._batteries = batteries
        self._batteries_at: datetime | None = None  # when they were read last
        self._shown: dict[str, _Shown] = {subject: _Shown() for subject in probes}
        self._read_to: int | None = None  # the newest event whose signs were read

    async def once(self) -> None:
        """Check everything once."""
        rows = {row.subject: row for row in await self._outages.all()}
        await self._look_at_phones(rows)
        await self._look_at_batteries(rows)
        await self._read_signs()
        for subject, probe in self._probes.items():
            await self._look_at(subject, probe, rows.get(subject))

    async def _look_at_phones(self, rows: Mapping[str, OutageRow]) -> None:
        seen = await self._phones()
        for serial in seen.usable:
            row = rows.get(PHONE + serial)
            if row is None or row.down_since is not None:
                await self._up(PHONE + serial)
        known = {subject.removeprefix(PHONE) for subject in rows if subject.startswith(PHONE)} | seen.named
        for serial in sorted(known - seen.usable):
            row = rows.get(PHONE + serial)
            away = row is not None and row.told_at is not None and self._db.now() - row.told_at > FORGOTTEN
            if away and serial not in seen.named:
                await self._outages.forget(PHONE + serial)
            else:
                why = seen.why or {}
                await self._down(PHONE + serial, why.get(serial, why.get("", "")))

    async def _look_at_batteries(self, rows: Mapping[str, OutageRow]) -> None:
        """Alert at once to a battery that is low or hot, because that does not pass by itself, and the phone may soon
        be off.
        """
        now = self._db.now()
        read = self._batteries_at
        if read is not None and now - read < timedelta(seconds=BATTERY_SECONDS):
            return
        self._batteries_at = now
        for serial, battery in (await self._batteries()).items():
            low, hot = rows.get(BATTERY + serial), rows.get(HEAT + serial)
            is_low = battery.is_low(was=low is not None and low.down_since is not None)
            is_hot = battery.is_hot(was=hot is not None and hot.down_since is not None)
            await self._now(BATTERY + serial, low, f"{battery.percent} %" if is_low else "")
            await self._now(HEAT + serial, hot, f"{battery.celsius} °C" if is_hot else "")
        for subject, row in rows.items():  # of phones that are gone for good
            if subject.startswith((BATTERY, HEAT)) and now - row.looked_at > FORGOTTEN:
                await self._outages.forget(subject)

    async def _now(self, subject: str, row: OutageRow | None, why: str) -> None:
        if why:
            await self._down(subject, why, after=timedelta(0))
        elif row is not None and row.down_since is not None:
            await self._up(subject)

    async def _read_signs(self) -> None:
        """Note the signs from runs since the last check. Events before the first check do not count."""
        if self._read_to is None:
            self._read_to = await Events(self._db).newest()
        for sign in await self._outages.signs(self._read_to):
            self._read_to = sign.event_id
            for subject, probe in self._probes.items():
                if sign.error_kind.startswith(probe.errors) and sign.error_kind not in NO_OUTAGE:
                    self._shown[subject].failed_at = sign.at
                elif not sign.error_kind and probe.proves:
                    self._shown[subject].worked_at = sign.at

    async def _look_at(self, subject: str, probe: Probe, row: OutageRow | None) -> None:
        now, shown = self._db.now(), self._shown[subject]
        is_down = row is not None and row.down_since is not None
        if shown.works_since(row.seen_down_at if row is not None else None):
            shown.asked_at = max(shown.asked_at or shown.worked_at or now, shown.worked_at or now)
            if row is None or is_down:
                await self._up(subject)
            return
        if shown.asked_at is None and not is_down:
            # No probe at the start, when other work has priority; but the first one comes sooner than the later ones.
            shown.asked_at = now - max(timedelta(0), self._times.poll - self._times.after)
        doubted = shown.failed_at is not None and (shown.asked_at is None or shown.failed_at >= shown.asked_at)
        if shown.asked_at is not None and now - shown.asked_at < self._times.pause(row) and not doubted:
            return
        shown.asked_at = now
        why = await probe.ask(doubted or is_down)
        if why:
            await self._down(subject, why)
        else:
            await self._up(subject)

    async def _up(self, subject: str) -> None:
        if await self._outages.up(subject):
            log.info("alert_back", subject=subject)

    async def _down(self, subject: str, why: str, *, after: timedelta | None = None) -> None:
        after = self._times.after if after is None else after
        if await self._outages.down(subject, why, after=after, gap=self._times.gap):
            log.warning("alert_down", subject=subject, why=why)
