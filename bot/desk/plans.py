"""Plans: tasks that a planner splits into several parts, each of them a run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import nullcontext
from typing import TYPE_CHECKING
from uuid import uuid4

from agent_core.errors import ConfigMissing
from agent_core.loop.tasks import check_task
from agent_core.planner import PlanEvent
from bot.desk.actors import Actor, ChatRef, NotFound, Role, no_phone
from bot.desk.context import DeskContext, DeskService, chat_data
from bot.desk.runs import DeskRuns
from bot.desk.views import NewPlan, RunView
from storage import ids

if TYPE_CHECKING:
    from bot.app.plans.service import PlanService


class DeskPlans(DeskService):
    """The service for plans. An operator may plan, on the phones that they may use."""

    def __init__(self, context: DeskContext, runs: DeskRuns) -> None:
        super().__init__(context)
        self._runs = runs

    @property
    def ready(self) -> bool:
        """True if this process can make plans: it has a planner and phones."""
        return self.context.planning is not None and self.context.planning.ready

    async def start(
        self,
        actor: Actor,
        task: str,
        *,
        chat: ChatRef | None = None,
        serial: str = "",
        session: str = "",
        after: str = "",
        key: str = "",
    ) -> RunView:
        """Start a plan for a task, and return its run.

        session: the conversation to continue, by the person's own name for it; "" for a new one.
        after: the run of a plan whose conversation to continue, if it is the person's own.
        key: the request's name, see ``Desk``.
        Raises InputRejected for a text that is not a task, NotFound for no such phone, and ConfigMissing if this
        process makes no plans.
        """
        task = check_task(task)
        if key and (begun := await ids.find(self._db, key)) is not None:  # asked again: return that plan
            return await self._view(begun)
        session = session or (await self._session_after(actor, after) if after else "")
        name = session or uuid4().hex
        planning = self.context.planning
        with planning.beginning(_key(actor, name)) if planning is not None else nullcontext():
            run_id = await self._start(actor, task, chat, serial, name, key)
        return await self._view(run_id)

    async def _view(self, run_id: str) -> RunView:
        view = await self._runs.get(run_id)
        if view is None:
            raise NotFound(f"The plan {run_id} is gone.", key="no_run", name=run_id)
        return view

    async def _start(self, actor: Actor, task: str, chat: ChatRef | None, serial: str, session: str, key: str) -> str:
        book = await self._book(await self.context.entries() if serial else [])
        only = book.serial(serial) if serial else ""
        await self._allow(actor, Role.OPERATOR, "plan", phone=only or None, chat=chat, task=task, serial=only)
        if serial and only not in book.known:
            raise no_phone(serial)
        new = NewPlan(
            task,
            session=_key(actor, session),
            lang=actor.lang,
            requested_by=actor.id,
            chat=chat_data(chat) if chat is not None else None,
            serials=actor.phones,
            only=only,
            key=key,
        )
        return await self._planning().start(new)

    async def _session_after(self, actor: Actor, run_id: str) -> str:
        """Return the person's name for the conversation of one of their own plans; "" for any other run."""
        key, own = await self._planning().session_of(run_id) or "", _key(actor, "")
        return key.removeprefix(own) if key.startswith(own) else ""

    def follow(self, run_id: str) -> AsyncIterator[PlanEvent]:
        """Return the events of a plan of this process. Checks no rights: ``start`` has checked them."""
        return self._planning().follow(run_id)

    async def leave(self, run_id: str) -> None:
        """Stop a plan if it is under way, because its follower has gone. Checks no rights: ``start`` checked them."""
        await self._planning().leave(run_id)

    async def stop(self, actor: Actor, session: str) -> bool:
        """Stop the plan of one's own conversation; False if none is under way. Raises NotFound if there is none."""
        await self._allow(actor, Role.OPERATOR, "plan stop", paced=False, session=session)
        key = await self._known(actor, session)
        return await self._planning().stop(key, by=actor.name)

    async def forget(self, actor: Actor, session: str) -> None:
        """Forget one's own conversation, and stop its plan. Raises NotFound if there is none."""
        await self._allow(actor, Role.OPERATOR, "plan forget", session=session)
        await self._planning().forget(await self._known(actor, session))

    async def _known(self, actor: Actor, session: str) -> str:
        """Return the key of this person's conversation. Raises NotFound if there is none, or it is another person's."""
        key = _key(actor, session)
        if not await self._planning().known(key):
            raise NotFound(f"There is no session {session}.", key="no_session", name=session)
        return key

    def _planning(self) -> PlanService:
        if self.context.planning is None:
            raise ConfigMissing(
                "This server makes no plans: it has no phones of its own.",
                advice="Ask a server at which phones are attached (PHONEDESK_DEVICE__HERE).",
                key="no_planning_here",
            )
        return self.context.planning


def _key(actor: Actor, session: str) -> str:
    return f"{actor.channel}:{actor.id}:{session}"
