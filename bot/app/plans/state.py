"""A plan of this process: its gate, how far it is, its conversation, its events in the log, and the note for a
conversation whose plan was cut off.
"""

from __future__ import annotations

import asyncio
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent_core.apps.profile import profile
from agent_core.planner import PlanDone, PlanEvent, PlanFailed, PlanMessage, ToolCalled, ToolReturned
from agent_core.planner.words import texts
from agent_core.session import GateState, Session
from agent_core.settings import gate_for
from agent_core.texts import kept_language
from bot.desk.actors import Conflict
from bot.desk.run_parts import one_line
from bot.desk.views import NewPlan
from storage.plans import ConversationRow, Conversations
from storage.runs import RunRow

if TYPE_CHECKING:
    from bot.app.plans.executor import PlanExecutor

MOST_KEPT = 1000  # characters of a tool's result in the event log; the conversation has all of it
MOST_PARTS = 20  # of a plan that was cut off: the newest
MOST_SAID = 300  # characters of a part's task, and of its result


@dataclass
class PlanGate:
    """The knowledge gate of a plan whose request is an answer to a customer.

    task: the person's words.
    phones: the gate's state on each phone, as the last call there left it.
    done: the phones on which an answer was given, or none was due.
    """

    task: str
    phones: dict[str, GateState] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)

    @property
    def over(self) -> bool:
        """True if nothing is due any more on any phone that was used."""
        return bool(self.phones) and self.done >= self.phones.keys()

    def data(self) -> dict[str, Any]:
        gates = {serial: gate.model_dump() for serial, gate in self.phones.items()}
        return {"task": self.task, "phones": gates, "done": sorted(self.done)}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> PlanGate:
        """Return the gate for another message: earlier knowledge of the customer's questions may have changed since."""
        anew = {"knowledge_done": False, "pending_question": ""}
        gates = {str(serial): GateState.model_validate({**gate, **anew}) for serial, gate in data["phones"].items()}
        return cls(str(data["task"]), gates, set(map(str, data.get("done", ()))))

    @property
    def app(self) -> str:
        """The name of the app that customers are answered in, as a task writes it."""
        key = next((gate.app for gate in self.phones.values()), gate_for(self.task, None).app)
        return profile(key).name

    def leave(self, serial: str, session: Session, *, succeeded: bool) -> None:
        """Store the gate's state after a call. The call can only succeed if the gate lets it finish."""
        delivered = [*session.gate.delivered, *(reply.text for reply in session.replies)]
        self.phones[serial] = session.gate.model_copy(update={"delivered": list(dict.fromkeys(delivered))})
        (self.done.add if succeeded else self.done.discard)(serial)


def reply_state(message: str, before: Mapping[str, Any] | None) -> PlanGate | None:
    """Return the gate if this plan answers a customer, else None. The person's own message decides.

    before: the gate of the conversation so far. If an answer is still due in it, the plan continues under that gate. If
    customers were answered in it, the message need not name the app again.
    """
    if gate_for(message, None).enabled:
        return PlanGate(message)
    if before is None:
        return None
    state = PlanGate.of(before)
    if not state.over:
        return state
    again = f"{state.app} {message}"
    return PlanGate(again) if gate_for(again, None).enabled else None


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


# Its events in the log, and its note ----------------------------------------------------------------------------------


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
