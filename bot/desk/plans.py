"""Plans: tasks that a planner has done in several parts, each of them a run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import nullcontext
from uuid import uuid4

from agent_core.errors import ConfigMissing
from agent_core.planner import PlanEvent
from agent_core.tasks import check_task
from bot.desk.actors import Actor, ChatRef, NotFound, Role
from bot.desk.house import DeskPart, chat_data, no_phone
from bot.desk.plans_views import NewPlan, Planning
from bot.desk.sweeps import SweepsDesk
from bot.desk.views import RunView
from storage import requests


class PlansPart(DeskPart):
    """``bot.desk.plans_views.PlansDesk`` over the planner of this process."""

    @property
    def ready(self) -> bool:
        return self.house.planning is not None and self.house.planning.ready

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
        task = check_task(task)
        if key and (begun := await requests.find(self._db, key)) is not None:  # asked again: it is that plan
            return await self._view(begun)
        session = session or (await self._session_after(actor, after) if after else "")
        name = session or uuid4().hex
        planning = self.house.planning
        with planning.beginning(_key(actor, name)) if planning is not None else nullcontext():
            run_id = await self._start(actor, task, chat, serial, name, key)
        return await self._view(run_id)

    async def _view(self, run_id: str) -> RunView:
        view = await SweepsDesk(self.house).run(run_id)
        if view is None:
            raise NotFound(f"The plan {run_id} is gone.", key="no_run", name=run_id)
        return view

    async def _start(self, actor: Actor, task: str, chat: ChatRef | None, serial: str, session: str, key: str) -> str:
        book = await self._book(await self.house.entries() if serial else [])
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
        """The person's name for the conversation of one of their own plans; "" for any other run."""
        key, own = await self._planning().session_of(run_id) or "", _key(actor, "")
        return key.removeprefix(own) if key.startswith(own) else ""

    def follow(self, run_id: str) -> AsyncIterator[PlanEvent]:
        return self._planning().follow(run_id)

    async def leave(self, run_id: str) -> None:
        await self._planning().leave(run_id)

    async def stop(self, actor: Actor, session: str) -> bool:
        await self._allow(actor, Role.OPERATOR, "plan stop", paced=False, session=session)
        key = await self._known(actor, session)
        return await self._planning().stop(key, by=actor.name)

    async def forget(self, actor: Actor, session: str) -> None:
        await self._allow(actor, Role.OPERATOR, "plan forget", session=session)
        await self._planning().forget(await self._known(actor, session))

    async def _known(self, actor: Actor, session: str) -> str:
        """The key of this person's conversation. NotFound: nobody is told of another one's."""
        key = _key(actor, session)
        if not await self._planning().known(key):
            raise NotFound(f"There is no session {session}.", key="no_session", name=session)
        return key

    def _planning(self) -> Planning:
        if self.house.planning is None:
            raise ConfigMissing(
                "This server makes no plans: it has no phones of its own.",
                advice="Ask a server at which phones are attached (PHONEDESK_DEVICE__HERE).",
                key="no_planning_here",
            )
        return self.house.planning


def _key(actor: Actor, session: str) -> str:
    return f"{actor.channel}:{actor.id}:{session}"
