"""Schedules: add, list, pause, resume, remove."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent_core.errors import InputRejected
from agent_core.tasks import NO_RULES, TaskRules, check_rules, check_task
from bot.desk.actors import Actor, BadRequest, ChatRef, NotFound, Role
from bot.desk.house import DeskPart, chat_data, chat_ref, sees
from bot.desk.schedules_port import ScheduleView
from scheduler.times import parse_schedule, parse_zone
from storage.schedules import NewSchedule, ScheduleRow, Schedules

SHOWN_TIMES = 3


class SchedulesDesk(DeskPart):
    async def add_schedule(
        self,
        actor: Actor,
        expression: str,
        task: str,
        *,
        chat: ChatRef | None,
        serial: str = "",
        rules: TaskRules = NO_RULES,
        key: str = "",
    ) -> ScheduleView:
        """A new schedule with its next three times. BadRequest where the expression cannot be read."""
        task = check_task(task)
        check_rules(task, rules)
        await self._allow(actor, Role.OWNER, "schedule add", chat=chat, expression=expression, task=task)
        try:
            times = parse_schedule(expression, self.house.timezone)
        except InputRejected as error:
            raise BadRequest(error.message, advice=error.advice, key="bad_schedule", said=expression) from error
        if not times.next(self._db.now()):
            said = f"This time is over: {expression}."
            raise BadRequest(said, advice="Give one that is to come.", key="time_over", said=expression)
        row = await Schedules(self._db).add(
            NewSchedule(
                expression=expression,
                timezone=self.house.timezone,
                task=task,
                serial=serial or self.house.serial,
                chat=chat_data(chat) if chat else await self._owners_chat(),
                options={"lang": actor.lang, **rules.data()},
                created_by=actor.id,
            ),
            key=key,
        )
        return self._schedule_view(row)

    async def list_schedules(self, actor: Actor) -> Sequence[ScheduleView]:
        await self._allow(actor, Role.VIEWER, "schedule list")
        return [self._schedule_view(row) for row in await Schedules(self._db).all() if sees(actor, row.serial)]

    async def pause_schedule(self, actor: Actor, schedule_id: str) -> ScheduleView:
        row = await self._known(actor, schedule_id, "pause")
        await Schedules(self._db).pause(row.id, paused=True)
        return await self._again(row)

    async def resume_schedule(self, actor: Actor, schedule_id: str) -> ScheduleView:
        row = await self._known(actor, schedule_id, "resume")
        await Schedules(self._db).pause(row.id, paused=False)
        return await self._again(row)

    async def remove_schedule(self, actor: Actor, schedule_id: str) -> ScheduleView:
        row = await self._known(actor, schedule_id, "remove")
        await Schedules(self._db).remove(row.id)
        return replace(self._schedule_view(row), next_times=())

    async def _known(self, actor: Actor, schedule_id: str, what: str) -> ScheduleRow:
        await self._allow(actor, Role.OWNER, f"schedule {what}", schedule=schedule_id)
        number = schedule_id.strip().lstrip("#")
        row = await Schedules(self._db).get(int(number)) if number.isdecimal() and len(number) < 10 else None
        if row is None:
            said = f"There is no schedule {schedule_id}."
            raise NotFound(said, advice="See the list of schedules.", key="no_schedule", number=schedule_id)
        return row

    async def _again(self, row: ScheduleRow) -> ScheduleView:
        return self._schedule_view(await Schedules(self._db).get(row.id) or row)

    def _schedule_view(self, row: ScheduleRow) -> ScheduleView:
        zone = parse_zone(row.timezone)
        coming = parse_schedule(row.expression, row.timezone).next(self._db.now(), SHOWN_TIMES)
        return ScheduleView(
            id=str(row.id),
            expression=row.expression,
            task=row.task,
            next_times=tuple(moment.astimezone(zone) for moment in coming),
            paused=row.paused,
            rules=TaskRules.of(row.options),
            chat=chat_ref(row.chat),
        )
