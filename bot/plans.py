"""Plans in this process: begun, followed, stopped, and written down as runs that have runs of their own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import structlog

from agent_core.errors import ConfigMissing
from agent_core.planner import (
    Order,
    PlanDone,
    PlanEvent,
    PlanFailed,
    PlanMessage,
    Tool,
    ToolCalled,
    ToolReturned,
    knowledge_tool,
    phone_tools,
)
from agent_core.planner.planner import Planner
from agent_core.planner.tools import battery_tool
from agent_core.planner.words import texts
from bot.app import Core
from bot.desk.actors import BadRequest
from bot.desk.plans_port import NewPlan
from bot.planning import PlanExecutor, PlanPlace, reply_state
from bot.settings.sections import PlannerSettings
from bot.turnover import Turnover
from scheduler.runs import RunService
from scheduler.worker import WATCH_SECONDS, Worker
from storage.events import Events
from storage.plans import ConversationRow, Conversations, Plans
from storage.runs import FAILED, PLAN, STOPPED, SUCCEEDED, NewRun, Runs

log = structlog.get_logger(__name__)

BEAT_SECONDS = 5.0
MOST_KEPT = 1000  # characters of a tool's result in the event log; the conversation has all of it
REMEMBERED = 100  # plans that are over and may still be followed


class SessionBusy(BadRequest):
    """A plan of this conversation is under way."""

    kind = "desk.session_busy"


class _Memory:
    """``agent_core.planner.Memory`` of one conversation."""

    def __init__(self, conversations: Conversations, key: str) -> None:
        self._conversations = conversations
        self._key = key

    async def items(self, limit: int | None = None) -> list[dict[str, Any]]:
        return await self._conversations.items(self._key, limit)

    async def add(self, items: Sequence[Mapping[str, Any]]) -> None:
        await self._conversations.add(self._key, items)

    async def pop(self) -> dict[str, Any] | None:
        return await self._conversations.pop(self._key)

    async def clear(self) -> None:
        await self._conversations.clear(self._key)


@dataclass(eq=False)
class _Plan:
    """A plan of this process. ``before``: its conversation as it was; ``why``: what ended it before its time;
    ``closing``: its outcome is being stored, and told.
    """

    run_id: str
    new: NewPlan
    before: ConversationRow
    events: list[PlanEvent] = field(default_factory=list)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    executor: PlanExecutor | None = None
    task: asyncio.Task[None] | None = None
    why: str = ""
    closing: bool = False
    over: bool = False

    async def tell(self, event: PlanEvent) -> None:
        self.events.append(event)
        self.over = isinstance(event, PlanDone | PlanFailed)
        async with self.changed:
            self.changed.notify_all()


class PlanService:
    """``bot.desk.plans_port.Planning`` with the phones of this process. ``close`` before the worker is."""

    def __init__(self, core: Core, worker: Worker, runs: RunService) -> None:
        self._core = core
        self._worker = worker
        self._service = runs
        self._runs = Runs(core.db)
        self._plans = Plans(core.db)
        self._events = Events(core.db)
        self._conversations = Conversations(core.db)
        self._known: dict[str, _Plan] = {}  # by run
        self._starting: set[str] = set()  # conversations
        self._planner: tuple[PlannerSettings, Planner] | None = None
        self._turnover = Turnover()
        self._watching: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()
        # What the owner can have the planner use besides the phones: one line each.
        self._extra: dict[str, Tool] = {
            tool.name: tool for tool in (knowledge_tool(lambda: core.knowledge), battery_tool())
        }

    # What can be asked ------------------------------------------------------------------------------------------------

    async def start(self, new: NewPlan) -> str:
        check_planner(self._core.settings.planner)
        if new.session in self._starting or self._live(new.session) is not None:
            raise SessionBusy(
                "A plan of this session is under way.",
                advice="Wait until it is done, or abort it.",
                key="plan_busy",
            )
        self._starting.add(new.session)
        try:
            return await self._start(new)
        finally:
            self._starting.discard(new.session)

    async def _start(self, new: NewPlan) -> str:
        before = await self._conversations.open(new.session)  # whoever aborts it finds it
        row = NewRun(
            new.task,
            new.only or next(iter(new.serials), ""),
            options={"kind": PLAN, "lang": new.lang},
            requested_by=new.requested_by,
            chat=new.chat,
            begun=True,
        )
        run_id = await self._runs.create(row, key=new.key)
        if run_id is None:
            raise RuntimeError("The plan was not stored.")
        stored = await self._runs.get(run_id)
        # Asked again under the same key, it is under way, or over.
        if stored is not None and not stored.final and await self._plans.begin(run_id, new.session):
            plan = self._known[run_id] = _Plan(run_id, new, before)
            self._worker.at_work_beside.add(run_id)
            plan.task = asyncio.create_task(self._make(plan), name=f"plan-{run_id}")
            if self._watching is None or self._watching.done():
                self._watching = asyncio.create_task(self._watch(), name="plans-watch")
        return run_id

    async def follow(self, run_id: str) -> AsyncIterator[PlanEvent]:
        plan = self._known[run_id]
        told = 0
        while True:
            async with plan.changed:
                while len(plan.events) <= told:
                    await plan.changed.wait()
            for event in plan.events[told:]:
                told += 1
                yield event
                if isinstance(event, PlanDone | PlanFailed):
                    return

    async def stop(self, session: str, *, by: str = "") -> bool:
        plan = self._live(session)
        if plan is None:
            return False
        await self._service.request_stop(plan.run_id, by=by)
        await self._end(plan, STOPPED)
        return True

    async def leave(self, run_id: str) -> None:
        plan = self._known.get(run_id)
        if plan is not None and not plan.over:
            await self._service.request_stop(run_id)
            await self._end(plan, STOPPED)

    async def known(self, session: str) -> bool:
        return await self._conversations.get(session) is not None

    async def forget(self, session: str) -> bool:
        await self.stop(session)
        return await self._conversations.forget(session)

    async def close(self) -> None:
        """End every plan as one that was cut off; what it has begun on phones is left to the queue."""
        await asyncio.gather(*(self._end(plan, FAILED) for plan in list(self._known.values()) if not plan.over))
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, *self._ending, return_exceptions=True)
        if self._planner is not None:
            await self._turnover.replaced([self._planner[1].close])
        await self._turnover.close()

    # A plan -----------------------------------------------------------------------------------------------------------

    def _live(self, session: str) -> _Plan | None:
        return next((plan for plan in self._known.values() if plan.new.session == session and not plan.over), None)

    async def _end(self, plan: _Plan, why: str) -> None:
        """End it before its time; its outcome is stored when this returns. Stopped, its phones are free, too; cut off,
        what was begun on them goes on.
        """
        plan.why = plan.why or why
        try:
            if plan.executor is not None and why == STOPPED:
                await plan.executor.stop()
            elif plan.executor is not None:
                plan.executor.leave()
        finally:
            if plan.task is not None:
                if not plan.closing:
                    plan.task.cancel()
                await asyncio.wait([plan.task])
        if not plan.over:  # it had not begun yet
            await self._close(plan, PlanDone("", success=False))

    async def _make(self, plan: _Plan) -> None:
        words = texts(plan.new.lang)
        end: PlanDone | PlanFailed
        try:
            async with self._turnover.used(), self._core.turnover.used():
                end = await self._made(plan)
        except asyncio.CancelledError:
            end = PlanDone(words.stopped, success=False)
        except Exception as error:  # whoever follows the plan is told, and its run ends
            log.exception("plan_crashed", run_id=plan.run_id)
            end = PlanFailed(words.crashed.replace("$why", type(error).__name__))
        await self._close(plan, end)

    async def _close(self, plan: _Plan, end: PlanDone | PlanFailed) -> None:
        """Store the outcome, then tell of it."""
        words = texts(plan.new.lang)
        plan.closing = True
        if plan.why:
            end = PlanDone(words.stopped, success=False) if plan.why == STOPPED else PlanFailed(words.interrupted)
        try:
            await self._store(plan, end)
        except Exception as error:  # the database is away: the plan's heartbeat ends, and it is found dead
            log.exception("plan_not_stored", run_id=plan.run_id, error=repr(error))
        finally:
            self._worker.at_work_beside.discard(plan.run_id)
            await plan.tell(end)
            self._tidy()

    async def _made(self, plan: _Plan) -> PlanDone | PlanFailed:
        core, new = self._core, plan.new
        place = PlanPlace(
            plan.run_id, new.lang, new.requested_by, new.chat, serials=(new.only,) if new.only else new.serials
        )
        reply = reply_state(new.task, plan.before.gate)

        async def keep() -> None:
            """Also what is over: whoever goes on with the conversation goes on with these customers."""
            if reply is not None:
                await self._conversations.set_gate(new.session, reply.data())

        await keep()  # before anything is done: after a kill the conversation goes on under its gate
        executor = plan.executor = PlanExecutor(core, self._worker, self._service, place, reply, keep)
        if plan.why:
            return PlanDone("", success=False)
        zone = ZoneInfo(core.settings.timezone) if core.settings.timezone else None
        order = Order(new.task, new.lang, datetime.now(zone).date().isoformat(), new.only)
        planner = await self._planner_now()
        memory = _Memory(self._conversations, new.session)
        return await planner.plan(order, executor, memory, partial(self._tell, plan))

    async def _tell(self, plan: _Plan, event: PlanEvent) -> None:
        """To who follows, and into the event log, from which cards are drawn."""
        await self._events.append(plan.run_id, *_written(event))
        await plan.tell(event)

    async def _store(self, plan: _Plan, end: PlanDone | PlanFailed) -> None:
        if plan.why == STOPPED:
            await self._runs.end_leg(plan.run_id, 1, status=STOPPED)
        elif isinstance(end, PlanFailed):
            await self._runs.end_leg(plan.run_id, 1, status=FAILED, message=end.message)
        else:
            status = SUCCEEDED if end.success else FAILED
            await self._runs.end_leg(plan.run_id, 1, status=status, message=end.content)

    async def _planner_now(self) -> Planner:
        """The planner of the settings as they are now: a new one where they have changed, and only then."""
        wanted = self._core.settings.planner
        if self._planner is None or self._planner[0] != wanted:
            former = self._planner
            self._planner = wanted, self._built(wanted)
            if former is not None:
                await self._turnover.replaced([former[1].close])
        return self._planner[1]

    def _built(self, wanted: PlannerSettings) -> Planner:
        extra = [self._extra[name] for name in wanted.tools]
        return Planner(
            wanted.base_url,
            wanted.name,
            wanted.api_key.get_secret_value(),
            tools=(*phone_tools(), *extra),
            max_turns=wanted.layered_max_turns,
            steps=wanted.executor_steps,
            timeout=wanted.timeout_seconds,
            meter=self._core.meter,
        )

    def _tidy(self) -> None:
        """Of the plans that are over the newest may still be followed."""
        over = [run_id for run_id, plan in self._known.items() if plan.over]
        for run_id in over[:-REMEMBERED]:
            del self._known[run_id]

    async def _watch(self) -> None:
        """See what is asked of the plans that are under way (by /stop, in any process), and tell that they live."""
        loop = asyncio.get_running_loop()
        beaten = loop.time()
        while live := {run_id: plan for run_id, plan in self._known.items() if not plan.over}:
            waiter = self._core.db.signal("runs").waiter()
            try:
                asked = await self._runs.asked(list(live))
                for run_id, (stop, _) in asked.items():
                    if stop:
                        self._end_soon(live[run_id], STOPPED)
                if loop.time() - beaten >= BEAT_SECONDS:
                    beaten = loop.time()
                    going = await self._plans.beat(list(live))
                    for run_id in live.keys() - going:  # the database was away, and another host took it for dead
                        self._end_soon(live[run_id], FAILED)
            except Exception as error:  # noqa: BLE001 - a database that is away for a moment ends no plan
                log.warning("plans_not_watched", error=repr(error))
            await waiter.wait(WATCH_SECONDS)

    def _end_soon(self, plan: _Plan, why: str) -> None:
        """It is not waited for: the others' hearts beat on."""
        if plan.why or plan.closing:
            return
        ending = asyncio.create_task(self._end(plan, why), name=f"plan-end-{plan.run_id}")
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)


def check_planner(planner: PlannerSettings) -> None:
    """ConfigMissing where there is none, with the settings to set."""
    if not planner.base_url:
        raise ConfigMissing(
            "No planner is set.",
            advice="Set PHONEDESK_PLANNER__BASE_URL and PHONEDESK_PLANNER__NAME (and …__API_KEY), or use /run.",
            key="no_planner",
        )


def _written(event: PlanEvent) -> tuple[str, dict[str, Any]]:
    """The event's kind and data in the log."""
    match event:
        case ToolCalled():
            return "tool_call", {"call": event.call, "tool": event.tool_name, "args": dict(event.tool_args)}
        case ToolReturned():
            data = event.result
            said = data.get("result", "") if isinstance(data, dict) else data if isinstance(data, str) else ""
            result = str(said)[:MOST_KEPT]
            return "tool_result", {"call": event.call, "tool": event.tool_name, "ok": event.ok, "result": result}
        case PlanMessage():
            return "message", {"content": event.content}
        case PlanDone() | PlanFailed():
            return "message", {"content": ""}
