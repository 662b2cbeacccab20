"""Schedules and watches: add, edit, list, pause, resume, run and remove them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, cast
from zoneinfo import ZoneInfo

from agent_core.errors import InputRejected
from agent_core.loop.tasks import NO_RULES, TaskRules, check_rules, check_task
from agent_core.policies import PolicyName
from agent_core.session import Session
from agent_core.texts import kept_language
from bot.desk.actors import Actor, BadRequest, ChatRef, NotFound, Role, no_phone, not_one_of, nothing_to_undo
from bot.desk.context import DeskContext, DeskService, chat_data, chat_ref, sees
from bot.desk.run_parts import left_now
from bot.desk.runs import DeskRuns, check_tags
from bot.desk.schedules_views import NO_WISH, LastTick, ScheduleNews, ScheduleView, ScheduleWish, What
from bot.desk.views import RunStatus, RunView
from bot.desk.week import WeekView, week_of
from scheduler.runs.service import PERSON
from scheduler.sweeps.order import SWEEP_KIND, WATCH_KIND, kind_of, read_watch
from scheduler.sweeps.order import read_task as read_sweep
from scheduler.times import parse_quiet, parse_schedule, parse_zone
from scheduler.times.natural import understand, windows_of
from scheduler.watches.looks import sweep_of
from storage.runs import FAILED, RunRow, Runs
from storage.schedules import NewSchedule, ScheduleRow, Schedules, ScheduleThere, run_of
from storage.sweeps import Sweeps

SHOWN_TIMES = 3
LOOKED_AT_TIMES = 20  # the jitter must be shorter than the time between any two of so many ticks
MOST_JITTER = 6 * 3600  # seconds
CHOICES = {"missed": ("skip", "catch_up"), "overlap": ("skip", "queue")}
MAX_NUMBER = 9  # digits
ANOTHER_DAY = timedelta(days=400)  # on which "tomorrow", "on friday" and "dec 24" are others
EDIT, UNDO = "schedule edit", "schedule undo"
TIMES = ("expression", "timezone")  # the columns that say when its ticks are


class DeskSchedules(DeskService):
    """The service for schedules. A schedule is named by its number, with or without a number sign.

    Raises NotFound if there is no such schedule. Viewers may see schedules, operators may run them, and owners may
    change them.
    """

    def __init__(self, context: DeskContext, runs: DeskRuns) -> None:
        super().__init__(context)
        self._runs = runs

    async def add(
        self,
        actor: Actor,
        expression: str,
        task: str,
        *,
        chat: ChatRef | None,
        rules: TaskRules = NO_RULES,
        wish: ScheduleWish = NO_WISH,
        key: str = "",
    ) -> ScheduleView:
        """Add a schedule, and return it with its next three times.

        expression: the times as a person writes them; "" for a watch.
        chat: the chat for its cards; None for the first owner's chat.
        key: the request's name, see ``Desk``.
        Raises InputRejected if the text is not a task or the rules do not fit it, BadRequest if the expression or the
        wish cannot be read or the schedule exists already, and NotFound if there is no such phone.
        """
        task = check_task(task)
        kind = _kind(task, rules)
        check_rules(task, rules)
        await self._allow(actor, Role.OWNER, "schedule add", chat=chat, expression=expression, task=task)
        values = await self._values(wish)
        timezone = str(values.pop("timezone", self.context.timezone))
        _check_watch(kind == WATCH_KIND, expression, rules, wish)
        await self._check_tags(task)
        kept = "" if kind == WATCH_KIND else self._understood(expression, timezone)
        _check_jitter(kept, timezone, int(values.get("jitter_seconds", 0)), self._db.now())
        said = " ".join(expression.split())
        new = NewSchedule(
            expression=kept,
            said="" if said == kept else said,
            timezone=timezone,
            task=task,
            kind=kind,
            chat=chat_data(chat) if chat else await self._owners_chat(),
            options={"lang": actor.lang, **rules.data()},
            created_by=actor.id,
            **{"serial": (await self._book()).serial(self.context.serial), **values},
        )
        try:
            row = await Schedules(self._db).add(new, key=key, once=True)
        except ScheduleThere as error:
            raise _there(error.number) from None
        return await self._view(row)

    async def next_times(self, actor: Actor, expression: str, *, timezone: str | None = None) -> tuple[datetime, ...]:
        """Return the next three times of a schedule that has these times. Raises BadRequest as ``add`` does.

        timezone: the schedule's; None for the owner's.
        """
        await self._allow(actor, Role.VIEWER, "schedule times")
        zone = str((await self._values(ScheduleWish(timezone=timezone))).get("timezone", self.context.timezone))
        coming = parse_schedule(self._understood(expression, zone), zone).next(self._db.now(), SHOWN_TIMES)
        return tuple(moment.astimezone(parse_zone(zone)) for moment in coming)

    def written(self, view: ScheduleView) -> str:
        """Return the times of a schedule as they may be given again: as a person wrote them if that means the same on
        any day, else in the form that is stored ("tomorrow" was written on another day).
        """
        try:
            another_day = understand(view.expression, view.timezone, self._db.now() + ANOTHER_DAY)
        except InputRejected:
            return view.means
        return view.expression if another_day == view.means else view.means

    async def _check_tags(self, task: str) -> None:
        if (order := read_watch(task) or read_sweep(task)) is not None:
            await check_tags(self._db, order)

    async def edit(
        self,
        actor: Actor,
        schedule_id: str,
        *,
        expression: str | None = None,
        task: str | None = None,
        chat: ChatRef | None = None,
        rules: TaskRules | None = None,
        wish: ScheduleWish = NO_WISH,
    ) -> ScheduleView:
        """Change the fields that are not None. Raises BadRequest for the same reasons as ``add``.

        The old values are stored in the audit log, from which ``undo`` takes them.
        """
        row, values = await self._named(schedule_id), dict[str, Any]()
        if row is not None and actor.role.covers(Role.OWNER):
            values = await self._changes(row, expression, task, rules, wish)
            values |= {} if chat is None else {"chat": chat_data(chat)}
        detail: dict[str, Any] = {"schedule": schedule_id if row is None else str(row.id)}
        if others := [name for name in values if getattr(row, name) != values[name]]:
            detail |= {"before": {name: getattr(row, name) for name in others}}
            detail |= {"after": {name: values[name] for name in others}}
        await self._allow(actor, Role.OWNER, EDIT, chat=chat, **detail)
        return await self._edited(row or _none(schedule_id), values)

    async def _changes(
        self,
        row: ScheduleRow,
        expression: str | None,
        task: str | None,
        rules: TaskRules | None,
        wish: ScheduleWish,
    ) -> dict[str, Any]:
        """Return the columns that an edit sets. Raises as ``edit``."""
        values = await self._values(wish)
        _check_watch(row.kind == WATCH_KIND, expression or "", rules, wish)
        if task is not None or rules is not None:
            values["task"] = check_task(task if task is not None else row.task)
            values["kind"] = _kind(values["task"], rules if rules is not None else TaskRules.of(row.options))
            if WATCH_KIND in (row.kind, values["kind"]) and row.kind != values["kind"]:
                said = "A watch stays a watch, and nothing else becomes one."
                raise BadRequest(said, advice="Add a new one.", key="watch_stays", number=row.id)
            if task is not None:
                await self._check_tags(task)
            rules = check_rules(values["task"], rules if rules is not None else TaskRules.of(row.options))
            others = {name: value for name, value in row.options.items() if name not in {"policy", "apps"}}
            values["options"] = {**others, **rules.data()}
        timezone = str(values.get("timezone", row.timezone))
        kept = row.expression
        if row.kind != WATCH_KIND and (expression is not None or timezone != row.timezone):
            said = " ".join((expression if expression is not None else row.said or row.expression).split())
            # "Tomorrow" was written on another day: only a new expression is counted from now.
            kept = self._understood(said if expression is not None else row.expression, timezone)
            values |= {"expression": kept, "said": "" if said == kept else said}
        _check_jitter(kept, timezone, int(values.get("jitter_seconds", row.jitter_seconds)), self._db.now())
        return values

    async def _edited(self, row: ScheduleRow, values: Mapping[str, Any]) -> ScheduleView:
        """Change columns of a schedule, and return it. Raises BadRequest if another one does the same."""
        other_times = any(values.get(name, getattr(row, name)) != getattr(row, name) for name in TIMES)
        try:
            if values and not await Schedules(self._db).edit(row.id, values, other_times=other_times):
                _none(str(row.id))  # it was removed meanwhile
        except ScheduleThere as error:
            raise _there(error.number) from None
        return await self._again(row)

    async def all(self, actor: Actor) -> Sequence[ScheduleView]:
        """Return the schedules of the phones that the person may see."""
        await self._allow(actor, Role.VIEWER, "schedule list")
        rows = await Schedules(self._db).all()
        return [await self._view(row) for row in rows if sees(actor, row.serial)]

    async def week(self, actor: Actor) -> WeekView:
        """Return when the schedules that the person may see start their runs in the coming seven days."""
        return await asyncio.to_thread(week_of, await self.all(actor), self._db.now(), self._zone)

    async def get(self, actor: Actor, schedule_id: str) -> ScheduleView:
        """Return one schedule."""
        row = await self._named(schedule_id)
        await self._allow(actor, Role.VIEWER, "schedule show", phone=row.serial if row else None, schedule=schedule_id)
        return await self._view(row or _none(schedule_id))

    async def pause(self, actor: Actor, schedule_id: str) -> ScheduleView:
        """Pause a schedule until ``resume``, and return it."""
        row = await self._known(actor, schedule_id, "pause")
        await Schedules(self._db).pause(row.id, paused=True)
        return await self._again(row)

    async def resume(self, actor: Actor, schedule_id: str) -> ScheduleView:
        """Resume a paused schedule, and return it."""
        row = await self._known(actor, schedule_id, "resume")
        await Schedules(self._db).pause(row.id, paused=False)
        return await self._again(row)

    async def run(self, actor: Actor, schedule_id: str, *, chat: ChatRef | None = None, key: str = "") -> RunView:
        """Start the schedule's task now, and return the run.

        chat: the chat for the card; None for the schedule's own chat.
        key: the request's name, see ``Desk``.
        """
        row = await self._named(schedule_id)
        await self._allow(
            actor,
            Role.OPERATOR,
            "schedule run",
            phone=row.serial if row else None,
            chat=chat,
            schedule=schedule_id,
        )
        row = row or _none(schedule_id)
        made = sweep_of(row, row.serial, by_hand=True) if row.kind == WATCH_KIND else run_of(row, None)
        wanted = replace(made, requested_by=actor.id, priority=PERSON)
        if chat is not None:
            wanted = replace(wanted, chat=chat_data(chat), options={**wanted.options, "lang": actor.lang})
        run_id = await Runs(self._db).create(wanted, key=key)
        view = await self._runs.get(run_id) if run_id is not None else None
        if run_id is None or view is None:
            raise NotFound(f"The run of schedule {row.id} is gone.", key="no_run", name=run_id or "")
        await Schedules(self._db).by_hand(row.id, run_id)
        return view

    async def remove(self, actor: Actor, schedule_id: str) -> ScheduleView:
        """Remove a schedule, and return it as it was."""
        row = await self._known(actor, schedule_id, "remove")
        await Schedules(self._db).remove(row.id)
        return replace(await self._view(row), next_times=())

    async def undo(self, actor: Actor, schedule_id: str) -> ScheduleView:
        """Undo the removal of a schedule, or this person's newest edit, and return the schedule.

        Everybody who may change it can put it back for a week. Raises BadRequest if there is nothing to undo, if the
        newest edit was of another schedule, or if what it changed was changed since.
        """
        await self._allow(actor, Role.OWNER, UNDO, schedule=schedule_id)
        row = await self._named(schedule_id)
        if row is None:
            return await self._put_back(schedule_id)
        newest = await self._newest_change(actor, EDIT)
        if newest.get("schedule") != str(row.id):
            raise nothing_to_undo()
        if any(getattr(row, name) != value for name, value in newest["after"].items()):
            said = f"The schedule {row.id} was changed since."
            raise BadRequest(
                said, advice="Look at it before you change it again.", key="schedule_changed", number=row.id
            )
        return await self._edited(row, newest["before"])

    async def _put_back(self, schedule_id: str) -> ScheduleView:
        """Undo ``remove``. Raises BadRequest if no such schedule was removed within the last week."""
        number = _number(schedule_id)
        if number is None or not await Schedules(self._db).put_back(number):
            said = f"There is no schedule {schedule_id} that was removed within a week."
            raise BadRequest(said, key="schedule_not_removed", number=_bare(schedule_id))
        return await self._view(await self._named(schedule_id) or _none(schedule_id))

    async def news(self, data: Mapping[str, Any]) -> ScheduleNews | None:
        """Return the message of a ``schedule`` event for people; None if it has none."""
        since, row = data.get("since"), await Schedules(self._db).get(int(data.get("schedule_id") or 0))
        if row is None or not since or data.get("what") != "missed":
            return None
        chat = chat_ref(row.chat)
        if chat is None or not await self._is_seen_in(chat, row.serial):
            chat = chat_ref(await self._owners_chat())
        if chat is None:
            return None
        zone = parse_zone(row.timezone)
        return ScheduleNews(
            schedule=await self._view(row),
            lang=kept_language(row.options.get("lang")),
            chat=chat,
            count=int(data.get("count") or 0),
            since=datetime.fromisoformat(str(since)).astimezone(zone),
            until=datetime.fromisoformat(str(data["planned_at"])).astimezone(zone),
            caught_up=bool(data.get("caught_up")),
        )

    # Input ------------------------------------------------------------------------------------------------------------

    def _understood(self, expression: str, timezone: str) -> str:
        """Return the form of an expression that is stored.

        Raises BadRequest if it cannot be read, with the understood and the other parts, or if its time is over.
        """
        now = self._db.now()
        try:
            kept = understand(expression, timezone, now)
        except InputRejected as error:
            raise _refused(error, said=expression) from error
        if not parse_schedule(kept, timezone).next(now):
            said = f"This time is over: {expression}."
            raise BadRequest(said, advice="Give one that is to come.", key="time_over", said=expression)
        return kept

    async def _values(self, wish: ScheduleWish) -> dict[str, Any]:
        """Return the columns that a wish sets. Raises BadRequest for a bad value, and NotFound for an unknown phone."""
        values: dict[str, Any] = {}
        for name, known in CHOICES.items():
            chosen = getattr(wish, name)
            if chosen is not None and chosen not in known:
                raise not_one_of(f"There is no {chosen!r} for {name}.", chosen, known)
            values |= {} if chosen is None else {name: chosen}
        try:
            if wish.timezone is not None:
                values["timezone"] = parse_zone(wish.timezone).key
            if wish.quiet is not None:
                values["quiet"] = str(parse_quiet(wish.quiet) or "")
        except InputRejected as error:
            raise _refused(error) from error
        if wish.jitter_seconds is not None:
            values["jitter_seconds"] = wish.jitter_seconds
        if wish.serial is not None:
            values["serial"] = await self._phone_named(wish.serial) if wish.serial else ""
        return values

    async def _phone_named(self, written: str) -> str:
        book = await self._book(await self.context.entries())
        serial = book.serial(written)
        if serial not in book.known:  # a phone that was seen before may come back
            raise no_phone(written)
        return serial

    # Rows -------------------------------------------------------------------------------------------------------------

    async def _known(self, actor: Actor, schedule_id: str, what: str) -> ScheduleRow:
        await self._allow(actor, Role.OWNER, f"schedule {what}", schedule=schedule_id)
        return await self._named(schedule_id) or _none(schedule_id)

    async def _named(self, schedule_id: str) -> ScheduleRow | None:
        number = _number(schedule_id)
        return None if number is None else await Schedules(self._db).get(number)

    async def _again(self, row: ScheduleRow) -> ScheduleView:
        return await self._view(await Schedules(self._db).get(row.id) or row)

    async def _view(self, row: ScheduleRow) -> ScheduleView:
        zone = parse_zone(row.timezone)
        watch = row.kind == WATCH_KIND  # a watch has no times
        coming = [] if watch else parse_schedule(row.expression, row.timezone).next(self._db.now(), SHOWN_TIMES)
        book = await self._book()
        return ScheduleView(
            id=str(row.id),
            expression=row.said or row.expression,
            means=row.expression,
            windows=() if watch else windows_of(row.expression, row.timezone),
            task=row.task,
            kind=row.kind,
            sweep=read_sweep(row.task, one=True) if row.kind == SWEEP_KIND else None,
            next_times=tuple(moment.astimezone(zone) for moment in coming),
            paused=row.paused,
            rules=TaskRules.of(row.options),
            chat=chat_ref(row.chat),
            timezone=row.timezone,
            elsewhere=row.timezone != self.context.timezone,
            serial=row.serial,
            phone=book.name(row.serial),
            missed=row.missed,
            overlap=row.overlap,
            quiet=row.quiet,
            jitter_seconds=row.jitter_seconds,
            last=await self._last_tick(row, zone),
            started=row.started,
            skipped_busy=row.skipped_busy,
            skipped_missed=row.skipped_missed,
            skipped_quiet=row.skipped_quiet,
        )

    async def _last_tick(self, row: ScheduleRow, zone: ZoneInfo) -> LastTick | None:
        if row.last_at is None:
            return None
        run: RunRow | None = await Runs(self._db).get(row.last_run_id) if row.last_run_id else None
        last = LastTick(cast("What", row.last_what), row.last_at.astimezone(zone), row.last_run_id)
        if run is None:  # there is none yet, or it is no longer kept
            return last
        ended = run.ended_at.astimezone(zone) if run.ended_at else None
        session = Session.model_validate_json(run.session) if run.final and run.session else None
        status = session.comes_to.value if session and run.status == FAILED else run.status
        left_to = (await left_now(self._db, {run.id: session}))[run.id] if session else ""
        looked = await Sweeps(self._db).get(run.id)
        unknown = tuple(map(str, looked.details.get("unknown") or ())) if looked is not None else ()
        return replace(
            last, status=RunStatus(status), ended_at=ended, message=run.message, left_to=left_to, not_found=unknown
        )


def _bare(schedule_id: str) -> str:
    """Return a schedule's number as it was written, without the ``#`` in front."""
    return schedule_id.strip().lstrip("#＃").strip()


