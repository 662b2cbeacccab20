"""Runs, those of sweeps and plans too: start, stop, hold and resume them, and see their state."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from agent_core.devices.base import DeviceEntry
from agent_core.errors import PhonedeskError
from agent_core.loop.tasks import NO_RULES, TaskRules, check_rules, check_task
from agent_core.policies import PolicyName
from agent_core.session import Session, Spent, Status
from agent_core.texts import kept_language
from bot.desk.actors import Actor, BadRequest, ChatRef, MessageRef, NotFound, Role, no_phone
from bot.desk.answers import DeskAnswers
from bot.desk.context import DeskContext, DeskService, card_message, chat_data, put_card, sees
from bot.desk.keys import program_names
from bot.desk.phones import away_from
from bot.desk.run_parts import left_now, plan_run, sweep_run
from bot.desk.views import BusyView, RunStatus, RunView
from scheduler.sweeps.attempt import no_tag, unknown_tags
from scheduler.sweeps.order import BY_WATCH, SWEEP_KIND, SweepOrder, read_task
from storage.engine import Database
from storage.history import History
from storage.leases import Leases
from storage.ledger import StoredLedger
from storage.messages import QUESTION, RUN, Cards
from storage.questions import Questions
from storage.runs import ACTIVE, PLAN, PLAN_PART, RUNNING, WAITING, RunRow, Runs

MAX_NUMBER = 9  # digits; an id has 13 characters
MOST_GOING = 500
GLANCE_SECONDS = 2.0  # how long a view waits for adb's list of phones


@dataclass(frozen=True, slots=True)
class _Away:
    """The fields of ``RunView`` that begin with ``away``."""

    why: Literal["", "offline", "unauthorized", "none", "host", "nobody"] = ""
    until: datetime | None = None
    host: str = ""
    since: datetime | None = None


_NOT_AWAY = _Away()


class DeskRuns(DeskService):
    """The service for runs. Operators may start and control them; viewers may see them."""

    def __init__(self, context: DeskContext, answers: DeskAnswers) -> None:
        super().__init__(context)
        self._answers = answers

    async def start(
        self,
        actor: Actor,
        task: str,
        *,
        chat: ChatRef | None,
        serial: str | None = None,
        rules: TaskRules = NO_RULES,
        key: str = "",
    ) -> RunView:
        """Queue a run, or a sweep if the task is to answer several contacts or everybody, and return it.

        chat: the chat for its card; None for none, and for the first owner's chat once it asks something.
        serial: the serial or name of the phone; None for the default one.
        key: the request's name, see ``Desk``.
        Raises InputRejected if the text is not a task or the rules do not fit it, and NotFound if there is no such
        phone.
        """
        task = check_task(task)
        check_rules(task, rules)
        order = read_task(task) if rules.policy in ("", PolicyName.REPLY) else None
        if order is not None:
            return await self.submit(actor, "sweep", task, chat=chat, serial=serial, options=order.data(), key=key)
        return await self.submit(actor, "run", task, chat=chat, serial=serial, options=rules.data(), key=key)

    async def submit(
        self,
        actor: Actor,
        command: str,
        task: str,
        *,
        chat: ChatRef | None,
        serial: str | None,
        options: Mapping[str, object],
        key: str,
    ) -> RunView:
        """Queue a run with these options, for ``start`` of runs and sweeps. ``command``: its name in the audit log."""
        entries = await self.context.entries() if serial else []
        book = await self._book(entries)
        wanted = self._phone_for(actor, book.serial(serial) if serial else "", book)
        await self._allow(actor, Role.OPERATOR, command, phone=wanted, chat=chat, task=task, serial=wanted)
        if serial and wanted not in book.known:  # a phone that was seen before may come back
            raise no_phone(serial)
        run_id = await self.context.runs.submit(
            task,
            serial=wanted,
            options={"lang": actor.lang, **options},
            requested_by=actor.id,
            chat=chat_data(chat) if chat else None,
            key=key,
        )
        return await self.existing(run_id)

    async def stop(self, actor: Actor, run_id: str | None = None) -> RunView | None:
        """Stop a run, and return it; None if there is nothing to stop. Raises NotFound if the id names no run.

        Without an id, stop the person's running run, else their newest queued one, else a schedule's, else the only
        running one. Stop and hold do not count towards the limit of requests.
        """
        row = await self.row_named(run_id) if run_id is not None else None
        phone = row.serial if row else None
        await self._allow(actor, Role.OPERATOR, "stop", phone=phone, paced=False, run_id=run_id or "")
        if run_id is None:
            row = await self._going_of(actor)
            if row is not None and row.parent_id:  # a contact of a sweep: the person started the sweep
                row = await Runs(self._db).get(row.parent_id) or row
        elif row is None:
            raise _no_run(run_id)
        if row is None or row.final:
            return None
        await self.context.runs.request_stop(row.id, by=actor.name)
        return await self.get(row.id)

    async def hold(self, actor: Actor, run_id: str | None = None) -> RunView | None:
        """Hold a run until ``resume``, and return it; None if there is nothing to hold. Its phone is free meanwhile.

        Without an id, the run is chosen as in ``stop``. A run that is held already stays held.
        Raises NotFound if the id names no run.
        """
        row = await self.row_named(run_id) if run_id is not None else None
        phone = row.serial if row else None
        await self._allow(actor, Role.OPERATOR, "hold", phone=phone, paced=False, run_id=run_id or "")
        if run_id is None:
            row = await self._going_of(actor)
            if row is not None and row.parent_id:  # of a sweep's contacts the running one
                its = [run for run in await Runs(self._db).find(statuses=(RUNNING,)) if run.parent_id == row.parent_id]
                row = its[0] if its else row
        elif row is None:
            raise _no_run(run_id)
        if row is not None and row.options.get("kind") == PLAN:  # of its parts the running one
            row = next((run for run in await Runs(self._db).parts_of(row.id) if run.status == RUNNING), None)
        if row is None or row.final or row.stop_requested:
            return None
        await self.context.runs.hold(row.id)
        view = await self.get(row.id)
        return view if view is not None and view.held else None

    async def resume(self, actor: Actor, run_id: str | None = None) -> RunView | None:
        """Let a held run continue, and return it; None if none is held. Raises NotFound if the id names no run.

        Without an id, resume the newest held run of this person, else of anybody.
        """
        row = await self.row_named(run_id) if run_id is not None else None
        await self._allow(actor, Role.OPERATOR, "resume", phone=row.serial if row else None, run_id=run_id or "")
        if run_id is None:
            row = await self._held_of(actor)
        elif row is None:
            raise _no_run(run_id)
        if row is None or not await self.context.runs.resume(row.id):
            return None
        return await self.get(row.id)

    async def row_named(self, name: str) -> RunRow | None:
        """Return the run with this id, or with this number, which ``/history`` shows; None if there is none.

        Checks no rights.
        """
        name = name.strip().lstrip("#＃").strip()
        row = await Runs(self._db).get(name.lower())
        if row is None and name.isdecimal() and len(name) <= MAX_NUMBER:
            run_id = await History(self._db).id_of(int(name))
            row = await Runs(self._db).get(run_id) if run_id else None
        return row

    async def _held_of(self, actor: Actor) -> RunRow | None:
        """Return the newest held run of this person, else of anybody; None if none is held."""
        held = [run for run in await Runs(self._db).find(statuses=ACTIVE, limit=500) if run.hold]
        held = [run for run in held if sees(actor, run.serial)]
        return next((run for run in held if run.requested_by == actor.id), held[0] if held else None)

    async def _going_of(self, actor: Actor) -> RunRow | None:
        """Return the run that is meant if none is named: one's own, else a schedule's; None if there is none.

        A running one comes before those that have started, and these before queued ones. Another person's run is meant
        only if no other one is running.
        """
        going = await Runs(self._db).find(statuses=ACTIVE, limit=MOST_GOING)
        going = [run for run in going if sees(actor, run.serial) and not run.stop_requested]
        # The newest first in each group.
        going.sort(key=lambda run: (run.status != RUNNING, run.hold, run.started_at is None))
        own = [run for run in going if run.requested_by == actor.id]
        by_clock = [run for run in going if run.schedule_id is not None]
        at_work = [run for run in going if run.status == RUNNING]
        return next(iter([*own, *by_clock, *(at_work if len(at_work) == 1 else ())]), None)

    async def going(self, actor: Actor) -> list[RunView]:
        """Return the runs that have not ended, the oldest first, without asking adb for their phones.

        This does not count towards the limit of requests.
        """
        await self._allow(actor, Role.VIEWER, "status", paced=False)
        async with self._db.one_view():
            rows = await Runs(self._db).find(statuses=ACTIVE, limit=MOST_GOING)
            seen = [row for row in reversed(rows) if not row.parent_id and sees(actor, row.serial)]
            full = [await Runs(self._db).get(row.id) for row in seen]
            return [await self._run_view(row) for row in full if row is not None]

    async def at(self, ref: MessageRef) -> str | None:
        """Return the id of the run whose card or question this message shows; None if it shows neither."""
        place = {"channel": ref.chat.channel, "chat_id": ref.chat.chat_id, "message_id": ref.message_id}
        card = await Cards(self._db).at(RUN, **place)
        if card is not None:
            return card.subject_id
        asked = await Cards(self._db).at(QUESTION, **place)
        question = await Questions(self._db).get(asked.subject_id.partition("@")[0]) if asked else None
        return question.run_id if question else None

    async def card(self, run_id: str) -> MessageRef | None:
        """Return the message of the run's card, also after a restart; None if there is none."""
        return card_message(await Cards(self._db).get(RUN, run_id))

    async def set_card(self, run_id: str, ref: MessageRef) -> None:
        """Store which message is the run's card."""
        await put_card(self._db, RUN, run_id, ref)

    async def get(self, run_id: str) -> RunView | None:
        """Return the run, with the progress of its plan or sweep; None if there is none. Checks no rights."""
        row = await Runs(self._db).get(run_id)
        if row is None:
            return None
        away = await self._away(row) if _is_in_line(row) else _NOT_AWAY
        async with self._db.one_view():
            view = await self._run_view(row, away)
            if row.options.get("kind") == PLAN:
                return await plan_run(self._db, view, await self._book())
            if row.options.get("kind") == SWEEP_KIND:
                return await sweep_run(self._db, view, row)
            return view

    async def existing(self, run_id: str) -> RunView:
        """Return the run as ``get`` does. Raises NotFound if there is none. Checks no rights."""
        view = await self.get(run_id)
        if view is None:
            raise _no_run(run_id)
        return view

    async def _run_view(self, row: RunRow, away: _Away = _NOT_AWAY) -> RunView:
        """Return the view of a run. ``away``: what ``_away`` has found, if it was asked."""
        session = Session.model_validate_json(row.session) if row.session else None
        asks = session is not None and session.status is Status.WAITING
        status = status_of(row, asks=asks)
        cut_off = asks and status is RunStatus.STOPPED  # stopped while it waited: its message asks for what is over
        in_line = _is_in_line(row)
        # Its row is closed after its end is told.
        stopped = status is RunStatus.STOPPED or (session is not None and session.status is Status.STOPPED)
        return RunView(
            id=row.id,
            task=row.task,
            status=status,
            lang=kept_language(row.options.get("lang")),
            serial=row.serial,
            phone=(await self._book()).name(row.serial) if row.serial else "",
            chat=await self.chat_of(row),
            by=await self._by(row),
            steps=len(session.steps) if session else 0,
            max_steps=session.max_steps if session else int(row.options.get("max_steps") or 100),
            last_step=session.steps[-1] if session and session.steps else None,
            message=row.message or (session.message if session and not cut_off else ""),
            error_kind=session.error_kind if session else "",
            left_to=(await left_now(self._db, {row.id: session}))[row.id] if session else "",
            spent=session.spent if session else Spent(),
            replies=tuple(session.replies) if session else (),
            notes=tuple(session.notes) if session else (),
            answers=await self._answers.sent_in(row.id) if session and session.replies else (),
            again_at=row.again_at.astimezone(self._zone) if row.again_at is not None else None,
            position=await self._position(row) if in_line else 0,
            busy_with=await self._busy_with(row) if in_line else None,
            held=row.hold,
            away=away.why,
            away_until=away.until,
            away_host=away.host,
            away_since=away.since,
            stopped_by=row.stopped_by,
            unanswered=(await StoredLedger(self._db).left_open([row.id])).get(row.id, "") if stopped else "",
            parent=row.parent_id,
            in_plan=row.options.get("kind") == PLAN_PART,
            watch=bool(row.options.get(BY_WATCH)) and row.schedule_id is not None,
            schedule_id=await self._schedule_of(row),
            created_at=row.created_at,
            started_at=row.started_at,
            ended_at=row.ended_at,
        )

    async def _position(self, row: RunRow) -> int:
        """Return the run's place in the queue, from 1."""
        usable = [phone.serial for phone in (await self._fleet.phones()).values() if phone.usable]
        return await self.context.runs.place(row.id, usable)

    async def _schedule_of(self, row: RunRow) -> str:
        """Return the number of the schedule that started a run, or its sweep; "" for none."""
        if row.schedule_id is not None or not row.parent_id:
            return str(row.schedule_id or "")
        return str((await History(self._db).schedules_of([row.id])).get(row.id, ""))

    async def _by(self, row: RunRow) -> str:
        """Return the name of the person or program that started a run, else its id."""
        person = await self._person_of(row.requested_by)
        if person is not None:
            return person.name
        programs = await program_names(self._db) if ":" in row.requested_by else {}
        return programs.get(row.requested_by, row.requested_by)

    async def _busy_with(self, row: RunRow) -> BusyView | None:
        """Return what has the phone of a queued run; None if nothing has it, or it may have any of several."""
        held = await Leases(self._db, seconds=self._fleet.seconds).held()
        taken = [lease for lease in held if row.wanted in ("", lease.serial)]
        if len(taken) != 1 or taken[0].run_id == row.id:
            return None
        run = await Runs(self._db).get(taken[0].run_id) if taken[0].run_id else None
        if run is None:
            by = taken[0].person
            return BusyView("other") if by is None else BusyView("person", by=by)
        session = Session.model_validate_json(run.session) if run.session else None
        asks = session is not None and session.status is Status.WAITING
        number, steps = await History(self._db).number_of(run.id), len(session.steps) if session else 0
        return BusyView("asks" if asks else "run", number, run.task, steps, await self._by(run))

    async def _away(self, row: RunRow) -> _Away:
        """Return why a queued run cannot have its phone now, and until when it waits for it."""
        elsewhere = {phone.serial: phone for phone in await self._elsewhere()}
        entries: Sequence[DeviceEntry] = []
        if self.context.glance is not None:
            try:
                async with asyncio.timeout(GLANCE_SECONDS):
                    entries = await self.context.glance()
            except TimeoutError:
                return _Away()  # adb did not answer in time: nothing is known
            except PhonedeskError:
                pass  # no adb: no phone
        elif not elsewhere:
            return _Away()  # the attached phones are unknown here
        why = away_from(row.wanted, entries, elsewhere)
        if not why or row.attempt_due_at is None:
            return _Away()
        until = self._fleet.waits_until(row, await self._fleet.phones())
        local = until.astimezone(self._zone) if until is not None else None
        if not (self.context.host or await self._fleet.is_worked()):
            return _Away("nobody", local)
        if not row.wanted:
            return _Away("none", local)
        if why == "away":
            phone = elsewhere[row.wanted]
            return _Away("host", local, phone.host, phone.since.astimezone(self._zone))
        return _Away("unauthorized" if why == "unauthorized" else "offline", local)


def _no_run(name: str) -> NotFound:
    return NotFound(f"There is no run {name}.", advice="See /history for the numbers.", key="no_run", name=name)


def _is_in_line(row: RunRow) -> bool:
    return status_of(row, asks=False) is RunStatus.QUEUED and row.again_at is None


def status_of(row: RunRow, *, asks: bool) -> RunStatus:
    """Return a run's status for people. ``asks``: it has an open question.

    A run with an open question is waiting, even while its attempt continues and keeps the phone for the answer. A run
    that was answered or resumed and only needs its phone is queued.
    """
    if row.status == RUNNING and asks:
        return RunStatus.WAITING
    if row.status == WAITING and row.attempt_due_at is not None:
        return RunStatus.QUEUED
    return RunStatus(row.status)


async def check_tags(db: Database, order: SweepOrder) -> None:
    """Raise BadRequest if no contact has one of the tags: such a sweep would never find anybody."""
    if unknown := await unknown_tags(db, order):
        error = no_tag(unknown)
        raise BadRequest(error.message, advice=error.advice, key=error.key, **error.values)
