"""The clock: wakes up when a schedule is due, and lets the ``schedules`` table decide whether that starts a run.

APScheduler only wakes up, from memory; the times come from ``scheduler.times``, and the key of a tick is the time for
which it was planned. So any number of processes may run a clock over one database.

Jumps of a machine's time do no harm. After a jump forwards, the ticks that were skipped count as missed. After one
backwards, schedules continue from the new time, and a tick that has started its run starts no second one.
"""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import structlog
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.date import DateTrigger

from agent_core.errors import InputRejected
from scheduler.jobs.periodic import Periodic
from scheduler.sweeps.order import WATCH_KIND
from scheduler.times import ScheduleTimes, last_until, parse_schedule, times_between
from scheduler.times.shop import quiet_of
from storage.engine import Database
from storage.ids import new_id
from storage.leases import LEASE_SECONDS, Clocks
from storage.schedules import ScheduleRow, Schedules, Tick

STARTUP_GRACE_SECONDS = 60.0  # at the start, a tick later than this was missed; a restart takes less
LATE_GRACE_SECONDS = 300.0  # the same while the process runs (a stall, a laptop that slept)
# The longest time between two checks. A change by another process is seen within ``storage.signals.PULSE_SECONDS``.
REFRESH_SECONDS = 30.0
QUEUED_SECONDS = 2.0  # how soon a tick that waits for the run before it is checked again
JUMP = timedelta(minutes=2)  # how far a machine's time may go back unnoticed; hosts differ by less
COUNTED = 10_000  # the most missed ticks that are counted

log = structlog.get_logger(__name__)


def jitter_of(schedule: ScheduleRow, planned_at: datetime) -> timedelta:
    """Return how much later than planned a tick starts: random, but the same in every process."""
    if schedule.jitter_seconds <= 0:
        return timedelta(0)
    chance = zlib.crc32(f"{schedule.id} {planned_at.isoformat()}".encode())
    return timedelta(seconds=chance % (schedule.jitter_seconds + 1))


async def never() -> bool:
    """Return False: nothing limits automatic starts."""
    return False


