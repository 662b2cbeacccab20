"""The planner's executor: each call is a run on a phone, with lease, gate, ledger, questions and recording.

A call is done at once, not by the queue: it takes the phone, or gets the answer that the phone is busy. Once it waits
for a person and has given the phone back, the queue continues it as any run; the call waits for its end.

Between two calls the phone is free. If another owner had it since the plan's last call there, the next call does
nothing and says so: the screen that the planner believes to be in front, above all a chat, may have changed.
"""

from __future__ import annotations

import asyncio
import string
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

import structlog

from agent_core.devices.base import Battery, DeviceEntry
from agent_core.errors import PhonedeskError
from agent_core.loop.tasks import NO_RULES, TaskRules, check_task
from agent_core.planner import CallResult, PhoneInfo
from agent_core.planner.words import texts
from agent_core.policies import PolicyName
from agent_core.session import Session
from bot.app.core import Core
from bot.app.plans.state import PlanGate
from bot.desk.views import NewPlan
from scheduler.runs.service import RunService
from scheduler.runs.worker import Worker, attempt_id
from storage.engine import MISSED_SECONDS
from storage.failures import is_away
from storage.hosts import USABLE
from storage.leases import Leases
from storage.questions import OPEN, Questions
from storage.repository import run_shielded
from storage.runs import FAILED, PLAN_PART, STOPPED, SUCCEEDED, WAITING, NewRun, RunRow, Runs

log = structlog.get_logger(__name__)


@dataclass(eq=False)
class _Call:
    """One call of a plan.

    taken: it has had the phone.
    meanwhile: another owner has had the phone since the plan's last call there, so nothing was done.
    left: it is an ordinary run from here on.
    """

    run_id: str = ""
    stopped: bool = False
    taken: bool = False
    meanwhile: bool = False
    left: bool = False
    task: asyncio.Task[CallResult] | None = None


