"""The file of the embedded knowledge base: entries, their exact forms, and a full-text index. All its SQL is here.

Texts come in already cut into words; this file knows SQLite but no language. It is a separate file, so that it can be
copied, replaced and deleted apart from the runs. ``PRAGMA user_version`` is the version of its tables; a file with
those of another release is refused.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiosqlite

from storage.shielded import run_shielded

VERSION = 2
_TABLES = (
    """
CREATE TABLE entries (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    question TEXT NOT NULL,
    answer TEXT NOT NULL,
    aliases TEXT NOT NULL,
    tags TEXT NOT NULL,
    live INTEGER NOT NULL,
    origin TEXT NOT NULL,
    alias_of TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
)""",
    """
CREATE TABLE forms (
    number INTEGER NOT NULL REFERENCES entries (number) ON DELETE CASCADE,
    form TEXT NOT NULL,
    PRIMARY KEY (form, number)
) WITHOUT ROWID""",
    "CREATE INDEX forms_of_entry ON forms (number)",
    "CREATE VIRTUAL TABLE words USING fts5 (question, aliases, answer, tokenize = 'unicode61')",
)
_COLUMNS = "e.id, e.question, e.answer, e.aliases, e.tags, e.live, e.origin, e.alias_of, e.created_at, e.updated_at"
_GET = f"SELECT {_COLUMNS} FROM entries e WHERE id = ?"  # noqa: S608 - constants only, also below
_LIST = f"SELECT {_COLUMNS} FROM entries e WHERE ?1 IS NULL OR live = ?1 ORDER BY number"  # noqa: S608
_NEWEST = f"""
SELECT {_COLUMNS} FROM entries e WHERE ?1 IS NULL OR live = ?1 ORDER BY updated_at DESC, number DESC LIMIT ?2
"""  # noqa: S608
_WITH_FORM = f"""
SELECT {_COLUMNS} FROM forms f JOIN entries e USING (number)
WHERE f.form = ?1 AND (?2 IS NULL OR e.live = ?2) ORDER BY number
"""  # noqa: S608
_ID_BEGINS = f"""
SELECT {_COLUMNS} FROM entries e
WHERE substr(id, 1, length(?1)) = ?1 AND (?2 IS NULL OR live = ?2) ORDER BY id <> ?1, number LIMIT ?3
"""  # noqa: S608
_RELATED = f"""
SELECT {_COLUMNS} FROM entries e
WHERE id IN (SELECT value FROM json_each(?1))
    OR number IN (SELECT number FROM forms WHERE form IN (SELECT value FROM json_each(?2)))