def _number(schedule_id: str) -> int | None:
    number = _bare(schedule_id)
    return int(number) if number.isdecimal() and len(number) <= MAX_NUMBER else None


def _none(schedule_id: str) -> ScheduleRow:
    said = f"There is no schedule {schedule_id}."
    raise NotFound(said, advice="See the list of schedules.", key="no_schedule", number=_bare(schedule_id))


def _refused(error: InputRejected, **values: object) -> BadRequest:
    """Return an error of the reader of times as the desk's own error."""
    told = {**values, **error.values}
    return BadRequest(error.message, advice=error.advice, key=error.key or "bad_schedule", **told)


def _kind(task: str, rules: TaskRules) -> str:
    """Return the kind of a schedule with this task. Raises BadRequest if a watch names nobody."""
    if rules.policy not in ("", PolicyName.REPLY):
        return "run" if read_watch(task) is None else WATCH_KIND
    try:
        return kind_of(task)
    except InputRejected as error:
        if error.key:
            raise _refused(error) from error
        raise


def _check_watch(is_watch: bool, expression: str, rules: TaskRules | None, wish: ScheduleWish) -> None:
    """Raise BadRequest if a watch is given times or rules: it has no times, and its runs always reply."""
    timely = expression or wish.missed or wish.overlap or wish.jitter_seconds
    if is_watch and (timely or (rules is not None and rules != NO_RULES)):
        said = "A watch has no times: it answers when somebody writes."
        raise BadRequest(said, advice="Leave the time out; for every few minutes, take a sweep.", key="watch_no_time")


def _check_jitter(expression: str, timezone: str, seconds: int, now: datetime) -> None:
    """Raise BadRequest if the jitter is not shorter than the time between two ticks: it could change their order."""
    if not expression:
        return
    times = parse_schedule(expression, timezone).next(now, LOOKED_AT_TIMES)
    gaps = [after - before for before, after in pairwise(times)]
    most = min([timedelta(seconds=MOST_JITTER), *(gap - timedelta(seconds=1) for gap in gaps)])
    if not timedelta(0) <= timedelta(seconds=seconds) <= most:
        allowed = int(most.total_seconds())
        said = f"The jitter is from 0 to {allowed} seconds here, not {seconds}."
        raise BadRequest(
            said, advice="It must be shorter than the time between two ticks.", key="bad_jitter", most=allowed
        )


def _there(number: int) -> BadRequest:
    said = f"Schedule {number} does the same at the same times."
    return BadRequest(said, advice="Change it, or remove it.", key="schedule_there", number=number)
