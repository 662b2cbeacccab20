"""The tools of a planner that come with the package. The owner's are in ``own_tools``."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from agent_core.planner.base import CallResult, Executor
from agent_core.planner.words import Lang, texts
from agent_core.ports import KnowledgeBase

EXTRA = ("search_knowledge", "get_battery")  # further tools that a planner may have, by name
ALWAYS = ("list_devices", "chat")  # tools of every planner
MOST_FOUND = 5  # records of the knowledge base that are shown

Call = Callable[[Executor, Mapping[str, Any]], Awaitable[Any]]
"""The function that does a tool's work; it returns plain JSON data, a text, or a ``CallResult``."""

Kind = Literal["string", "integer", "number", "boolean"]  # as JSON Schema names them


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a tool. A text that is needed must not be empty."""

    name: str
    kind: Kind = "string"
    needed: bool = True

    @property
    def said(self) -> str:
        """The name for a model that gave wrong arguments, with the kind unless it is a string."""
        return self.name if self.kind == "string" else f"{self.name} ({self.kind})"

    def value(self, given: object) -> str | float | bool | None:
        """Return the given value as this kind; None if it does not fit. A model may write 7 for "7", or "7" for 7."""
        if self.kind == "string":
            return str(given).strip() or None if isinstance(given, str | int | float) else None
        if self.kind == "boolean":
            return {"true": True, "false": False}.get(str(given).strip().lower())
        if isinstance(given, bool) or not isinstance(given, str | int | float):
            return None
        try:
            number = float(given)
        except ValueError:
            return None
        if not math.isfinite(number):
            return None
        return number if self.kind == "number" else int(number) if number == int(number) else None


@dataclass(frozen=True, slots=True)
class PlannerTool:
    """A tool of the planner.

    says: its description for the planner; "" if that, and what its parameters mean, is in ``tools.<name>`` of
    ``prompts/<lang>.toml``.
    """

    name: str
    call: Call
    parameters: tuple[Parameter, ...] = ()
    says: str = ""

    def description(self, lang: Lang) -> str:
        return self.says or texts(lang).tools[self.name]["what"]

    def schema(self, lang: Lang) -> dict[str, Any]:
        """Return the parameters as JSON Schema."""
        said = texts(lang).tools.get(self.name, {})
        return {
            "type": "object",
            "properties": {
                one.name: {"type": one.kind, **({"description": said[one.name]} if one.name in said else {})}
                for one in self.parameters
            },
            "required": [one.name for one in self.parameters if one.needed],
            "additionalProperties": False,
        }

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the given arguments, converted to their kinds; None if one is missing or does not fit."""
        found: dict[str, Any] = {}
        for one in self.parameters:
            value = one.value(given.get(one.name))
            if value is not None:
                found[one.name] = value
            elif one.needed or given.get(one.name) not in (None, ""):
                return None
        return found


def phone_tools() -> tuple[PlannerTool, ...]:
    """Return the tools that every planner has."""
    return PlannerTool("list_devices", _list_devices), PlannerTool(
        "chat", _chat, (Parameter("device_id"), Parameter("message"))
    )


def battery_tool() -> PlannerTool:
    return PlannerTool("get_battery", _battery, (Parameter("device_id"),))


def knowledge_tool(knowledge: Callable[[], KnowledgeBase]) -> PlannerTool:
    """Return the tool that searches the knowledge base.

    ``knowledge`` is called each time, because it may be replaced.
    """

    async def search(_: Executor, given: Mapping[str, Any]) -> list[dict[str, Any]]:
        found = await knowledge().retrieve(given["query"])
        return [{"question": one.question, "text": one.text, "score": one.score} for one in found[:MOST_FOUND]]

    return PlannerTool("search_knowledge", search, (Parameter("query"),))


async def _list_devices(executor: Executor, _: Mapping[str, Any]) -> list[dict[str, str]]:
    return [phone.data() for phone in await executor.list_devices()]


async def _chat(executor: Executor, given: Mapping[str, Any]) -> CallResult:
    return await executor.chat(given["device_id"], given["message"])


async def _battery(executor: Executor, given: Mapping[str, Any]) -> dict[str, int | bool | None]:
    return asdict(await executor.battery(given["device_id"]))
