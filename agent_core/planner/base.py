"""The protocols that a planner needs, and the events that it tells while it works."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from agent_core.devices.base import Battery
from agent_core.texts import Lang


@dataclass(frozen=True, slots=True)
class PlannerTask:
    """A task to plan.

    date: as the prompt shows it.
    only: the id of the phone that it is about; "" for all that the executor has.
    """

    message: str
    lang: Lang = "zh"
    date: str = ""
    only: str = ""


@dataclass(frozen=True, slots=True)
class PhoneInfo:
    """A phone as the planner sees it.

    id: the argument of ``Executor.chat``.
    status: free, busy, offline or unauthorized.
    connection_type: usb or network.
    """

    id: str
    model: str
    status: str
    connection_type: str

    def data(self) -> dict[str, str]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class CallResult:
    """The result of an executor call. ``steps``: the number done on the phone; 0 if none was begun."""

    result: str
    steps: int = 0
    success: bool = False

    def data(self) -> dict[str, Any]:
        return asdict(self)


class Executor(Protocol):
    """The phones of a planner: each call does one small job. Several calls may run at once, on different phones."""

    async def list_devices(self) -> Sequence[PhoneInfo]: ...

    async def chat(self, device_id: str, message: str) -> CallResult:
        """Have the phone do or read what ``message`` says. A failure is a result, not an error.

        If the call is cancelled, it frees the phone before it ends.
        """

    async def battery(self, device_id: str) -> Battery:
        """Read the phone's charge; the result for a phone that does not exist is empty."""


class Memory(Protocol):
    """The conversation of one session: plain JSON objects in order."""

    async def items(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Return all items, or the newest ``limit``; the oldest first."""

    async def add(self, items: Sequence[Mapping[str, Any]]) -> None: ...

    async def pop(self) -> dict[str, Any] | None:
        """Remove and return the newest item; None if there is none."""

    async def clear(self) -> None: ...


# Events: ``data()`` is what is sent. --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """The planner called a tool.

    call: names the call and its result, because results from different phones come as soon as they are ready.
    """

    call: str
    tool_name: str
    tool_args: Mapping[str, Any]

    def data(self) -> dict[str, Any]:
        return {"type": "tool_call", "id": self.call, "tool_name": self.tool_name, "tool_args": dict(self.tool_args)}


@dataclass(frozen=True, slots=True)
class ToolReturned:
    """The result of a call: plain JSON data, or a text. ``ok``: whether the tool did what it was asked to do."""

    call: str
    tool_name: str
    result: Any
    ok: bool = True

    def data(self) -> dict[str, Any]:
        return {"type": "tool_result", "id": self.call, "tool_name": self.tool_name, "result": self.result}


@dataclass(frozen=True, slots=True)
class PlanMessage:
    """Words of the planner while it works."""

    content: str

    def data(self) -> dict[str, Any]:
        return {"type": "message", "content": self.content}


@dataclass(frozen=True, slots=True)
class PlanDone:
    """The plan has ended with these last words. ``success`` is False if it used up its turns, or was stopped."""

    content: str
    success: bool

    def data(self) -> dict[str, Any]:
        return {"type": "done", "content": self.content, "success": self.success}


@dataclass(frozen=True, slots=True)
class PlanFailed:
    """The plan has ended because the planner could not go on."""

    message: str

    def data(self) -> dict[str, Any]:
        return {"type": "error", "message": self.message}


PlanEvent = ToolCalled | ToolReturned | PlanMessage | PlanDone | PlanFailed
