"""Asks several providers in order until one is sure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import structlog

from agent_core.errors import KnowledgeError
from agent_core.ports import KnowledgeBase, Record
from agent_core.reply.choosing import sure_record
from agent_core.reply.sureness.fit import asks_for
from knowledge.embedded import EmbeddedKnowledge

log = structlog.get_logger(__name__)


class ChainKnowledge:
    """A chain of providers. ``providers`` are asked in order, and closed with the chain."""

    def __init__(self, providers: Sequence[KnowledgeBase]) -> None:
        self.providers = tuple(providers)

    @property
    def name(self) -> str:
        return ",".join(provider.name for provider in self.providers)

    async def close(self) -> None:
        errors: list[Exception] = []
        for provider in self.providers:
            try:
                await provider.close()
            except Exception as error:  # noqa: BLE001 - the others are to be closed, too; raised below
                errors.append(error)
        if errors:
            raise errors[0]

    async def retrieve(self, query: str) -> Sequence[Record]:
        """Return the records of the first provider that is sure or has the very question; else all, none of them sure.

        They are sorted by score if each has one, else in the order of the providers; each text occurs once. A failing
        provider is ignored if another is sure; otherwise the first failure is raised after all others were asked.
        """
        failure: KnowledgeError | None = None
        found: list[Record] = []
        for provider in self.providers:
            try:
                records = await provider.retrieve(query)
            except KnowledgeError as error:
                log.warning("knowledge_provider_failed", provider=provider.name, kind=error.kind, error=error.message)
                failure = failure or error
                continue
            if sure_record(records) is not None or any(asks_for(query, record) for record in records):
                return records
            found.extend(records)
        if failure is not None:
            raise failure
        return _together(found)


def _together(found: Sequence[Record]) -> Sequence[Record]:
    """Merge the records. No provider was sure of its own, so none is sure, whatever comes first now."""
    scores = [record.score for record in found if record.score is not None]
    if len(scores) == len(found):
        found = sorted(found, key=lambda record: -(record.score or 0.0))
    by_text: dict[str, Record] = {}
    for record in found:
        by_text.setdefault(record.text.strip(), replace(record, sure=False))
    return tuple(by_text.values())


def embedded_in(base: KnowledgeBase) -> EmbeddedKnowledge | None:
    """Return the embedded store, alone or in a chain; None if there is none."""
    parts = base.providers if isinstance(base, ChainKnowledge) else (base,)
    return next((part for part in parts if isinstance(part, EmbeddedKnowledge)), None)