ORDER BY number
"""  # noqa: S608
# The weights are for the columns of ``words``: question, aliases, answer.
_SEARCH = f"""
SELECT {_COLUMNS} FROM words JOIN entries e ON e.number = words.rowid
WHERE words MATCH ?1 AND (?2 IS NULL OR e.live = ?2) ORDER BY bm25(words, 2.0, 2.0, 0.4), e.number LIMIT ?3
"""  # noqa: S608
_PUT = """
INSERT INTO entries (number, id, question, answer, aliases, tags, live, origin, alias_of, created_at, updated_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET question = excluded.question, answer = excluded.answer, aliases = excluded.aliases,
    tags = excluded.tags, live = excluded.live, origin = excluded.origin, alias_of = excluded.alias_of,
    updated_at = excluded.updated_at
"""
_PUT_WORDS = """
INSERT INTO words (rowid, question, aliases, answer) SELECT number, ?1, ?2, ?3 FROM entries WHERE id = ?4
"""
_PUT_FORM = "INSERT OR IGNORE INTO forms (number, form) SELECT number, ?1 FROM entries WHERE id = ?2"
_NUMBER = "SELECT number FROM entries WHERE id = ?"
_NUMBERED = f"SELECT number, {_COLUMNS} FROM entries e"  # noqa: S608
_THESE = f"{_NUMBERED} WHERE id IN (SELECT value FROM json_each(?))"  # noqa: S608


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class EntryRow:
    """One entry. Only a live entry is found; the others wait for approval. Times are UTC."""

    id: str
    question: str
    answer: str
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    live: bool = True
    origin: str = ""
    alias_of: str = ""
    created_at: datetime = field(default_factory=_now)
    updated_at: datetime = field(default_factory=_now)


@dataclass(frozen=True, slots=True)
class EntryWords:
    """What an entry is found by: the words of its texts, and the exact forms that mean it."""

    question: Sequence[str]
    aliases: Sequence[str]
    answer: Sequence[str]
    forms: Sequence[str]


class Writer:
    """One write transaction: what is read in it stays true until it ends."""

    def __init__(self, database: aiosqlite.Connection) -> None:
        self._database = database

    async def get(self, entry_id: str) -> EntryRow | None:
        rows = list(await self._database.execute_fetchall(_GET, (entry_id,)))
        return _entry(rows[0]) if rows else None

    async def related(self, ids: Iterable[str], forms: Iterable[str]) -> Sequence[EntryRow]:
        return await _related(self._database, ids, forms)

    async def ids(self) -> frozenset[str]:
        return await _ids(self._database)

    async def placed(self, ids: Iterable[str]) -> Mapping[str, tuple[int, EntryRow]]:
        """Return those of these entries that exist, by id, each with its place."""
        found = await self._database.execute_fetchall(_THESE, (json.dumps(list(ids)),))
        return {entry.id: (number, entry) for number, entry in ((row[0], _entry(row[1:])) for row in found)}

    async def with_form(self, form: str) -> Sequence[EntryRow]:
        """Return every entry that this exact form means, live or waiting."""
        return tuple(_entry(row) for row in await self._database.execute_fetchall(_WITH_FORM, (form, None)))

    async def put(self, entry: EntryRow, words: EntryWords) -> None:
        """Add the entry, or change the one with its id, which keeps its place and ``created_at``."""
        await self.put_all([(entry, words)])

    async def put_all(
        self, entries: Sequence[tuple[EntryRow, EntryWords]], numbers: Sequence[int] | None = None
    ) -> None:
        """Put entries with a handful of statements, because each is a round trip to SQLite's thread.

        numbers: the places of new entries; None puts them after the existing ones.
        """
        places: Sequence[int | None] = numbers or [None] * len(entries)
        ids = [(entry.id,) for entry, _ in entries]
        cut = [(" ".join(w.question), " ".join(w.aliases), " ".join(w.answer), entry.id) for entry, w in entries]
        forms = [(form, entry.id) for entry, words in entries for form in words.forms if form]
        await self._database.executemany(f"DELETE FROM words WHERE rowid = ({_NUMBER})", ids)  # noqa: S608
        await self._database.executemany(f"DELETE FROM forms WHERE number = ({_NUMBER})", ids)  # noqa: S608
        await self._database.executemany(
            _PUT, [(place, *_values(entry)) for place, (entry, _) in zip(places, entries, strict=True)]
        )
        await self._database.executemany(_PUT_WORDS, cut)
        await self._database.executemany(_PUT_FORM, forms)

    async def delete(self, entry_id: str) -> bool:
        """Delete an entry. Return whether it existed."""
        rows = list(await self._database.execute_fetchall(_NUMBER, (entry_id,)))
        for (number,) in rows:
            await self._database.execute("DELETE FROM words WHERE rowid = ?", (number,))
            await self._database.execute("DELETE FROM entries WHERE number = ?", (number,))
        return bool(rows)


class KnowledgeIndex:
    """The knowledge base in one file, which is opened by the first call. Several processes may share it.

    Reads have a connection of their own, so that a customer does not wait for an import. Errors are sqlite3.Error.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: aiosqlite.Connection | None = None
        self._reader: aiosqlite.Connection | None = None
        self._writing = asyncio.Lock()  # a transaction belongs to one caller
        self._opening = asyncio.Lock()

    async def close(self) -> None:
        async with self._writing, self._opening:
            for connection in (self._reader, self._writer):
                if connection is not None:
                    await connection.close()
            self._reader = self._writer = None

    async def reading(self) -> KnowledgeIndex:
        """Return the index to read from: this one, because nothing is newer than its file."""
        return self

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Writer]:
        """Give a write transaction: everything inside is stored, or nothing if something is raised."""
        async with self._changing() as database:
            yield Writer(database)

    @asynccontextmanager
    async def _changing(self) -> AsyncIterator[aiosqlite.Connection]:
        async with self._writing:
            _, database = await self._open()
            async with _transaction(database):
                yield database

    async def put(self, entry: EntryRow, words: EntryWords) -> None:
        """Add the entry, or replace the one with its id."""
        await self.put_all([(entry, words)])

    async def put_all(self, entries: Sequence[tuple[EntryRow, EntryWords]]) -> None:
        """Put all of these entries, or none if one fails."""
        async with self.writing() as writer:
            await writer.put_all(entries)

    async def delete(self, entry_id: str) -> bool:
        """Delete an entry. Return whether it existed."""
        async with self.writing() as writer:
            return await writer.delete(entry_id)

    async def get(self, entry_id: str) -> EntryRow | None:
        rows = await self._rows(_GET, (entry_id,))
        return rows[0] if rows else None

    async def entries(self, *, live: bool | None = None) -> Sequence[EntryRow]:
        """Return the entries in the order in which they were added. ``live``: None for live and waiting ones."""
        database, _ = await self._open()
        return await _all_entries(database, live=live)

    async def newest(self, limit: int, *, live: bool | None = None) -> Sequence[EntryRow]:
        """Return entries, the latest change first."""
        return await self._rows(_NEWEST, (live, limit))

    async def count(self) -> int:
        database, _ = await self._open()
        rows = list(await database.execute_fetchall("SELECT count(*) FROM entries"))
        return int(rows[0][0])

    async def with_form(self, form: str, *, live: bool | None = True) -> Sequence[EntryRow]:
        """Return the entries that this exact form means."""
        return await self._rows(_WITH_FORM, (form, live))

    async def related(self, ids: Iterable[str], forms: Iterable[str]) -> Sequence[EntryRow]:
        """Return the entries, live or waiting, that have one of these ids or one of these exact forms."""
        database, _ = await self._open()
        return await _related(database, ids, forms)

    async def ids(self) -> frozenset[str]:
        """Return the ids of all entries."""
        database, _ = await self._open()
        return await _ids(database)

    async def with_id_like(self, start: str, limit: int, *, live: bool | None = None) -> Sequence[EntryRow]:
        """Return the entries whose ids start with ``start``, an exact match first."""
        return await self._rows(_ID_BEGINS, (start, live, limit))

    async def search(self, words: Sequence[str], limit: int, *, live: bool | None = True) -> Sequence[EntryRow]:
        """Return the entries that share words with these, best BM25 first.

        Words are quoted, so they can contain anything.
        """
        match = " OR ".join('"' + word.replace('"', '""') + '"' for word in dict.fromkeys(words) if word)
        return await self._rows(_SEARCH, (match, live, limit)) if match else ()

    async def _rows(self, statement: str, values: Sequence[object]) -> Sequence[EntryRow]:
        database, _ = await self._open()
        return tuple(_entry(row) for row in await database.execute_fetchall(statement, values))

    async def _open(self) -> tuple[aiosqlite.Connection, aiosqlite.Connection]:
        """Return the connections for reading and writing."""
        if self._reader is not None and self._writer is not None:
            return self._reader, self._writer
        return await run_shielded(self._opened())

    async def _opened(self) -> tuple[aiosqlite.Connection, aiosqlite.Connection]:
        async with self._opening:
            if self._writer is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._writer = await _connected(self._path, self._prepared)
            if self._reader is None:
                self._reader = await _connected(self._path, _only_reading)
            return self._reader, self._writer

    async def _prepared(self, database: aiosqlite.Connection) -> None:
        await database.execute("PRAGMA journal_mode = WAL")
        await database.execute("PRAGMA foreign_keys = ON")
        await _make_tables(database)


