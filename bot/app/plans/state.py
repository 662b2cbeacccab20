"""A plan of this process: how far it is, and its conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_core.planner import PlanDone, PlanEvent, PlanFailed
from bot.app.plans.executor import PlanExecutor
from bot.desk.actors import Conflict
from bot.desk.views import NewPlan
from storage.plans import ConversationRow, Conversations


class SessionBusy(Conflict):
    """A plan of this conversation is under way."""

    kind = "desk.session_busy"


def session_busy() -> SessionBusy:
    return SessionBusy(
        "A plan of this session is under way.", advice="Wait until it is done, or abort it.", key="plan_busy"
    )


class StoredMemory:
    """The memory of one conversation; implements ``agent_core.planner.Memory``."""

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
class Beginning:
    """A plan that is about to begin.

    why: the reason to end it at once, because that was asked for meanwhile. by: the person who asked.
    """

    why: str = ""
    by: str = ""
    over: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(eq=False)
class LivePlan:
    """A plan of this process. ``before``: its conversation as it was; ``why``: the reason for an early end;
    ``closing``: its outcome is being stored and reported.
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
        if self.over:
            return  # a part that was left to itself may still have something to say
        self.events.append(event)
        self.over = isinstance(event, PlanDone | PlanFailed)
        async with self.changed:
            self.changed.notify_all()
