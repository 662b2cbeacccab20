"""The file of the embedded knowledge base: entries, their exact forms, and a full-text index. All its SQL is here.

Texts come in already cut into words; this file knows SQLite and no language. It is a file of its own, so that it can be
copied, replaced and thrown away apart from the runs.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import aiosqlite

_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    question TEXT NOT NULL,
    answer TEXT NOT NULL,
    aliases TEXT NOT NULL,
    tags TEXT NOT NULL,
    live INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS forms (
    number INTEGER NOT NULL REFERENCES entries (number) ON DELETE CASCADE,
    form TEXT NOT NULL,
    PRIMARY KEY (form, number)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS forms_of_entry ON forms (number);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (question, aliases, answer, tokenize = 'unicode61');
"""
_GET = "SELECT id, question, answer, aliases, tags, live FROM entries WHERE id = ?"
_LIST = """
SELECT id, question, answer, aliases, tags, live FROM entries WHERE ?1 IS NULL OR live = ?1 ORDER BY number
"""
_WITH_FORM = """
SELECT e.id, e.question, e.answer, e.aliases, e.tags, e.live FROM forms f JOIN entries e USING (number)
WHERE f.form = ? AND e.live = 1 ORDER BY number
"""
# The weights are of the columns of words: question, aliases, answer.
_SEARCH = """
SELECT e.id, e.question, e.answer, e.aliases, e.tags, e.live FROM words JOIN entries e ON e.number = words.rowid
WHERE words MATCH ? AND e.live = 1 ORDER BY bm25(words, 2.0, 2.0, 0.4), e.number LIMIT ?
"""


@dataclass(frozen=True, slots=True)
class EntryRow:
    """One entry. Only a live one is found; the others wait for approval."""

    id: str
    question: str
    answer: str
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    live: bool = True


@dataclass(frozen=True, slots=True)
class EntryWords:
    """What an entry is found by: words of its texts, and the exact forms that mean it."""

    question: Sequence[str]
    aliases: Sequence[str]
    answer: Sequence[str]
    forms: Sequence[str]


class KnowledgeIndex:
    """Opens its file with the first call. Several processes may share it; errors are sqlite3.Error."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: aiosqlite.Connection | None = None
        self._lock = asyncio.Lock()  # a transaction belongs to one caller

    async def close(self) -> None:
        async with self._lock:
            if self._connection is not None:
                await self._connection.close()
                self._connection = None

    async def put(self, entry: EntryRow, words: EntryWords) -> None:
        """Add the entry, or replace the one with its id."""
        await self.put_all([(entry, words)])

    async def put_all(self, entries: Sequence[tuple[EntryRow, EntryWords]]) -> None:
        """All of them or, where one fails, none."""
        async with self._lock:
            database = await self._open()
            await database.execute("BEGIN IMMEDIATE")
            try:
                for entry, words in entries:
                    await _remove(database, entry.id)
                    await _insert(database, entry, words)
            except BaseException:
                await database.rollback()
                raise
            await database.commit()

    async def delete(self, entry_id: str) -> bool:
        """Whether there was one."""
        async with self._lock:
            database = await self._open()
            await database.execute("BEGIN IMMEDIATE")
            found = await _remove(database, entry_id)
            await database.commit()
            return found

    async def get(self, entry_id: str) -> EntryRow | None:
        rows = await self._rows(_GET, (entry_id,))
        return _entry(rows[0]) if rows else None

    async def entries(self, *, live: bool | None = None) -> Sequence[EntryRow]:
        """In the order in which they were added; None: live and waiting ones."""
        rows = await self._rows(_LIST, (None if live is None else int(live),))
        return tuple(_entry(row) for row in rows)

    async def count(self) -> int:
        rows = await self._rows("SELECT count(*) FROM entries", ())
        return int(rows[0][0])

    async def with_form(self, form: str) -> Sequence[EntryRow]:
        """The live entries that this exact form means."""
        rows = await self._rows(_WITH_FORM, (form,))
        return tuple(_entry(row) for row in rows)

    async def search(self, words: Sequence[str], limit: int) -> Sequence[EntryRow]:
        """The live entries that share words with these, best BM25 first. Every word is data, whatever is in it."""
        match = " OR ".join('"' + word.replace('"', '""') + '"' for word in dict.fromkeys(words) if word)
        if not match:
            return ()
        rows = await self._rows(_SEARCH, (match, limit))
        return tuple(_entry(row) for row in rows)

    async def _rows(self, statement: str, values: Sequence[object]) -> list[sqlite3.Row]:
        async with self._lock:
            database = await self._open()
            return list(await database.execute_fetchall(statement, values))

    async def _open(self) -> aiosqlite.Connection:
        if self._connection is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            database = await aiosqlite.connect(self._path, timeout=30, isolation_level=None)
            try:
                await database.execute("PRAGMA journal_mode = WAL")
                await database.execute("PRAGMA foreign_keys = ON")
                await database.executescript(_SCHEMA)
            except BaseException:
                await database.close()
                raise
            self._connection = database
        return self._connection


async def _remove(database: aiosqlite.Connection, entry_id: str) -> bool:
    rows = list(await database.execute_fetchall("SELECT number FROM entries WHERE id = ?", (entry_id,)))
    for (number,) in rows:
        await database.execute("DELETE FROM words WHERE rowid = ?", (number,))
        await database.execute("DELETE FROM entries WHERE number = ?", (number,))
    return bool(rows)


async def _insert(database: aiosqlite.Connection, entry: EntryRow, words: EntryWords) -> None:
    cursor = await database.execute(
        "INSERT INTO entries (id, question, answer, aliases, tags, live) VALUES (?, ?, ?, ?, ?, ?)",
        (
            entry.id,
            entry.question,
            entry.answer,
            json.dumps(entry.aliases, ensure_ascii=False),
            json.dumps(entry.tags, ensure_ascii=False),
            int(entry.live),
        ),
    )
    number = cursor.lastrowid
    await database.execute(
        "INSERT INTO words (rowid, question, aliases, answer) VALUES (?, ?, ?, ?)",
        (number, " ".join(words.question), " ".join(words.aliases), " ".join(words.answer)),
    )
    await database.executemany(
        "INSERT OR IGNORE INTO forms (number, form) VALUES (?, ?)", [(number, form) for form in words.forms if form]
    )


def _entry(row: sqlite3.Row) -> EntryRow:
    entry_id, question, answer, aliases, tags, live = row
    return EntryRow(entry_id, question, answer, tuple(json.loads(aliases)), tuple(json.loads(tags)), bool(live))
