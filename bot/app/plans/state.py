"""A plan of this process: how far it is, its conversation, its events in the log, and the note for a conversation whose
plan was cut off.
"""

from __future__ import annotations

import asyncio
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_core.planner import PlanDone, PlanEvent, PlanFailed, PlanMessage, ToolCalled, ToolReturned
from agent_core.planner.words import texts
from agent_core.texts import kept_language
from bot.app.plans.executor import PlanExecutor
from bot.desk.actors import Conflict
from bot.desk.run_parts import one_line
from bot.desk.views import NewPlan
from storage.plans import ConversationRow, Conversations
from storage.runs import RunRow


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


MOST_KEPT = 1000  # characters of a tool's result in the event log; the conversation has all of it
MOST_PARTS = 20  # of a plan that was cut off: the newest
MOST_SAID = 300  # characters of a part's task, and of its result


def written(event: PlanEvent) -> tuple[str, dict[str, Any]]:
    """Return the event's kind and data in the log."""
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


def note_of(plan: RunRow, parts: Sequence[RunRow]) -> dict[str, Any]:
    """Return the note on a plan that was cut off, as an item of its conversation, in the plan's language.

    The planner's library stores a turn only once it is over, so the work of a plan that was cut off is only here. It
    has the planner's role: answers of parts come from screens, and must not count as a person's order.
    """
    words = texts(kept_language(plan.options.get("lang")))
    lines = [
        string.Template(words.cut_off_part).substitute(
            task=one_line(part.task, MOST_SAID),
            state=words.states[part.status],
            message=one_line(part.message, MOST_SAID),
        )
        for part in parts[-MOST_PARTS:]
    ]
    done = "\n".join(lines) or words.cut_off_nothing
    return {"role": "assistant", "content": string.Template(words.cut_off).substitute(done=done).strip()}