async def _connected(path: Path, prepare: Callable[[aiosqlite.Connection], Awaitable[object]]) -> aiosqlite.Connection:
    database = await aiosqlite.connect(path, timeout=30, isolation_level=None)
    try:
        await prepare(database)
    except BaseException:
        await database.close()
        raise
    return database


async def _only_reading(database: aiosqlite.Connection) -> None:
    await database.execute("PRAGMA query_only = ON")


@asynccontextmanager
async def _transaction(database: aiosqlite.Connection) -> AsyncIterator[None]:
    """Run a transaction whose statements cannot be cut off by a cancellation.

    A statement whose task is cancelled goes on in SQLite's thread. The transaction could stay open, and then every
    later write would fail.
    """
    if database.in_transaction:
        await run_shielded(database.rollback())
    try:
        await run_shielded(_done(database.execute("BEGIN IMMEDIATE")))
        yield
    except BaseException:
        await run_shielded(
            database.rollback()
        )  # it waits for the statement under way, because the thread does one thing at a time
        raise
    await run_shielded(database.commit())


async def _done(work: Awaitable[object]) -> None:
    await work


async def _make_tables(database: aiosqlite.Connection) -> None:
    """Make the tables of a new file, in one transaction. Raises sqlite3.DatabaseError for those of another release."""
    if await _version(database) == VERSION:
        return
    async with _transaction(database):
        found = await _version(database)  # another process may have been faster
        if found == VERSION:
            return
        if found or await database.execute_fetchall("SELECT 1 FROM sqlite_master WHERE name = 'entries'"):
            raise sqlite3.DatabaseError(f"it was made by another release (version {found}, this one reads {VERSION})")
        for statement in _TABLES:
            await database.execute(statement)
        await database.execute(f"PRAGMA user_version = {VERSION}")


