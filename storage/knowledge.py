"""The shop's knowledge entries: rows that every machine at the database shares, and this process's index of them.

The rows are the truth. Every write increments a revision in one row, which it locks, so one writes at a time. A reader
whose index has another revision rebuilds it: entries that another process has written are found at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.engine import Database, utc_now
from storage.tables import knowledge_entries, knowledge_revision

if TYPE_CHECKING:
    from storage.knowledge_index import WordIndex

_ROW = 1  # the only row of knowledge_revision
_AT_ONCE = 5_000  # values in one statement; SQLite takes 32,766
_ENTRIES = sa.select(*(one for one in knowledge_entries.c if one.name not in ("number", "words", "revision")))
_NUMBER = knowledge_entries.c.number
_NUMBERS = sa.select(_NUMBER).order_by(_NUMBER)
_INDEXED = sa.select(_NUMBER, knowledge_entries.c.id, knowledge_entries.c.live, knowledge_entries.c.words)


@dataclass(frozen=True, slots=True)
class EntryRow:
    """One entry. Only a live entry answers; the others wait for approval. Times are UTC."""

    id: str
    question: str
    answer: str
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    live: bool = True
    origin: str = ""
    alias_of: str = ""
    created_at: datetime = field(default_factory=utc_now)
    updated_at: datetime = field(default_factory=utc_now)


class EntryReader:
    """The entries at one moment. ``revision``: how many writes there were. ``index``: finds them by their words."""

    def __init__(self, connection: AsyncConnection, revision: int, index: WordIndex) -> None:
        self._connection = connection
        self.revision = revision
        self.index = index

    async def get(self, ids: Sequence[str], *, live: bool | None = None) -> Sequence[EntryRow]:
        """Return those of these entries that exist, in this order. ``live``: None for live and waiting ones."""
        found: dict[str, EntryRow] = {}
        for start in range(0, len(ids), _AT_ONCE):
            these = _ENTRIES.where(knowledge_entries.c.id.in_(ids[start : start + _AT_ONCE]))
            found |= {row.id: row for row in await self._rows(these, live)}
        return tuple(found[entry_id] for entry_id in ids if entry_id in found)

    async def all(self, *, live: bool | None = None) -> Sequence[EntryRow]:
        """Return the entries in the order in which they were added."""
        return await self._rows(_ENTRIES.order_by(_NUMBER), live)

    async def newest(self, limit: int, *, skip: int = 0, live: bool | None = None) -> Sequence[EntryRow]:
        """Return entries, the latest change first, without the first ``skip``."""
        newest = _ENTRIES.order_by(knowledge_entries.c.updated_at.desc(), _NUMBER.desc())
        return await self._rows(newest.limit(limit).offset(skip), live)

    async def search(self, words: Iterable[str], limit: int, *, live: bool | None = True) -> Sequence[EntryRow]:
        """Return the entries that share words with these, best first."""
        return await self.get(self.index.search(words, limit, live=live))

    async def with_forms(self, forms: Iterable[str], *, live: bool | None = None) -> Sequence[EntryRow]:
        """Return the entries that one of these exact forms may mean, and rarely another."""
        return await self.get(self.index.with_forms(forms), live=live)

    async def _rows(self, statement: sa.Select[Any], live: bool | None) -> Sequence[EntryRow]:
        if live is not None:
            statement = statement.where(knowledge_entries.c.live == live)
        rows = (await self._connection.execute(statement)).all()
        return await asyncio.to_thread(lambda: tuple(map(_entry, rows)))


class EntryWriter(EntryReader):
    """A write transaction. Its ``index`` stays as it was before the first change."""

    def __init__(self, db: Database, connection: AsyncConnection, revision: int, index: WordIndex) -> None:
        super().__init__(connection, revision, index)
        self._insert = db.insert(knowledge_entries)

    async def put(self, entries: Sequence[dict[str, Any]]) -> None:
        """Add entries, or change those with their ids, which keep their place and ``created_at``.

        entries: the fields of ``EntryRow``, and ``words``: see ``storage.knowledge_index.pack``.
        """
        if not entries:
            return
        kept = ("number", "id", "created_at")
        changed = {name: column for name, column in self._insert.excluded.items() if name not in kept}
        rows = [{**entry, "revision": self.revision + 1} for entry in entries]
        await self._connection.execute(self._insert.on_conflict_do_update(index_elements=["id"], set_=changed), rows)
        await self._changed()

    async def delete(self, entry_id: str) -> bool:
        """Delete an entry. Return whether it existed."""
        done = await self._connection.execute(sa.delete(knowledge_entries).where(knowledge_entries.c.id == entry_id))
        await self._changed()
        return bool(done.rowcount)

    async def _changed(self) -> None:
        await self._connection.execute(sa.update(knowledge_revision).values(revision=self.revision + 1))


class KnowledgeStore:
    """The entries of a database. Errors are those of SQLAlchemy, and OSError."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._revision = 0
        self._index: WordIndex | None = None
        self._building = asyncio.Lock()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[EntryReader]:
        """Give the entries with everything that any process has written until now."""
        async with self._db.read() as connection:
            yield EntryReader(connection, *await self._current(connection))

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[EntryWriter]:
        """Open a write transaction: everything inside is stored, or nothing if an exception is raised.

        Rows read in it stay unchanged until it ends.
        """
        async with self._db.write(durable=True) as connection:
            first = self._db.insert(knowledge_revision).values(id=_ROW, revision=0)
            await connection.execute(first.on_conflict_do_nothing())
            await connection.execute(sa.select(knowledge_revision.c.id).with_for_update())
            yield EntryWriter(self._db, connection, *await self._current(connection))

    async def _current(self, connection: AsyncConnection) -> tuple[int, WordIndex]:
        """Return the revision of the rows, and the index of it."""
        from storage.knowledge_index import EMPTY  # needs numpy, which takes long to load

        async with self._building:
            revision = (await connection.execute(sa.select(knowledge_revision.c.revision))).scalar_one_or_none() or 0
            if self._index is None or revision < self._revision:  # a database that was put back may be at less
                self._revision, self._index = 0, EMPTY
            if revision != self._revision:
                changed = _INDEXED.where(knowledge_entries.c.revision > self._revision).order_by(_NUMBER)
                rows = (await connection.execute(changed)).all()
                numbers = (await connection.execute(_NUMBERS)).scalars().all()
                self._index = await asyncio.to_thread(self._index.updated, numbers, rows)
                self._revision = revision
            return revision, self._index


def _entry(row: sa.Row[Any]) -> EntryRow:
    values = row._mapping
    return EntryRow(**{**values, "aliases": tuple(values["aliases"]), "tags": tuple(values["tags"])})