class Clock:
    """The clock that takes the ticks of schedules, from ``start`` to ``stop``. Each wake-up calls ``look``.

    limited: tells whether no more model calls are allowed today. Then no tick starts a run.
    seconds: how long this clock counts as alive without a heartbeat.
    """

    def __init__(
        self,
        db: Database,
        *,
        limited: Callable[[], Awaitable[bool]] = never,
        refresh_seconds: float = REFRESH_SECONDS,
        seconds: float = LEASE_SECONDS,
    ) -> None:
        self._db = db
        self._schedules = Schedules(db)
        self._limited = limited
        self._refresh_seconds = refresh_seconds
        self._alarm = AsyncIOScheduler(
            timezone=UTC, job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 1}
        )
        self._alarms: dict[int, datetime] = {}  # the alarms that are set, by the database's time
        self._following = Periodic(
            "clock", self._follow, refresh_seconds, waiter=lambda: db.signal("schedules").waiter()
        )
        self._token = new_id()
        self._clocks = Clocks(db, seconds=seconds)
        self._beating = Periodic("clock-beat", lambda: self._clocks.beat(self._token), seconds / 3)
        self._seen: datetime | None = None  # the time of the last ``look``
        self._queued = False  # whether a tick waits for the run before it

    async def start(self) -> None:
        """Skip (or catch up) missed ticks, then start waking up."""
        self._alarm.start()
        await self.look(grace=timedelta(seconds=STARTUP_GRACE_SECONDS))
        await self._following.start()
        await self._beating.start()

    async def stop(self) -> None:
        await self._following.stop()
        await self._beating.stop()
        try:
            await self._clocks.end(self._token)
        except Exception as error:  # noqa: BLE001 - the database is away: this clock counts as dead a little later
            log.warning("clock.end_not_told", error=repr(error))
        if self._alarm.running:
            self._alarm.shutdown(wait=False)

    async def look(self, *, grace: timedelta = timedelta(seconds=LATE_GRACE_SECONDS)) -> None:
        """Take every tick that is due, and set the alarm for the next one of each schedule."""
        schedules = await self._timed()
        if self._went_back():
            for schedule in schedules:
                await self._after_a_jump(schedule)
            schedules = await self._timed()
        self._queued = False
        for schedule in schedules:
            try:
                times = parse_schedule(schedule.expression, schedule.timezone)
                if not schedule.paused:
                    await self._start_queued(schedule)
                    await self._take(schedule, times, grace)
            except InputRejected as error:  # a row of another release; the others continue
                log.error("schedule.unreadable", schedule_id=schedule.id, error=str(error))
                continue
            self._arm(schedule, times)
        for schedule_id in set(self._alarms) - {schedule.id for schedule in schedules}:
            self._disarm(schedule_id)

    async def _timed(self) -> list[ScheduleRow]:
        """Return all schedules except watches, which have no times."""
        return [schedule for schedule in await self._schedules.all() if schedule.kind != WATCH_KIND]

    def _went_back(self) -> bool:
        """Tell whether the time is before that of the last ``look``. True in a new process, which cannot know."""
        now, before = self._db.now(), self._seen
        self._seen = now
        if before is None:
            return True
        if before - now > JUMP:
            log.warning("clock.went_back", seconds=round((before - now).total_seconds()))
        return before - now > JUMP

    async def _after_a_jump(self, schedule: ScheduleRow) -> None:
        """Let a schedule continue after the time went back.

        Otherwise it would stop until the old time is reached again.
        """
        now, newest = self._db.now(), schedule.last_planned_at or schedule.created_at
        if newest - now > JUMP and await self._schedules.clock_went_back(schedule.id, now):
            log.warning("schedule.from_the_future", schedule_id=schedule.id, newest=newest.isoformat())

    async def _start_queued(self, schedule: ScheduleRow) -> None:
        if schedule.queued_for is None or await self._limited():
            return
        result = await self._schedules.start_queued(schedule.id, quiet=self._is_quiet(schedule))
        if result.tick is Tick.BUSY:
            self._queued = True
        else:
            log.info("schedule.tick", schedule_id=schedule.id, result=str(result.tick), run_id=result.run_id)

    def _is_quiet(self, schedule: ScheduleRow) -> bool:
        return quiet_of(schedule.quiet, schedule.timezone).holds(self._db.now())

    async def _take(self, schedule: ScheduleRow, times: ScheduleTimes, grace: timedelta) -> None:
        now = self._db.now()
        due = _due(schedule, times, now)
        if not due:
            return
        first, newest = due[0], due[-1]
        late = now - newest - jitter_of(schedule, newest) > grace
        if late and schedule.missed != "catch_up":
            if await self._schedules.skip_missed(schedule.id, newest, len(due), since=first):
                log.warning("schedule.missed", schedule_id=schedule.id, ticks=len(due))
            return
        away = now - first - jitter_of(schedule, first) > grace  # no process was running at the first one
        result = await self._schedules.tick(
            schedule.id,
            newest,
            missed=len(due) - 1,
            late_since=first if away else None,
            quiet=self._is_quiet(schedule),
            limited=await self._limited(),
        )
        self._queued = self._queued or result.tick is Tick.QUEUED
        log.info("schedule.tick", schedule_id=schedule.id, result=str(result.tick), run_id=result.run_id)

    def _arm(self, schedule: ScheduleRow, times: ScheduleTimes) -> None:
        now = self._db.now()
        # With jitter, the alarm of a tick that was planned before now may still be to come.
        since = now - timedelta(seconds=max(schedule.jitter_seconds, 0))
        wakes = [moment + jitter_of(schedule, moment) for moment in times.next(since, 10)]
        coming = sorted(moment for moment in wakes if moment > now)
        if schedule.paused or not coming:
            self._disarm(schedule.id)
        elif self._alarms.get(schedule.id) != coming[0]:
            self._alarms[schedule.id] = coming[0]
            trigger = DateTrigger(run_date=datetime.now(UTC) + (coming[0] - now))
            self._alarm.add_job(self._ring, trigger, [schedule.id], id=_job(schedule.id), replace_existing=True)

    def _disarm(self, schedule_id: int) -> None:
        self._alarms.pop(schedule_id, None)
        if self._alarm.get_job(_job(schedule_id)) is not None:
            self._alarm.remove_job(_job(schedule_id))

    async def _ring(self, schedule_id: int) -> None:
        self._alarms.pop(schedule_id, None)
        await self._wake()

    async def _wake(self) -> None:
        try:
            await self.look()
        except Exception as error:  # noqa: BLE001 - the database may be away; the next look takes the tick
            log.warning("clock.failed", error=repr(error))

    async def _follow(self) -> float | None:
        """Set the alarms again, because a schedule may have changed."""
        await self._wake()
        return min(QUEUED_SECONDS, self._refresh_seconds) if self._queued else None


def _due(schedule: ScheduleRow, times: ScheduleTimes, now: datetime) -> list[datetime]:
    """Return the due ticks. If there are very many, these are the first ones, followed by the newest."""
    since = schedule.last_planned_at or schedule.created_at
    planned = times_between(times, since, now, COUNTED)
    newest = last_until(times, planned[-1], now) if len(planned) >= COUNTED else None
    planned += [newest] if newest is not None else []
    return [moment for moment in planned if moment + jitter_of(schedule, moment) <= now]


def _job(schedule_id: int) -> str:
    return f"schedule-{schedule_id}"
