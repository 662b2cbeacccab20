"""Regular sweeps over HTTP. Each is a schedule, and is run, paused and removed as one."""

from __future__ import annotations

from typing import Literal

from bot.channels.web.api.operations import ApiCall, ClockTime, Line, Lines, Operations, Wish
from bot.channels.web.api.schedules import ApiSchedule, ApiSchedules, ApiTimes, Days, Minutes
from bot.desk.actors import Role
from bot.desk.schedules_views import RegularChange, ScheduleWish, SweepChange, SweepWhom

operations = Operations("sweeps")


class ApiNewSweep(ApiTimes):
    """A sweep at certain times: of everybody who has unread messages, or of chosen contacts, by name and by tag."""

    app: Line = "qq"
    whom: Literal["unread", "chosen"]
    contacts: Lines = []
    tags: Lines = []
    device: Line | None = None
    quiet: Line | None = None


class ApiSweepChange(Wish):
    """What is left out stays as it is. ``device``: "" for any. ``quiet``: "" for none.

    Times are a new ``expression``, or some parts of regular ones: the others stay.
    """

    app: Line | None = None
    whom: Literal["unread", "chosen"] | None = None
    contacts: Lines | None = None
    tags: Lines | None = None
    expression: Line | None = None
    every: Minutes | None = None
    start: ClockTime | None = None
    end: ClockTime | None = None
    days: Days | None = None
    timezone: Line | None = None
    device: Line | None = None
    quiet: Line | None = None

    def change(self) -> SweepChange:
        days = None if self.days is None else tuple(self.days)
        regular = RegularChange(self.every, self.start, self.end, days)
        is_regular = self.every is not None or (self.expression is None and regular != RegularChange())
        return SweepChange(
            app=self.app,
            everybody=None if self.whom is None else self.whom == "unread",
            names=None if self.contacts is None else tuple(self.contacts),
            tags=None if self.tags is None else tuple(self.tags),
            expression=None if is_regular else self.expression,
            regular=regular if is_regular else None,
        )


@operations.get("/sweeps")
async def list_sweeps(call: ApiCall) -> ApiSchedules:
    """List the schedules that start sweeps."""
    return ApiSchedules(items=[ApiSchedule.of(each) for each in await call.desk.sweeps.scheduled(call.actor)])


@operations.post("/sweeps", Role.OWNER, status=201, once=True)
async def add_sweep(call: ApiCall, body: ApiNewSweep) -> ApiSchedule:
    """Add a schedule that starts a sweep."""
    whom = SweepWhom(body.app, body.whom == "unread", tuple(body.contacts), tuple(body.tags))
    wish = ScheduleWish(serial=body.device, timezone=body.timezone, quiet=body.quiet)
    return ApiSchedule.of(await call.desk.sweeps.schedule(call.actor, whom, body.written(), wish=wish, key=call.key))


@operations.patch("/sweeps/{schedule_id}", Role.OWNER)
async def change_sweep(call: ApiCall, schedule_id: str, body: ApiSweepChange) -> ApiSchedule:
    """Change a schedule that starts a sweep."""
    wish = ScheduleWish(serial=body.device, timezone=body.timezone, quiet=body.quiet)
    return ApiSchedule.of(await call.desk.sweeps.edit(call.actor, schedule_id, body.change(), wish=wish))
