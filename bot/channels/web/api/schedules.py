"""Schedules and watches over HTTP."""

from __future__ import annotations

from agent_core.loop.tasks import TaskRules
from bot.channels.web.api.models import (
    ApiNewSchedule,
    ApiNextTimes,
    ApiRun,
    ApiSchedule,
    ApiScheduleChange,
    ApiSchedules,
    ApiTimes,
)
from bot.channels.web.api.operations import ApiCall, Operations
from bot.desk.actors import Role
from bot.desk.schedules_views import ScheduleWish

operations = Operations("schedules")


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
    return ApiNextTimes(next_times=list(await call.desk.schedules.next_times(call.actor, body.written())))


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


@operations.post("/schedules/{schedule_id}/put-back", Role.OWNER)
async def put_schedule_back(call: ApiCall, schedule_id: str) -> ApiSchedule:
    """Put back a schedule that was removed."""
    return ApiSchedule.of(await call.desk.schedules.put_back(call.actor, schedule_id))


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
