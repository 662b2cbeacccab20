"""Schedules and watches over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from agent_core.loop.tasks import TaskRules
from bot.channels.web.api.operations import ApiCall, ClockTime, Line, Lines, Operations, Shown, Text, Wish
from bot.channels.web.api.runs import ApiRun
from bot.desk.actors import Role
from bot.desk.schedules_views import MOST_MINUTES, WEEK, RegularTimes, ScheduleWish
from bot.desk.views import RunStatus

operations = Operations("schedules")

Minutes = Annotated[int, Field(ge=1, le=MOST_MINUTES)]
Days = Annotated[list[Annotated[int, Field(ge=1, le=7)]], Field(max_length=7)]


class ApiNewSchedule(Wish):
    """``expression``: the times in plain words or as cron; "" for a watch, whose task says whom it follows."""

    expression: Line = ""
    task: Annotated[Text, Field(min_length=1)]
    device: Line | None = None
    policy: Line = ""
    apps: Lines = []
    timezone: Line | None = None
    missed: Literal["skip", "catch_up"] | None = None
    overlap: Literal["skip", "queue"] | None = None
    quiet: Line | None = None
    jitter_seconds: Annotated[int, Field(ge=0, le=86_400)] | None = None


class ApiScheduleChange(Wish):
    """What is left out stays as it is. ``device``: "" for any. ``quiet``: "" for none."""

    expression: Line | None = None
    task: Annotated[Text, Field(min_length=1)] | None = None
    device: Line | None = None
    timezone: Line | None = None
    missed: Literal["skip", "catch_up"] | None = None
    overlap: Literal["skip", "queue"] | None = None
    quiet: Line | None = None
    jitter_seconds: Annotated[int, Field(ge=0, le=86_400)] | None = None


class ApiTimes(Wish):
    """Times: ``expression`` in plain words or as cron, or regular ones.

    every: minutes between two. start, end: the hours of the day, both "" for all of it. days: of the week, Monday is 1.
    timezone: the owner's if it is not given.
    """

    expression: Line = ""
    every: Minutes | None = None
    start: ClockTime = ""
    end: ClockTime = ""
    days: Days = list(WEEK)
    timezone: Line | None = None

    def written(self) -> str:
        """Return the times as an expression."""
        if self.every is None:
            return self.expression
        return RegularTimes(self.every, self.start, self.end, tuple(self.days)).expression


class ApiNextTimes(Shown):
    """The next three."""

    next_times: list[datetime]


class ApiSweepOrder(Shown):
    """Whom a sweep answers: contacts by name and by tag, or everybody who has unread messages."""

    app: str
    everybody: bool
    contacts: list[str] = Field(validation_alias="names")
    tags: list[str]


class ApiTick(Shown):
    """The newest tick of a schedule, and its run."""

    what: str
    at: datetime
    run: str = Field(validation_alias="run_id")
    status: RunStatus | None
    message: str


class ApiSchedule(Shown):
    """A schedule or a watch. ``means``: the stored form of ``expression``. ``sweep``: null if it starts none."""

    id: str
    kind: str
    expression: str
    means: str
    task: str
    sweep: ApiSweepOrder | None
    device: str = Field(validation_alias="serial")
    device_name: str = Field(validation_alias="phone")
    timezone: str
    paused: bool
    next_times: list[datetime]
    missed: str
    overlap: str
    quiet: str
    jitter_seconds: int
    started: int
    skipped_busy: int
    skipped_missed: int
    skipped_quiet: int
    last: ApiTick | None


class ApiSchedules(Shown):
    items: list[ApiSchedule]


@operations.get("/schedules")
async def list_schedules(call: ApiCall) -> ApiSchedules:
    """List schedules and watches."""
    return ApiSchedules(items=[ApiSchedule.of(each) for each in await call.desk.schedules.all(call.actor)])


@operations.post("/schedules", Role.OWNER, status=201, once=True)
async def add_schedule(call: ApiCall, body: ApiNewSchedule) -> ApiSchedule:
    """Add a schedule, or a watch."""
    view = await call.desk.schedules.add(
        call.actor,
        body.expression,
        body.task,
        chat=None,
        rules=TaskRules(body.policy, tuple(body.apps)),
        wish=_wish(body),
        key=call.key,
    )
    return ApiSchedule.of(view)


@operations.post("/schedules/next-times", Role.VIEWER)
async def list_next_times(call: ApiCall, body: ApiTimes) -> ApiNextTimes:
    """Show the next three times of a schedule that would have these times. Adds none."""
    coming = await call.desk.schedules.next_times(call.actor, body.written(), timezone=body.timezone)
    return ApiNextTimes(next_times=list(coming))


@operations.get("/schedules/{schedule_id}")
async def get_schedule(call: ApiCall, schedule_id: str) -> ApiSchedule:
    """Show a schedule."""
    return ApiSchedule.of(await call.desk.schedules.get(call.actor, schedule_id))


@operations.patch("/schedules/{schedule_id}", Role.OWNER)
async def change_schedule(call: ApiCall, schedule_id: str, body: ApiScheduleChange) -> ApiSchedule:
    """Change a schedule."""
    view = await call.desk.schedules.edit(
        call.actor, schedule_id, expression=body.expression, task=body.task, wish=_wish(body)
    )
    return ApiSchedule.of(view)


@operations.delete("/schedules/{schedule_id}", Role.OWNER)
async def remove_schedule(call: ApiCall, schedule_id: str) -> ApiSchedule:
    """Remove a schedule. Within a week it can be put back."""
    return ApiSchedule.of(await call.desk.schedules.remove(call.actor, schedule_id))


@operations.post("/schedules/{schedule_id}/undo", Role.OWNER)
async def undo_schedule(call: ApiCall, schedule_id: str) -> ApiSchedule:
    """Put back a schedule that was removed, or take back one's own newest change, if it was of this schedule."""
    return ApiSchedule.of(await call.desk.schedules.undo(call.actor, schedule_id))


@operations.post("/schedules/{schedule_id}/pause", Role.OWNER)
async def pause_schedule(call: ApiCall, schedule_id: str) -> ApiSchedule:
    """Pause a schedule until it is resumed."""
    return ApiSchedule.of(await call.desk.schedules.pause(call.actor, schedule_id))


@operations.post("/schedules/{schedule_id}/resume", Role.OWNER)
async def resume_schedule(call: ApiCall, schedule_id: str) -> ApiSchedule:
    """Resume a paused schedule."""
    return ApiSchedule.of(await call.desk.schedules.resume(call.actor, schedule_id))


@operations.post("/schedules/{schedule_id}/run", Role.OPERATOR, status=201, once=True)
async def run_schedule(call: ApiCall, schedule_id: str) -> ApiRun:
    """Start the task of a schedule now."""
    return ApiRun.of(await call.desk.schedules.run(call.actor, schedule_id, key=call.key))


def _wish(body: ApiNewSchedule | ApiScheduleChange) -> ScheduleWish:
    return ScheduleWish(
        serial=body.device,
        timezone=body.timezone,
        missed=body.missed,
        overlap=body.overlap,
        quiet=body.quiet,
        jitter_seconds=body.jitter_seconds,
    )
