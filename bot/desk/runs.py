"""Runs: start, stop, look."""

from __future__ import annotations

from agent_core.session import Session, Status
from agent_core.tasks import NO_RULES, TaskRules, check_rules, check_task
from bot.desk.actors import Actor, ChatRef, NotFound, Role
from bot.desk.answers import AnswersDesk
from bot.desk.house import chat_data, no_phone, sees
from bot.desk.port import RunStatus, RunView
from storage.history import History
from storage.people import People
from storage.runs import ACTIVE, QUEUED, RUNNING, RunRow, Runs

MAX_NUMBER = 9  # digits; an id has 13 characters


class RunsDesk(AnswersDesk):
    async def start_run(
        self,
        actor: Actor,
        task: str,
        *,
        chat: ChatRef,
        serial: str | None = None,
        rules: TaskRules = NO_RULES,
        key: str = "",
    ) -> RunView:
        """Queue a run. InputRejected for a task that is none; ``key`` as the port says."""
        task = check_task(task)
        check_rules(task, rules)
        wanted = self._phone_for(actor, serial)
        await self._allow(actor, Role.OPERATOR, "run", phone=wanted, chat=chat, task=task, serial=wanted)
        if serial and serial not in {entry.serial for entry in await self.house.entries()}:
            raise no_phone(serial)
        run_id = await self.house.runs.submit(
            task,
            serial=wanted,
            options={"lang": actor.lang, **rules.data()},
            requested_by=actor.id,
            chat=chat_data(chat),
            key=key,
        )
        view = await self.run(run_id)
        if view is None:
            raise NotFound(f"The run {run_id} is gone.", key="no_run", name=run_id)
        return view

    async def stop_run(self, actor: Actor, run_id: str | None = None) -> RunView | None:
        row = await self._named(run_id) if run_id is not None else None
        await self._allow(actor, Role.OPERATOR, "stop", phone=row.serial if row else None, run_id=run_id or "")
        if run_id is None:
            row = await self._going_of(actor)
        if row is None or row.final:
            return None
        await self.house.runs.request_stop(row.id, by=actor.name)
        return await self.run(row.id)

    async def hold_run(self, actor: Actor, run_id: str | None = None) -> RunView | None:
        row = await self._named(run_id) if run_id is not None else None
        await self._allow(actor, Role.OPERATOR, "hold", phone=row.serial if row else None, run_id=run_id or "")
        if run_id is None:
            row = await self._going_of(actor)
        if row is None or row.final or row.stop_requested:
            return None
        await self.house.runs.hold(row.id)
        view = await self.run(row.id)
        return view if view is not None and view.held else None

    async def resume_run(self, actor: Actor, run_id: str | None = None) -> RunView | None:
        row = await self._named(run_id) if run_id is not None else None
        await self._allow(actor, Role.OPERATOR, "resume", phone=row.serial if row else None, run_id=run_id or "")
        if run_id is None:
            row = await self._held_of(actor)
        if row is None or not await self.house.runs.resume(row.id):
            return None
        return await self.run(row.id)

    async def _named(self, name: str) -> RunRow | None:
        """The run by its id, or by the number that ``/history`` shows."""
        name = name.strip().lstrip("#＃").strip()
        row = await Runs(self._db).get(name.lower())
        if row is None and name.isdecimal() and len(name) <= MAX_NUMBER:
            run_id = await History(self._db).id_of(int(name))
            row = await Runs(self._db).get(run_id) if run_id else None
        return row

    async def _held_of(self, actor: Actor) -> RunRow | None:
        """The newest held run of this person, else of anybody."""
        held = [run for run in await Runs(self._db).find(statuses=ACTIVE, limit=500) if run.hold]
        held = [run for run in held if sees(actor, run.serial)]
        return next((run for run in held if run.requested_by == actor.id), held[0] if held else None)

    async def _going_of(self, actor: Actor) -> RunRow | None:
        """The newest run that this person started and that is not over, else one that a schedule started."""
        going = await Runs(self._db).find(statuses=ACTIVE, requested_by=actor.id)
        if not going:
            going = [run for run in await Runs(self._db).find(statuses=ACTIVE) if run.schedule_id is not None]
        return next((run for run in going if sees(actor, run.serial)), None)

    async def run(self, run_id: str) -> RunView | None:
        row = await Runs(self._db).get(run_id)
        return await self._run_view(row) if row else None

    async def _run_view(self, row: RunRow) -> RunView:
        session = Session.model_validate_json(row.session) if row.session else None
        person = await People(self._db).get(int(row.requested_by)) if row.requested_by.isdecimal() else None
        return RunView(
            id=row.id,
            task=row.task,
            status=_status(row, session),
            lang="en" if row.options.get("lang") == "en" else "zh",
            serial=row.serial,
            phone=row.serial,
            chat=await self.chat_of(row),
            by=person.name if person else row.requested_by,
            steps=len(session.steps) if session else 0,
            max_steps=session.max_steps if session else int(row.options.get("max_steps") or 100),
            last_step=session.steps[-1] if session and session.steps else None,
            message=row.message or (session.message if session else ""),
            error_kind=session.error_kind if session else "",
            replies=tuple(session.replies) if session else (),
            answers=await self.sent_in(row.id) if session and session.replies else (),
            position=await self._position(row),
            held=row.hold,
            stopped_by=row.stopped_by,
            created_at=row.created_at,
            started_at=row.started_at,
            ended_at=row.ended_at,
        )

    async def _position(self, row: RunRow) -> int:
        """The place in line, from 1; 0 for what is not queued."""
        if row.status != QUEUED:
            return 0
        line = [run for run in await Runs(self._db).due() if run.serial == row.serial]
        return next((place for place, run in enumerate(line, start=1) if run.id == row.id), 0)


def _status(row: RunRow, session: Session | None) -> RunStatus:
    """While a person is asked and the phone is held for the answer, the leg goes on but the run waits."""
    if row.status == RUNNING and session is not None and session.status is Status.WAITING:
        return RunStatus.WAITING
    return RunStatus(row.status)
