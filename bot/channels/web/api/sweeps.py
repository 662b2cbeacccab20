"""Regular sweeps over HTTP. Each is a schedule, and is changed, run and removed as one."""

from __future__ import annotations

from typing import Literal

from bot.channels.web.api.models import Line, Lines
from bot.channels.web.api.operations import ApiCall, Operations
from bot.channels.web.api.schedules import ApiSchedule, ApiSchedules, ApiTimes
from bot.desk.actors import Role
from bot.desk.schedules_views import ScheduleWish, SweepWhom

operations = Operations("sweeps")


class ApiNewSweep(ApiTimes):
    """A sweep at certain times: of everybody who has unread messages, or of chosen contacts, by name and by tag."""

    app: Line = "qq"
    whom: Literal["unread", "chosen"]
    contacts: Lines = []
    tags: Lines = []
    device: Line | None = None
    quiet: Line | None = None


@operations.get("/sweeps")
async def list_sweeps(call: ApiCall) -> ApiSchedules:
    """List the schedules that start sweeps."""
    return ApiSchedules(items=[ApiSchedule.of(each) for each in await call.desk.sweeps.scheduled(call.actor)])


@operations.post("/sweeps", Role.OWNER, status=201, once=True)
async def add_sweep(call: ApiCall, body: ApiNewSweep) -> ApiSchedule:
    """Add a schedule that starts a sweep."""
    whom = SweepWhom(body.app, body.whom == "unread", tuple(body.contacts), tuple(body.tags))
    wish = ScheduleWish(serial=body.device, quiet=body.quiet)
    return ApiSchedule.of(await call.desk.sweeps.schedule(call.actor, whom, body.written(), wish=wish, key=call.key))
