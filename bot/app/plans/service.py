"""Plans in this process: begun, followed, stopped, and written down as runs that have runs of their own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from contextvars import Context
from datetime import datetime
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import structlog

from agent_core import extras
from agent_core.errors import ConfigError, ConfigInvalid, ConfigMissing
from agent_core.planner import (
    PlanDone,
    PlanEvent,
    PlanFailed,
    PlanMessage,
    PlannerTask,
    PlannerTool,
    knowledge_tool,
    phone_tools,
)
from agent_core.planner.planner import Planner
from agent_core.planner.tools import battery_tool, own_tools
from agent_core.planner.words import texts
from agent_core.proxies import ProxySetting
from agent_core.texts import told
from bot.app.core import Core
from bot.app.models import ClientRotation
from bot.app.plans.executor import PlanExecutor
from bot.app.plans.state import Beginning, LivePlan, StoredMemory, note_of, reply_state, session_busy, written
from bot.app.settings.sections import PlannerSettings
from bot.desk.views import NewPlan
from scheduler.runs.service import RunService
from scheduler.runs.worker import Worker
from storage.engine import MISSED_SECONDS
from storage.events import Events
from storage.plans import Conversations, Plans, PlanUnderWay
from storage.runs import FAILED, PLAN, STOPPED, SUCCEEDED, NewRun, Runs

log = structlog.get_logger(__name__)

BEAT_SECONDS = 5.0
REMEMBERED = 100  # plans that are over and may still be followed


class PlanService:
    """The service that makes plans with the phones of this process. ``close`` it before the worker.

    ``session`` names a conversation, as in ``NewPlan``.
    """

    def __init__(self, core: Core, worker: Worker, runs: RunService) -> None:
        self._core = core
        self._worker = worker
        self._service = runs
        self._runs = Runs(core.db)
        self._alive_seconds = core.settings.queue.lost_after_seconds
        self._plans = Plans(core.db, seconds=self._alive_seconds)
        self._events = Events(core.db)
        self._conversations = Conversations(core.db)
        self._known: dict[str, LivePlan] = {}  # by run
        self._starting: dict[str, Beginning] = {}  # by conversation
        self._closing = False
        self._planner: tuple[tuple[PlannerSettings, ProxySetting], Planner] | None = None
        self._client_rotation = ClientRotation()
        self._watching: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()
        # The owner's tools for the planner besides the phones: one line each.
        self._extra: dict[str, PlannerTool] = {
            tool.name: tool for tool in (knowledge_tool(lambda: core.knowledge), battery_tool())
        }
        if core.settings.planner.base_url.strip():
            own_tools(core.settings.planner.tools)  # their problems are reported now, and not by the first plan

    # Operations -------------------------------------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """True if a planner is set; it may be set and removed while the process runs."""
        return bool(self._core.settings.planner.base_url)

    @contextmanager
    def beginning(self, session: str) -> Iterator[None]:
        """Announce that a plan of this conversation is about to begin: ``stop`` and ``forget`` find it, and wait.

        Raises SessionBusy while another one is under way in this process.
        """
        if session in self._starting or self._live(session) is not None:
            raise session_busy()
        begun = self._starting[session] = Beginning()
        try:
            yield
        finally:
            del self._starting[session]
            begun.over.set()

    async def start(self, new: NewPlan) -> str:
        """Begin a plan, inside ``beginning``, and return its run's id. If it was stopped since, it has ended then.

        Asked again with the same ``key``, it returns the run of the first time.
        Raises ConfigMissing if no planner is set, SessionBusy while another plan of the conversation is under way, in
        whichever process.
        """
        check_planner(self._core.settings.planner)
        begun = self._starting[new.session]
        if await self._plans.under_way(new.session) is not None:  # in another process
            raise session_busy()
        former = await self._plans.newest(new.session) or ""
        note = await self._note(former)
        before = await self._conversations.open(new.session)  # so that a call that aborts it finds it
        run_id = await self._stored(new)
        stored = await self._runs.get(run_id)
        if stored is None or stored.final:  # asked again under the same key
            return run_id
        try:
            mine = await self._plans.begin(run_id, new.session, host=self._worker.owner, former=former, note=note)
        except PlanUnderWay:
            await self._runs.end_attempt(run_id, 1, status=STOPPED)
            raise session_busy() from None
        if mine:
            plan = self._known[run_id] = LivePlan(run_id, new, before)
            self._worker.at_work_beside.add(run_id)
            if self._watching is None or self._watching.done():
                self._watching = asyncio.create_task(self._watch(), name="plans-watch")
            await self._begin(plan, begun)
        return run_id

    async def _begin(self, plan: LivePlan, begun: Beginning) -> None:
        """Have it made, unless it is to end before that."""
        why = FAILED if self._closing else begun.why
        if not why:
            # In a context of its own: whoever asked for the plan may follow it to its end as a guest of the database.
            plan.task = asyncio.create_task(self._make(plan), name=f"plan-{plan.run_id}", context=Context())
            return
        plan.why = why
        try:
            if why == STOPPED:
                await self._service.request_stop(plan.run_id, by=begun.by)
        finally:
            await self._close(plan, PlanDone("", success=False))

    async def _note(self, former: str) -> dict[str, Any] | None:
        """Return the note on the conversation's last plan, if that was cut off."""
        plan = await self._runs.get(former) if former else None
        if plan is None or plan.status == SUCCEEDED:
            return None
        return note_of(plan, await self._runs.parts_of(plan.id))

    async def _stored(self, new: NewPlan) -> str:
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
        return run_id

    async def follow(self, run_id: str) -> AsyncIterator[PlanEvent]:
        """Yield the events of a plan of this process, from its first to its last. Raises KeyError for any other."""
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
        """Stop the plan of a conversation, whichever process makes it; its phones are free when this returns.

        Returns False if none is under way.
        """
        begun = self._starting.get(session)
        if begun is not None:
            begun.why, begun.by = STOPPED, begun.by or by
            await begun.over.wait()
            return True
        plan = self._live(session)
        if plan is None:
            return await self._stop_elsewhere(session, by)
        await self._service.request_stop(plan.run_id, by=by)
        await self._end(plan, STOPPED)
        return True

    async def _stop_elsewhere(self, session: str, by: str) -> bool:
        """Stop a plan of another process, which looks at its row; should that one die, it is waited for no longer."""
        run_id = await self._plans.under_way(session)
        if run_id is None:
            return False
        await self._service.request_stop(run_id, by=by)
        signal = self._core.db.signal("runs")
        waiter = signal.waiter()
        while await self._plans.under_way(session) == run_id:
            await waiter.wait(MISSED_SECONDS)
            waiter = signal.waiter()
        return True

    async def leave(self, run_id: str) -> None:
        """Stop this very plan, if it is active, because its follower is gone."""
        plan = self._known.get(run_id)
        if plan is not None and not plan.over:
            await self._service.request_stop(run_id)
            await self._end(plan, STOPPED)

    async def session_of(self, run_id: str) -> str | None:
        """Return the conversation that a plan belongs to; None for a run that is not a plan."""
        return await self._plans.session_of(run_id)

    async def known(self, session: str) -> bool:
        """Tell whether there is such a conversation."""
        return session in self._starting or await self._conversations.get(session) is not None

    async def forget(self, session: str) -> bool:
        """Stop a conversation's plan, and delete the conversation. Returns False if there is none."""
        await self.stop(session)
        return await self._conversations.forget(session)

    async def close(self) -> None:
        """End every plan as cut off, together with its parts, except those that wait for a person."""
        self._closing = True
        await asyncio.gather(*(begun.over.wait() for begun in self._starting.values()))
        await asyncio.gather(*(self._end(plan, FAILED) for plan in list(self._known.values()) if not plan.over))
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, *self._ending, return_exceptions=True)
        if self._planner is not None:
            await self._client_rotation.replaced([self._planner[1].close])
        await self._client_rotation.close()

    # A plan -----------------------------------------------------------------------------------------------------------

    def _live(self, session: str) -> LivePlan | None:
        return next((plan for plan in self._known.values() if plan.new.session == session and not plan.over), None)

    async def _end(self, plan: LivePlan, why: str) -> None:
        """End it before its time. When this returns, its outcome is stored and its phones are free.

        If it is cut off, the parts that wait for a person continue.
        """
        plan.why = plan.why or why
        try:
            if plan.executor is not None and why == STOPPED:
                await plan.executor.stop()
            elif plan.executor is not None:
                await plan.executor.leave()
        finally:
            if plan.task is not None:
                if not plan.closing:
                    plan.task.cancel()
                await asyncio.wait([plan.task])
        if not plan.over:  # it had not begun yet
            await self._close(plan, PlanDone("", success=False))

    async def _make(self, plan: LivePlan) -> None:
        words = texts(plan.new.lang)
        end: PlanDone | PlanFailed
        try:
            async with self._client_rotation.used(), self._core.client_rotation.used():
                end = await self._made(plan)
        except asyncio.CancelledError:
            end = PlanDone(words.stopped, success=False)
        except Exception as error:  # the followers get the error, and the plan's run ends
            log.exception("plan_crashed", run_id=plan.run_id)
            end = PlanFailed(words.crashed.replace("$why", type(error).__name__))
        await self._close(plan, end)

    async def _close(self, plan: LivePlan, end: PlanDone | PlanFailed) -> None:
        """Store the outcome, then report it."""
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

    async def _made(self, plan: LivePlan) -> PlanDone | PlanFailed:
        core, new = self._core, plan.new
        reply = reply_state(new.task, plan.before.gate)

        async def keep() -> None:
            """Store the gate, even if it is over, because a continued conversation keeps its customers."""
            if reply is not None:
                await self._conversations.set_gate(new.session, reply.data())

        await keep()  # before anything is done: after a kill the conversation continues under its gate
        executor = plan.executor = PlanExecutor(
            core, self._worker, self._service, plan.run_id, new, reply, keep, partial(self._say, plan)
        )
        if plan.why:
            return PlanDone("", success=False)
        zone = ZoneInfo(core.settings.timezone) if core.settings.timezone else None
        order = PlannerTask(new.task, new.lang, datetime.now(zone).date().isoformat(), new.only)
        try:
            planner = await self._planner_now()
        except ConfigError as error:  # of a tool that was named while we ran
            return PlanFailed(told(error, new.lang))
        memory = StoredMemory(self._conversations, new.session)
        return await planner.plan(order, executor, memory, partial(self._tell, plan))

    async def _tell(self, plan: LivePlan, event: PlanEvent) -> None:
        """Send an event to the followers, and to the event log that cards are drawn from.

        A line missing there ends no plan.
        """
        try:
            await self._events.append(plan.run_id, *written(event))
        except Exception as error:  # noqa: BLE001 - as above
            kind = type(event).__name__
            log.warning("plan_event_not_stored", run_id=plan.run_id, kind=kind, error=type(error).__name__)
        await plan.tell(event)

    async def _say(self, plan: LivePlan, text: str) -> None:
        """Send a text to the followers only, because in a chat the question has its own card."""
        await plan.tell(PlanMessage(text))

    async def _store(self, plan: LivePlan, end: PlanDone | PlanFailed) -> None:
        if plan.why == STOPPED:
            await self._runs.end_attempt(plan.run_id, 1, status=STOPPED)
        elif isinstance(end, PlanFailed):
            await self._runs.end_attempt(plan.run_id, 1, status=FAILED, message=end.message)
        else:
            status = SUCCEEDED if end.success else FAILED
            await self._runs.end_attempt(plan.run_id, 1, status=status, message=end.content)

    async def _planner_now(self) -> Planner:
        """Return the planner of the current settings: a new one if they have changed, and only then."""
        wanted, proxy = self._core.settings.planner, self._core.settings.model_proxy
        if self._planner is None or self._planner[0] != (wanted, proxy):
            former = self._planner
            self._planner = (wanted, proxy), self._built(wanted, proxy)
            if former is not None:
                await self._client_rotation.replaced([former[1].close])
        return self._planner[1]

    def _built(self, wanted: PlannerSettings, proxy: ProxySetting) -> Planner:
        known = {**self._extra, **{tool.name: tool for tool in own_tools(wanted.tools)}}
        if missing := [name for name in wanted.tools if name not in known]:
            advice = "Your own tools are read at the start: restart phonedesk."
            raise ConfigInvalid(
                f"There was no tool {missing[0]!r} when this process began.",
                advice=advice,
                key="tool_not_there",
                name=missing[0],
            )
        extra = [known[name] for name in wanted.tools]
        return Planner(
            wanted.base_url,
            wanted.name,
            wanted.api_key.get_secret_value(),
            tools=(*phone_tools(), *extra),
            max_turns=wanted.layered_max_turns,
            steps=wanted.executor_steps,
            timeout=wanted.timeout_seconds,
            meter=self._core.meter,
            proxy=proxy,
        )

    def _tidy(self) -> None:
        """Forget plans that are over, except the newest, which may still be followed."""
        over = [run_id for run_id, plan in self._known.items() if plan.over]
        for run_id in over[:-REMEMBERED]:
            del self._known[run_id]

    async def _watch(self) -> None:
        """Follow the stop requests to the active plans (by /stop, in any process), and send their heartbeats."""
        loop = asyncio.get_running_loop()
        beaten = loop.time()
        while live := {run_id: plan for run_id, plan in self._known.items() if not plan.over}:
            waiter = self._core.db.signal("runs").waiter()
            try:
                asked = await self._runs.asked(list(live))
                for run_id, (stop, _) in asked.items():
                    if stop:
                        self._end_soon(live[run_id], STOPPED)
                if loop.time() - beaten >= min(BEAT_SECONDS, self._alive_seconds / 3):
                    beaten = loop.time()
                    going = await self._plans.beat(list(live))
                    for run_id in live.keys() - going:  # the database was away, and another host took it for dead
                        self._end_soon(live[run_id], FAILED)
            except Exception as error:  # noqa: BLE001 - a database that is away for a moment ends no plan
                log.warning("plans_not_watched", error=repr(error))
            await waiter.wait(MISSED_SECONDS)

    def _end_soon(self, plan: LivePlan, why: str) -> None:
        """End a plan without waiting for it, so that the others' heartbeats continue."""
        if plan.why or plan.closing:
            return
        ending = asyncio.create_task(self._end(plan, why), name=f"plan-end-{plan.run_id}")
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)


def check_planner(planner: PlannerSettings) -> None:
    """Raise ConfigMissing, with the settings to set, if there is no planner; ExtraMissing if its library is not
    installed.
    """
    if not planner.base_url:
        raise ConfigMissing(
            "No planner is set.",
            advice="Set PHONEDESK_PLANNER__BASE_URL and PHONEDESK_PLANNER__NAME (and …__API_KEY), or use /run.",
            key="no_planner",
        )
    extras.require("planner")
