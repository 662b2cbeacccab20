"""The client program: the messages to it while a call runs, and the ways to ask it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any

import structlog

from agent_core.session import Question

log = structlog.get_logger(__name__)

FLUSH_SECONDS = 1.0  # how long to wait for the last progress messages at the end of a call
ANSWER = "answer"  # the field of the form that a client fills in

Report = Callable[[float, float, str], Awaitable[None]]
Elicit = Callable[[str, dict[str, Any]], Awaitable[str]]  # the words that came back; "" if nobody wanted to answer


class Asks(Enum):
    """The ways to ask a client: not at all, while the call waits, or by a result that makes it call again."""

    NOT = "not"
    NOW = "now"
    AGAIN = "again"


@dataclass(frozen=True, slots=True)
class Client:
    """A client: ``report(progress, total, message)``, and ``elicit(message, schema)`` if it can be asked now."""

    report: Report
    asks: Asks = Asks.NOT
    elicit: Elicit | None = None


def form_of(question: Question) -> dict[str, Any]:
    """Return the form for a question as the JSON schema that clients know: one field, a text or a choice."""
    field: dict[str, Any] = {"type": "string", "title": "Answer"}
    labels = [choice.label or choice.value for choice in question.choices]
    if question.choices and not question.free_text:
        field |= {"enum": [choice.value for choice in question.choices], "enumNames": labels}
    elif labels:
        field |= {"description": " / ".join(labels), "minLength": 1}
    else:
        field |= {"minLength": 1}
    return {"type": "object", "properties": {ANSWER: field}, "required": [ANSWER]}


def words_of(content: dict[str, Any] | None) -> str:
    value = (content or {}).get(ANSWER)
    return value.strip() if isinstance(value, str) else ""


class News:
    """The messages to a client about each step, in order. A client that does not listen holds up no phone."""

    def __init__(self, report: Report, total: int) -> None:
        self._report = report
        self._total = total
        self._waiting: asyncio.Queue[tuple[int, str] | None] = asyncio.Queue()
        self._task = asyncio.create_task(self._tell(), name="mcp-news")

    def tell(self, done: int, message: str) -> None:
        self._waiting.put_nowait((done, message))

    async def close(self) -> None:
        self._waiting.put_nowait(None)
        with suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_SECONDS):
                await asyncio.shield(self._task)
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _tell(self) -> None:
        while (news := await self._waiting.get()) is not None:
            try:
                await self._report(news[0], self._total, news[1])
            except Exception as error:  # noqa: BLE001 - the client is gone, or its stream is: the run is not the news
                log.info("mcp_client_not_told", error=repr(error))
                return