class PlanExecutor:
    """The executor of one plan; implements ``agent_core.planner.Executor``."""

    def __init__(
        self,
        core: Core,
        worker: Worker,
        runs: RunService,
        plan_id: str,
        plan: NewPlan,
        reply: PlanGate | None = None,
        keep: Callable[[], Awaitable[None]] | None = None,
        say: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        """plan_id: the run of the plan.
        keep: stores ``reply`` each time it has changed.
        say: shows people who follow the plan what it waits for.
        """
        self.reply = reply
        self._keep = keep
        self._say = say
        self._core = core
        self._worker = worker
        self._service = runs
        self._plan_id = plan_id
        self._plan = plan
        self._words = texts(plan.lang)
        self._runs = Runs(core.db)
        self._calls: set[_Call] = set()
        self._hands: dict[str, int] = {}  # by phone: the fencing number under which the plan had it last
        self._turns: set[str] = set()  # phones on which a call of the plan is under way: its others wait for it
        self._stopped = False

    # The tools --------------------------------------------------------------------------------------------------------

    async def list_devices(self) -> list[PhoneInfo]:
        entries = await self._entries()
        busy = await self._busy()
        return [
            PhoneInfo(entry.serial, self._model(entry), _status(entry, busy), _connection(entry)) for entry in entries
        ]

    async def chat(self, device_id: str, message: str) -> CallResult:
        call = _Call()
        call.task = asyncio.create_task(self._call(call, device_id, message), name="plan-call")
        self._calls.add(call)
        try:
            return await asyncio.shield(call.task)
        except asyncio.CancelledError:
            if not call.left:
                await run_shielded(self._halt(call))
            raise
        finally:
            self._calls.discard(call)

    async def battery(self, device_id: str) -> Battery:
        serial = await self._serial(device_id)
        if serial is None:
            return Battery()
        device = await self._core.attached.device(serial)
        try:
            return await device.battery()
        finally:
            await device.close()

    async def stop(self) -> None:
        """End every call, and begin no more; their phones are free when this returns."""
        self._stopped = True
        await asyncio.gather(*(self._halt(call) for call in list(self._calls)))

    async def leave(self) -> None:
        """Begin no more calls, and end the active ones, except those that wait for a person: they continue by
        themselves.
        """
        self._stopped = True
        await asyncio.gather(*(self._leave(call) for call in list(self._calls)))

    # A call -----------------------------------------------------------------------------------------------------------

    async def _halt(self, call: _Call) -> None:
        call.stopped = True
        if call.run_id:
            await self._service.request_stop(call.run_id)
        if call.task is not None:
            await asyncio.wait([call.task])

    async def _leave(self, call: _Call) -> None:
        if call.run_id and await Questions(self._core.db).find(run_id=call.run_id, state=OPEN, limit=1):
            call.left = True
            self._core.db.signal("runs").notify()
        else:
            await self._halt(call)

    async def _call(self, call: _Call, device_id: str, message: str) -> CallResult:
        try:
            message = check_task(message)
            serial = await self._serial(device_id)
            if serial is None:
                return self._said("no_phone", phone=device_id)
            if not await self._is_free(serial, call):
                return self._said("stopped" if self._ended(call) else "busy", phone=device_id)
            try:
                return await self._run(call, serial, device_id, message)
            finally:
                self._turns.discard(serial)
                self._core.db.signal("runs").notify()
        except PhonedeskError as error:
            return self._said("tool_failed", why=str(error))

    async def _run(self, call: _Call, serial: str, device_id: str, message: str) -> CallResult:
        """Do the call as a run: make its row and its session first, then start the attempt immediately."""
        session, run_id = await self._begun(call, serial, message)
        self._worker.takers[run_id] = partial(self._taken, call, serial)
        try:
            await self._first_attempt(call)
            row = await self._row(call)
            if call.meanwhile or not (call.taken or row.final):
                # Somebody was faster, or had the phone since the last call, or this one was stopped before.
                status, why = (STOPPED, "stopped") if self._ended(call) else (FAILED, "busy")
                told = self._said("meanwhile" if call.meanwhile else why, phone=device_id)
                await self._runs.end_attempt(run_id, 1, status=status, message=told.result)
                return told
            return await self._outcome(serial, await self._final(call, row), session)
        finally:
            self._worker.takers.pop(run_id, None)

    async def _first_attempt(self, call: _Call) -> None:
        if self._ended(call):
            return
        try:
            await self._worker.run_attempt(attempt_id(call.run_id, 1))
        except Exception as error:
            # Most likely the database is away: the work is seen once it is back.
            log.warning("plan_part_not_stored", run_id=call.run_id, error=repr(error), exc_info=not is_away(error))

    def _taken(self, call: _Call, serial: str, fencing: int) -> bool:
        """Record that an attempt of the call has the phone. Return whether it may begin.

        It may not if another owner had the phone since the plan's last call; a later attempt looks itself at what is in
        front.
        """
        before, self._hands[serial] = self._hands.get(serial), fencing
        if not call.taken:
            call.taken = True
            call.meanwhile = before is not None and fencing != before + 1
        return not call.meanwhile

    async def _begun(self, call: _Call, serial: str, message: str) -> tuple[Session, str]:
        core, plan = self._core, self._plan
        steps = core.settings.planner.executor_steps
        settings = core.agent_settings(lang=plan.lang, max_steps=steps)
        new = NewRun(
            message,
            serial,
            options={"kind": PLAN_PART, "lang": plan.lang, "max_steps": steps},
            requested_by=plan.requested_by,
            chat=plan.chat,
            parent_id=self._plan_id,
            begun=True,
        )
        run_id = await self._runs.create(new)
        if run_id is None:
            raise RuntimeError("The run was not stored.")
        call.run_id = run_id
        # The person's words decide the policy, whatever the planner makes of them.
        careful = TaskRules(PolicyName.CAREFUL.value)
        session = await core.session(message, serial, settings, run_id=run_id, rules=careful)
        if self.reply is not None:
            session.policy = PolicyName.REPLY.value
            session.gate = self.reply.phones.get(serial) or (
                await core.session(self.reply.task, serial, settings, run_id=run_id, rules=NO_RULES)
            ).gate.model_copy(deep=True)
        await self._runs.save_session(run_id, session.model_dump_json())
        return session, run_id

    async def _final(self, call: _Call, row: RunRow) -> RunRow:
        """Return the run once it is over, or left to itself.

        While it waits for a person it has no phone, and the queue continues it.
        """
        told = ""
        while not row.final and not call.left:
            waiter = self._core.db.signal("runs").waiter()
            row = await self._row(call)
            if not row.final and not call.left:
                told = await self._tell_of_question(row, told)
                await waiter.wait(MISSED_SECONDS)
        return row

    async def _tell_of_question(self, row: RunRow, told: str) -> str:
        """Report what the run waits for, each question once. Return the id of the newest question that was reported."""
        if self._say is None or row.status != WAITING:
            return told
        try:
            asked = await Questions(self._core.db).find(run_id=row.id, state=OPEN, limit=1)
        except Exception as error:  # noqa: BLE001 - the database is away: it is told a moment later
            log.warning("plan_part_not_seen", run_id=row.id, error=type(error).__name__)
            return told
        if asked and asked[0].id != told:
            told = asked[0].id
            await self._say(self._fill("waits", text=str(asked[0].payload.get("text", "")), id=told))
        return told

    async def _row(self, call: _Call) -> RunRow:
        """Return the run as it is stored. It is not given up because the database is away for a moment."""
        while True:
            waiter = self._core.db.signal("runs").waiter()
            try:
                row = await self._runs.get(call.run_id)
            except Exception as error:
                if self._ended(call) or call.left:
                    raise
                log.warning("plan_part_not_seen", run_id=call.run_id, error=type(error).__name__)
                await waiter.wait(MISSED_SECONDS)
                continue
            if row is None:
                raise RuntimeError("The run is gone.")
            return row

    async def _outcome(self, serial: str, row: RunRow, session: Session) -> CallResult:
        if row.session is not None:
            session = Session.model_validate_json(row.session)
        succeeded = row.status == SUCCEEDED
        if self.reply is not None:
            self.reply.leave(serial, session, succeeded=succeeded)
            await self._kept()
        sent = [self._fill("sent", contact=reply.contact, text=reply.text) for reply in session.replies]
        last = row.message or session.message or ("" if row.status != STOPPED else self._words.stopped)
        return CallResult("\n".join(filter(None, (*sent, last))), steps=len(session.steps), success=succeeded)

    async def _kept(self) -> None:
        if self._keep is None:
            return
        try:
            await self._keep()
        except Exception as error:  # noqa: BLE001 - what was done on the phone is to be told in any case
            log.warning("plan_gate_not_stored", plan_id=self._plan_id, error=type(error).__name__)

    # Phones -----------------------------------------------------------------------------------------------------------

    async def _entries(self) -> list[DeviceEntry]:
        allowed = (self._plan.only,) if self._plan.only else self._plan.serials
        return [entry for entry in await self._core.attached.phones() if not allowed or entry.serial in allowed]

    async def _serial(self, device_id: str) -> str | None:
        """Return the phone with this id, or that people call so; None if there is none that may be used."""
        entries = await self._entries()
        serial = (await self._core.attached.book(entries)).serial(device_id)
        return serial if any(entry.serial == serial for entry in entries) else None

    async def _busy(self) -> set[str]:
        """Return the phones that somebody has."""
        leases = Leases(self._core.db, seconds=self._core.settings.queue.lost_after_seconds)
        return {lease.serial for lease in await leases.held()}

    async def _is_free(self, serial: str, call: _Call) -> bool:
        """Wait until nobody has the phone, at most for the settings' time. Return whether it is free; it is then the
        call's turn.

        Another call of this plan is waited for without a limit.
        """
        db, loop = self._core.db, asyncio.get_running_loop()
        patience = self._core.settings.planner.busy_wait_seconds
        until = loop.time() + patience
        while not self._ended(call):
            waiter = db.signal("runs").waiter()
            busy = await self._busy()
            left = MISSED_SECONDS
            if serial in self._turns:
                until = loop.time() + patience
            elif serial not in busy:
                self._turns.add(serial)
                return True
            elif (left := until - loop.time()) <= 0:
                return False
            await waiter.wait(min(left, MISSED_SECONDS))
        return False

    def _ended(self, call: _Call) -> bool:
        return self._stopped or call.stopped

    def _model(self, entry: DeviceEntry) -> str:
        model = entry.model.replace("_", " ")
        names = self._core.settings.device.names
        name = next((names[one] for one in (entry.serial, *entry.transports) if one in names), "")
        return f"{name} ({model})" if name and model else name or model

    # Words ------------------------------------------------------------------------------------------------------------

    def _fill(self, key: str, **values: str) -> str:
        return string.Template(getattr(self._words, key)).substitute(values)

    def _said(self, key: str, **values: str) -> CallResult:
        return CallResult(self._fill(key, **values))


def _status(entry: DeviceEntry, busy: set[str]) -> str:
    if entry.state != USABLE:
        return entry.state
    return "busy" if entry.serial in busy else "free"


def _connection(entry: DeviceEntry) -> str:
    return "network" if entry.connection == "tcp" else "usb"
