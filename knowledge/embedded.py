"""The knowledge base that needs no service: questions and answers in a SQLite file, found by characters and pairs.

A lexical score does not tell right from wrong, so it never makes a record sure. Sure is only what was asked in the very
words of one entry's question or of one of its aliases, politeness left aside.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Sequence
from importlib import resources
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from agent_core.errors import InputRejected, KnowledgeUnreachable
from agent_core.ports import Record
from knowledge.tokens import stripped, tokens
from storage.knowledge_index import EntryRow, EntryWords, KnowledgeIndex

_MOST_CANDIDATES = 5
_LONGEST_QUERY = 500  # characters that are looked at
T = TypeVar("T")


class Entry(BaseModel):
    """A question and its answer, word for word. ``aliases`` are other ways to ask it; ``live``: approved."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(default_factory=lambda: uuid4().hex[:12], min_length=1, max_length=64)
    question: str = Field(min_length=1, max_length=500)
    answer: str = Field(min_length=1, max_length=4000)
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    live: bool = True

    @field_validator("id", "question", "answer")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must not be blank")
        return value.strip()


class EmbeddedKnowledge:
    """Entries in the file at ``path``, made where it is missing. KnowledgeUnreachable where it cannot be used."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._index = KnowledgeIndex(path)

    @property
    def name(self) -> str:
        return "embedded"

    async def close(self) -> None:
        await self._index.close()

    async def retrieve(self, query: str) -> Sequence[Record]:
        """Up to five records, best first. ``score`` is the share of the query's words that the entry's questions hold,
        for showing; ``sure`` is set by the exact words alone, and on one record at most.
        """
        query = query[:_LONGEST_QUERY]
        form = stripped(query)
        exact = await _safely(self._index.with_form(form)) if form else ()
        found = await _safely(self._index.search(tokens(form or query), _MOST_CANDIDATES))
        sure = len(exact) == 1
        exact_ids = {row.id for row in exact}
        rows = [*exact, *(row for row in found if row.id not in exact_ids)][:_MOST_CANDIDATES]
        return tuple(
            Record(
                id=row.id,
                text=row.answer,
                question=row.question,
                score=1.0 if row.id in exact_ids else _score(form or query, row),
                sure=sure and row.id in exact_ids,
                source=f"embedded:{row.id}",
            )
            for row in rows
        )

    async def add(self, entry: Entry) -> Entry:
        """Add the entry, or replace the one with its id. Returns it."""
        await _safely(self._index.put(*_indexed(entry)))
        return entry

    async def add_all(self, entries: Sequence[Entry]) -> None:
        """All of them or none."""
        await _safely(self._index.put_all([_indexed(entry) for entry in entries]))

    async def approve(self, entry_id: str) -> Entry | None:
        """Make a waiting entry live; None where there is none with this id."""
        entry = await self.get(entry_id)
        return await self.add(entry.model_copy(update={"live": True})) if entry else None

    async def get(self, entry_id: str) -> Entry | None:
        row = await _safely(self._index.get(entry_id))
        return _entry(row) if row else None

    async def delete(self, entry_id: str) -> bool:
        """Whether there was one."""
        return await _safely(self._index.delete(entry_id))

    async def list(self, *, live: bool | None = None) -> Sequence[Entry]:
        """Every entry, or only the live or the waiting ones, oldest first."""
        return tuple(_entry(row) for row in await _safely(self._index.entries(live=live)))

    async def count(self) -> int:
        return await _safely(self._index.count())

    async def seed_sample_if_empty(self) -> int:
        """Fill an empty base with the sample shop's entries. How many were added: 0 where it was not empty."""
        if await self.count():
            return 0
        entries = sample_entries()
        await self.add_all(entries)
        return len(entries)


def sample_entries() -> Sequence[Entry]:
    """The entries of the sample: a shop for phone accessories, in Chinese."""
    text = (resources.files("knowledge") / "sample" / "phone_accessories.jsonl").read_text(encoding="utf-8")
    return read_entries(text)


def read_entries(text: str) -> Sequence[Entry]:
    """Entries from JSON Lines, blank lines left out. InputRejected names the line that is wrong."""
    entries: list[Entry] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            entries.append(Entry.model_validate_json(line))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise InputRejected(f"Line {number} is no entry: {where} {first['msg']}.") from None
    return tuple(entries)


def _indexed(entry: Entry) -> tuple[EntryRow, EntryWords]:
    row = EntryRow(entry.id, entry.question, entry.answer, entry.aliases, entry.tags, entry.live)
    aliases = [word for text in (*entry.aliases, *entry.tags) for word in tokens(text)]
    forms = {stripped(text) for text in (entry.question, *entry.aliases)} - {""}
    return row, EntryWords(tokens(entry.question), aliases, tokens(entry.answer), sorted(forms))


def _entry(row: EntryRow) -> Entry:
    return Entry(id=row.id, question=row.question, answer=row.answer, aliases=row.aliases, tags=row.tags, live=row.live)


def _score(query: str, row: EntryRow) -> float:
    """0–0.99: the most of the query's words that one wording of the entry holds."""
    asked = set(tokens(query))
    if not asked:
        return 0.0
    best = 0.0
    for text in (row.question, *row.aliases):
        words = set(tokens(text))
        best = max(best, 2 * len(asked & words) / (len(asked) + len(words)))
    return min(0.99, round(best, 2))


async def _safely(call: Awaitable[T]) -> T:
    try:
        return await call
    except (sqlite3.Error, OSError) as error:
        raise KnowledgeUnreachable(
            f"The knowledge file cannot be used: {error}.",
            advice="Check that the folder of PHONEDESK_DATA_DIR exists and can be written.",
        ) from error
