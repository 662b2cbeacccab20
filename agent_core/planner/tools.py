"""The tools of a planner. One more is one function here and one line where the owner's tools are registered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agent_core.planner.base import CallResult, Executor
from agent_core.planner.words import Lang, texts
from agent_core.ports import KnowledgeBase

EXTRA = ("search_knowledge", "get_battery")  # what a planner may have besides the phones, by name
MOST_FOUND = 5  # records of the knowledge base that are shown

Call = Callable[[Executor, Mapping[str, str]], Awaitable[Any]]
"""Does the tool's work: plain JSON data, a text, or a ``CallResult``."""


@dataclass(frozen=True, slots=True)
class Tool:
    """``parameters``: their names, all of them texts that must be given. What they mean, and what the tool does, the
    planner is told in its language: ``tools.<name>`` of ``prompts/<lang>.toml``.
    """

    name: str
    call: Call
    parameters: tuple[str, ...] = ()

    def description(self, lang: Lang) -> str:
        return texts(lang).tools[self.name]["what"]

    def schema(self, lang: Lang) -> dict[str, Any]:
        """The parameters as JSON Schema."""
        said = texts(lang).tools[self.name]
        return {
            "type": "object",
            "properties": {name: {"type": "string", "description": said[name]} for name in self.parameters},
            "required": list(self.parameters),
            "additionalProperties": False,
        }


def phone_tools() -> tuple[Tool, ...]:
    """What every planner has."""
    return Tool("list_devices", _list_devices), Tool("chat", _chat, ("device_id", "message"))


def battery_tool() -> Tool:
    return Tool("get_battery", _battery, ("device_id",))


def knowledge_tool(knowledge: Callable[[], KnowledgeBase]) -> Tool:
    """Search in the knowledge base. ``knowledge`` gives it at each call: it may be replaced."""

    async def search(_: Executor, given: Mapping[str, str]) -> list[dict[str, Any]]:
        found = await knowledge().retrieve(given["query"])
        return [{"question": one.question, "text": one.text, "score": one.score} for one in found[:MOST_FOUND]]

    return Tool("search_knowledge", search, ("query",))


async def _list_devices(executor: Executor, _: Mapping[str, str]) -> list[dict[str, str]]:
    return [phone.data() for phone in await executor.list_devices()]


async def _chat(executor: Executor, given: Mapping[str, str]) -> CallResult:
    return await executor.chat(given["device_id"], given["message"])


async def _battery(executor: Executor, given: Mapping[str, str]) -> dict[str, int | None]:
    return {"percent": await executor.battery(given["device_id"])}
