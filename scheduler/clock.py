"""The clock: wakes up when a schedule is due and lets the ``schedules`` table decide whether that starts a run.

APScheduler only wakes up, from memory; the times are those of ``scheduler.times``, the key of a tick is the time for
which it was planned. So any number of processes may run a clock over one database.
"""

from __future__ import annotations

import asyncio
import zlib
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import structlog
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.date import DateTrigger

from agent_core.errors import InputRejected
from scheduler.times import ScheduleTimes, parse_quiet, parse_schedule, parse_zone, times_between
from storage.engine import Database
from storage.schedules import ScheduleRow, Schedules

STARTUP_GRACE_SECONDS = 5.0  # a tick that is later than this at the start was missed
LATE_GRACE_SECONDS = 300.0  # how late a tick may be in a process that was there (a stall, a laptop that slept)
REFRESH_SECONDS = 30.0  # how soon the schedules that another process changed are seen

log = structlog.get_logger(__name__)


def jitter_of(schedule: ScheduleRow, planned_at: datetime) -> timedelta:
    """How much later than planned it starts: by chance, but the same in every process."""
    if schedule.jitter_seconds <= 0:
        return timedelta(0)
    chance = zlib.crc32(f"{schedule.id} {planned_at.isoformat()}".encode())
    return timedelta(seconds=chance % (schedule.jitter_seconds + 1))


class Clock:
    """``start`` until ``stop``. ``look`` is what a wake-up does."""

    def __init__(self, db: Database, *, refresh_seconds: float = REFRESH_SECONDS) -> None:
        self._db = db
        self._schedules = Schedules(db)
        self._refresh_seconds = refresh_seconds
        self._alarm = AsyncIOScheduler(
            timezone=UTC, job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 1}
        )
        self._alarms: dict[int, datetime] = {}  # what is set, by the database's time
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Pass over (or catch up) what was missed, then wake up for what comes."""
        self._alarm.start()
        await self.look(grace=timedelta(seconds=STARTUP_GRACE_SECONDS))
        self._task = asyncio.create_task(self._follow(), name="clock")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        if self._alarm.running:
            self._alarm.shutdown(wait=False)

    async def look(self, *, grace: timedelta = timedelta(seconds=LATE_GRACE_SECONDS)) -> None:
        """Take every tick that is due, and set the alarm for the next one of each schedule."""
        schedules = await self._schedules.all()
        for schedule in schedules:
            try:
                times = parse_schedule(schedule.expression, schedule.timezone)
                if not schedule.paused:
                    await self._take(schedule, times, grace)
            except InputRejected as error:  # a row of another release; the others go on
                log.error("schedule.unreadable", schedule_id=schedule.id, error=str(error))
                continue
            self._arm(schedule, times)
        for schedule_id in set(self._alarms) - {schedule.id for schedule in schedules}:
            self._disarm(schedule_id)

    async def _take(self, schedule: ScheduleRow, times: ScheduleTimes, grace: timedelta) -> None:
        now = self._db.now()
        planned = times_between(times, schedule.last_planned_at or schedule.created_at, now)
        due = [moment for moment in planned if moment + jitter_of(schedule, moment) <= now]
        if not due:
            return
        newest = due[-1]
        late = now - newest - jitter_of(schedule, newest) > grace
        if late and schedule.missed != "catch_up":
            if await self._schedules.skip_missed(schedule.id, newest, len(due)):
                log.warning("schedule.missed", schedule_id=schedule.id, ticks=len(due))
            return
        quiet = parse_quiet(schedule.quiet)
        is_quiet = quiet is not None and quiet.holds(now, parse_zone(schedule.timezone))
        result = await self._schedules.tick(schedule.id, newest, missed=len(due) - 1, quiet=is_quiet)
        log.info("schedule.tick", schedule_id=schedule.id, result=str(result.tick), run_id=result.run_id)

    def _arm(self, schedule: ScheduleRow, times: ScheduleTimes) -> None:
        now = self._db.now()
        # With jitter the alarm of a tick that was planned before now may still be to come.
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

    async def _follow(self) -> None:
        """Set the alarms anew when a schedule changes."""
        while True:
            await self._db.signal("schedules").waiter().wait(self._refresh_seconds)
            await self._wake()


def _job(schedule_id: int) -> str:
    return f"schedule-{schedule_id}"