async def _all_entries(database: aiosqlite.Connection, *, live: bool | None = None) -> Sequence[EntryRow]:
    """Return the entries, read in a thread: there may be tens of thousands, which would block the event loop."""
    rows = await database.execute_fetchall(_LIST, (live,))
    return await asyncio.to_thread(lambda: tuple(map(_entry, rows)))


async def _related(database: aiosqlite.Connection, ids: Iterable[str], forms: Iterable[str]) -> Sequence[EntryRow]:
    """Return related entries with one statement, however long the lists are; see ``KnowledgeIndex.related``."""
    rows = await database.execute_fetchall(_RELATED, (json.dumps(list(ids)), json.dumps(list(forms))))
    return await asyncio.to_thread(lambda: tuple(map(_entry, rows)))


async def _ids(database: aiosqlite.Connection) -> frozenset[str]:
    return frozenset(row[0] for row in await database.execute_fetchall("SELECT id FROM entries"))


async def _version(database: aiosqlite.Connection) -> int:
    rows = list(await database.execute_fetchall("PRAGMA user_version"))
    return int(rows[0][0])


def _values(entry: EntryRow) -> tuple[object, ...]:
    return (
        entry.id,
        entry.question,
        entry.answer,
        json.dumps(entry.aliases, ensure_ascii=False),
        json.dumps(entry.tags, ensure_ascii=False),
        int(entry.live),
        entry.origin,
        entry.alias_of,
        _stored(entry.created_at),
        _stored(entry.updated_at),
    )


def _stored(at: datetime) -> str:
    """Return the time as text of fixed width, so that texts sort like times."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def _entry(row: Iterable[Any]) -> EntryRow:
    entry_id, question, answer, aliases, tags, live, origin, alias_of, created_at, updated_at = row
    return EntryRow(
        entry_id,
        question,
        answer,
        tuple(json.loads(aliases)),
        tuple(json.loads(tags)),
        bool(live),
        origin,
        alias_of,
        datetime.fromisoformat(created_at),
        datetime.fromisoformat(updated_at),
    )
