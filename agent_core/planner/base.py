"""What a planner needs from outside, by shape, and what it tells while it works."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from agent_core.devices.base import Battery
from agent_core.planner.words import Lang


@dataclass(frozen=True, slots=True)
class PlannerTask:
    """What is to be planned. ``only``: the id of the one phone that it is about; "" for all that the executor has.

    ``date`` as the prompt shows it.
    """

    message: str
    lang: Lang = "zh"
    date: str = ""
    only: str = ""


@dataclass(frozen=True, slots=True)
class PhoneInfo:
    """A phone as the planner sees it. ``id`` is what ``Executor.chat`` takes.

    ``status``: free, busy, offline or unauthorized. ``connection_type``: usb or network.
    """

    id: str
    model: str
    status: str
    connection_type: str

    def data(self) -> dict[str, str]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class CallResult:
    """What an executor call came to. ``steps``: how many were done on the phone; 0 where none was begun."""

    result: str
    steps: int = 0
    success: bool = False

    def data(self) -> dict[str, Any]:
        return asdict(self)


class Executor(Protocol):
    """Does one small thing on a phone. Several calls may be under way at once, on different phones."""

    async def list_devices(self) -> Sequence[PhoneInfo]: ...

    async def chat(self, device_id: str, message: str) -> CallResult:
        """Have the phone do, or read, what ``message`` says. What goes wrong is a result, not an error.

        Cancelled, it frees the phone before it ends.
        """

    async def battery(self, device_id: str) -> Battery:
        """Read the phone's charge; nothing is known of a phone that there is not."""


class Memory(Protocol):
    """The conversation of one session: plain JSON objects in their order."""

    async def items(self, limit: int | None = None) -> list[dict[str, Any]]:
        """All of them, or the newest ``limit``; the oldest first."""

    async def add(self, items: Sequence[Mapping[str, Any]]) -> None: ...

    async def pop(self) -> dict[str, Any] | None:
        """Take the newest one away and give it; None where there is none."""

    async def clear(self) -> None: ...


# Events: ``data()`` is what goes over the wire. ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """``call`` names the call, and its result: results of calls on different phones come as they are ready."""

    call: str
    tool_name: str
    tool_args: Mapping[str, Any]

    def data(self) -> dict[str, Any]:
        return {"type": "tool_call", "id": self.call, "tool_name": self.tool_name, "tool_args": dict(self.tool_args)}


@dataclass(frozen=True, slots=True)
class ToolReturned:
    """``result``: plain JSON data, or a text. ``ok``: whether it did what it was asked for."""

    call: str
    tool_name: str
    result: Any
    ok: bool = True

    def data(self) -> dict[str, Any]:
        return {"type": "tool_result", "id": self.call, "tool_name": self.tool_name, "result": self.result}


@dataclass(frozen=True, slots=True)
class PlanMessage:
    """Something that the planner says."""

    content: str

    def data(self) -> dict[str, Any]:
        return {"type": "message", "content": self.content}


@dataclass(frozen=True, slots=True)
class PlanDone:
    """The end: what the planner says last. ``success`` False: it came to the end of its turns, or was stopped."""

    content: str
    success: bool

    def data(self) -> dict[str, Any]:
        return {"type": "done", "content": self.content, "success": self.success}


@dataclass(frozen=True, slots=True)
class PlanFailed:
    """The end: the planner could not go on."""

    message: str

    def data(self) -> dict[str, Any]:
        return {"type": "error", "message": self.message}


PlanEvent = ToolCalled | ToolReturned | PlanMessage | PlanDone | PlanFailed
