"""What a channel can ask about what is done when. See ``bot.desk.port``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from agent_core.tasks import NO_RULES, TaskRules
from bot.desk.actors import Actor, ChatRef


@dataclass(frozen=True, slots=True)
class ScheduleView:
    id: str
    expression: str
    task: str
    next_times: tuple[datetime, ...] = ()  # the next three, in the schedule's time zone
    paused: bool = False
    rules: TaskRules = NO_RULES
    chat: ChatRef | None = None


class SchedulesDesk(Protocol):
    async def add_schedule(
        self,
        actor: Actor,
        expression: str,
        task: str,
        *,
        chat: ChatRef,
        serial: str = "",
        rules: TaskRules = NO_RULES,
        key: str = "",
    ) -> ScheduleView:
        """BadRequest where the expression cannot be read. ``key`` as with ``start_run``."""

    async def list_schedules(self, actor: Actor) -> Sequence[ScheduleView]: ...

    async def pause_schedule(self, actor: Actor, schedule_id: str) -> ScheduleView: ...

    async def resume_schedule(self, actor: Actor, schedule_id: str) -> ScheduleView: ...

    async def remove_schedule(self, actor: Actor, schedule_id: str) -> ScheduleView: ...
