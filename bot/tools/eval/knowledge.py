"""A knowledge base that first fails as a file says, and then works."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from agent_core.errors import (
    KnowledgeAuth,
    KnowledgeError,
    KnowledgeNotFound,
    KnowledgeNotReady,
    KnowledgeQuota,
    KnowledgeUnreachable,
)
from agent_core.ports import KnowledgeBase, Record
from bot.tools.eval.scenario import KnowledgeFaultsPart
from knowledge.embedded import Entry

ERRORS: dict[str, type[KnowledgeError]] = {
    "unreachable": KnowledgeUnreachable,
    "quota": KnowledgeQuota,
    "auth": KnowledgeAuth,
    "not_found": KnowledgeNotFound,
    "not_ready": KnowledgeNotReady,
}


class FaultyKnowledge:
    """A knowledge base, ``base``, with scripted faults in front of it."""

    def __init__(self, base: KnowledgeBase, faults: KnowledgeFaultsPart) -> None:
        self._base = base
        self._faults = faults
        self._failed = 0

    @property
    def name(self) -> str:
        return self._base.name

    async def retrieve(self, query: str) -> Sequence[Record]:
        faults = self._faults
        if faults.slow_seconds:
            await asyncio.sleep(faults.slow_seconds)
        if faults.fail and (not faults.times or self._failed < faults.times):
            self._failed += 1
            raise ERRORS[faults.fail](f"The scenario's knowledge base is {faults.fail}.")
        return await self._base.retrieve(query)

    async def close(self) -> None:
        await self._base.close()


def entry(number: int, question: str, answer: str, aliases: Sequence[str]) -> Entry:
    """Return the entry of a file; the same number gives the same id."""
    return Entry(id=f"k{number}", question=question, answer=answer, aliases=tuple(aliases))
