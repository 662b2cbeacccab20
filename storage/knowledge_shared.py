"""The knowledge entries of several machines: rows in the shared database, and a mirror of them on each machine.

The rows are the truth. The mirror is a file with the full-text index from which reads are answered; it may be deleted
at any time. Each write has a revision, counted up in one row, and a mark of its own. A read asks for the newest
revision, and updates the mirror if it is behind. A mirror whose mark is not one of this database's (another database,
or one restored to an earlier time) is made anew.

Locks are always taken in one order: the mirror's, then the counter's row.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiosqlite
import sqlalchemy as sa
import structlog
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.engine import Database
from storage.knowledge_index import EntryRow, EntryWords, KnowledgeIndex, Writer
from storage.shielded import run_shielded
from storage.tables import knowledge_entries, knowledge_revision

log = structlog.get_logger(__name__)

MARKS = 200  # marks of the newest writes are kept; a mirror that is further behind is made anew
_ROW = 1  # the only row of knowledge_revision
_MIRROR = "CREATE TABLE IF NOT EXISTS mirror (one INTEGER PRIMARY KEY CHECK (one = 1), revision INTEGER, mark TEXT)"
_HEAD = "SELECT revision, mark FROM mirror"
_SET_HEAD = "INSERT OR REPLACE INTO mirror (one, revision, mark) VALUES (1, ?, ?)"
_DROP_WORDS = "DELETE FROM words WHERE rowid = (SELECT number FROM entries WHERE id = ?)"
_DROP = "DELETE FROM entries WHERE id = ?"

Words = Callable[[EntryRow], EntryWords]


class SharedUnreachable(Exception):
    """The shared database cannot be reached, or did not take a write."""


@dataclass(frozen=True, slots=True)
class Head:
    """The newest write: the number of writes so far, and its mark, which no other write of any database has."""

    revision: int = 0
    mark: str = ""


class MirrorWriter(Writer):
    """A transaction of the mirror. ``touched``: the ids of the entries put and deleted in it."""

    def __init__(self, database: aiosqlite.Connection) -> None:
        super().__init__(database)
        self.touched: dict[str, None] = {}

    async def head(self) -> Head:
        return await _head_of(self._database)

    async def set_head(self, head: Head) -> None:
        await self._database.execute(_SET_HEAD, (head.revision, head.mark))

    async def put_all(
        self, entries: Sequence[tuple[EntryRow, EntryWords]], numbers: Sequence[int] | None = None
    ) -> None:
        self.touched.update(dict.fromkeys(entry.id for entry, _ in entries))
        await super().put_all(entries, numbers)

    async def delete(self, entry_id: str) -> bool:
        self.touched[entry_id] = None
        return await super().delete(entry_id)

    async def drop(self, ids: Sequence[str]) -> None:
        """Delete these entries; missing ones are ignored."""
        given = [(entry_id,) for entry_id in ids]
        await self._database.executemany(_DROP_WORDS, given)
        await self._database.executemany(_DROP, given)

    async def clear(self) -> None:
        for table in ("words", "forms", "entries", "mirror"):
            await self._database.execute(f"DELETE FROM {table}")  # noqa: S608 - the names above


class Mirror(KnowledgeIndex):
    """The index of this machine. A file that is not a database, or is of a later release, is deleted and made anew."""

    async def head(self) -> Head:
        """Return the newest write that the mirror holds."""
        database, _ = await self._open()
        return await _head_of(database)

    @asynccontextmanager
    async def mirroring(self) -> AsyncIterator[MirrorWriter]:
        async with self._changing() as database:
            yield MirrorWriter(database)

    async def _opened(self) -> tuple[aiosqlite.Connection, aiosqlite.Connection]:
        try:
            return await super()._opened()
        except sqlite3.OperationalError:
            raise  # the disk, the folder or a lock: another file would not help
        except sqlite3.DatabaseError as error:
            log.warning("knowledge_mirror_thrown_away", file=str(self._path), error=str(error))
            for end in ("", "-wal", "-shm"):
                self._path.with_name(self._path.name + end).unlink(missing_ok=True)
            return await super()._opened()

    async def _prepared(self, database: aiosqlite.Connection) -> None:
        await super()._prepared(database)
        await database.execute(_MIRROR)


class SharedIndex:
    """Entries in ``db``, read from the mirror file at ``mirror``, which several processes of a machine may share.

    Methods raise SharedUnreachable if the database cannot be used, and sqlite3.Error if the mirror cannot.

    words: cuts an entry's texts into words.
    former: the file in which this machine had its entries before they were shared. A shared store that nobody has
        written to starts with them; the file stays as it is.
    """

    def __init__(self, db: Database, mirror: Path, words: Words, *, former: Path | None = None) -> None:
        self._db = db
        self._words = words
        self._mirror = Mirror(mirror)
        self._former = former
        self._preparing = asyncio.Lock()

    async def close(self) -> None:
        """Close the mirror. The database stays open, because others use it."""
        await self._mirror.close()

    async def reading(self) -> KnowledgeIndex:
        """Return the mirror, after it was updated to what every machine has written until now."""
        await self._take_former()
        if await self._mirror.head() != await self._newest():
            await run_shielded(self._refresh())
        return self._mirror

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Writer]:
        """Give a write transaction: everything inside is stored, or nothing if something is raised.

        Other machines wait.
        """
        await self._take_former()
        async with self._changing() as (writer, _):
            yield writer

    @asynccontextmanager
    async def _changing(self) -> AsyncIterator[tuple[Writer, Head]]:
        """Give an up-to-date writer and the write before it.

        The mirror commits last: what a crash loses is fetched again.
        """
        kept = False
        try:
            async with self._mirror.mirroring() as writer:
                with _reached():
                    async with self._db.write() as connection:
                        before = await run_shielded(self._lock(connection, writer))
                        yield writer, before
                        await run_shielded(self._store(connection, writer, before))
                    kept = True
        except sqlite3.Error as error:
            if not kept:
                raise
            log.warning("knowledge_mirror_behind", error=str(error))

    async def _lock(self, connection: AsyncConnection, writer: MirrorWriter) -> Head:
        row = self._db.insert(knowledge_revision).values(id=_ROW, revision=0, mark="", marks=[])
        await connection.execute(row.on_conflict_do_nothing())
        await connection.execute(sa.select(knowledge_revision.c.id).with_for_update())
        head = await self._catch_up(connection, writer)
        writer.touched.clear()
        return head

    async def _store(self, connection: AsyncConnection, writer: MirrorWriter, before: Head) -> None:
        """Write what was changed in the mirror to the rows.

        Places are the mirror's, so every mirror has the same order.
        """
        if not writer.touched:
            return
        head = Head(before.revision + 1, uuid4().hex[:8])
        rows = await writer.placed(writer.touched)
        values = [_stored(entry_id, rows.get(entry_id), head.revision) for entry_id in writer.touched]
        insert = self._db.insert(knowledge_entries)
        changed = {name: insert.excluded[name] for name in ("place", "live", "entry", "revision")}
        await connection.execute(insert.on_conflict_do_update(index_elements=["id"], set_=changed), values)
        marks = (await connection.execute(sa.select(knowledge_revision.c.marks))).scalar_one()
        counted = sa.update(knowledge_revision).values(
            revision=head.revision, mark=head.mark, marks=[*marks, head.mark][-MARKS:]
        )
        await connection.execute(counted)
        await writer.set_head(head)

    async def _newest(self) -> Head:
        with _reached():
            async with self._db.read() as connection:
                return await _newest(connection)

    async def _refresh(self) -> None:
        async with self._mirror.mirroring() as writer:
            with _reached():
                async with self._db.read() as connection:
                    await self._catch_up(connection, writer)

    async def _catch_up(self, connection: AsyncConnection, writer: MirrorWriter) -> Head:
        """Update the mirror from the rows. Return the write that it has reached."""
        had, head = await writer.head(), await _newest(connection)
        if had == head:
            return head
        follows = await _is_before(connection, had, head)
        if not follows:
            log.info("knowledge_mirror_made_anew", had=had.revision, newest=head.revision)
            await writer.clear()
        found = sa.select(knowledge_entries).where(knowledge_entries.c.revision > (had.revision if follows else 0))
        rows = (await connection.execute(found.order_by(knowledge_entries.c.place))).mappings().all()
        kept = [row for row in rows if row["entry"] is not None]
        entries = await asyncio.to_thread(lambda: [(entry, self._words(entry)) for entry in map(_entry, kept)])
        await writer.drop([row["id"] for row in rows])  # before any is put: a place may have another entry now
        await writer.put_all(entries, [row["place"] for row in kept])
        await writer.set_head(head)
        return head

    # -- the entries from before they were shared

    async def _take_former(self) -> None:
        """Start a shared store that nobody has written to with the entries of this machine's own file, once."""
        if self._former is None:
            return
        async with self._preparing:
            if self._former is not None and await asyncio.to_thread(self._former.is_file):
                await self._share(self._former)
            self._former = None

    async def _share(self, file: Path) -> None:
        if (await self._newest()).revision:
            await self._tell_of(file)
            return
        rows = await self._entries_in(file)
        if not rows:
            return
        entries = await asyncio.to_thread(lambda: [(row, self._words(row)) for row in rows])
        async with self._changing() as (writer, before):
            if not before.revision:
                await writer.put_all(entries)
        if before.revision:  # another machine was faster
            await self._tell_of(file)
        else:
            log.warning("knowledge_file_shared", file=str(file), entries=len(rows))

    async def _tell_of(self, file: Path) -> None:
        """Log that this file is no longer read, if it has entries that are not shared."""
        try:
            here = {row.id for row in await self._entries_in(file)}
        except sqlite3.Error as error:
            log.warning("knowledge_file_unreadable", file=str(file), error=str(error))
            return
        with _reached():
            async with self._db.read() as connection:
                shared = set((await connection.execute(sa.select(knowledge_entries.c.id))).scalars())
        if missing := len(here - shared):
            log.warning("knowledge_file_not_shared", file=str(file), entries=missing)

    async def _entries_in(self, file: Path) -> Sequence[EntryRow]:
        index = KnowledgeIndex(file)
        try:
            return await index.entries()
        finally:
            await index.close()


async def is_written(db: Database) -> bool:
    """Tell whether there are, or have been, shared entries. Works also before the database's tables are made."""
    with _reached():
        async with db.read() as connection:
            made = await connection.run_sync(lambda sync: sa.inspect(sync).has_table(knowledge_revision.name))
            return bool(made and (await _newest(connection)).revision)


@contextmanager
def _reached() -> Iterator[None]:
    try:
        yield
    except (SQLAlchemyError, OSError) as error:
        raise SharedUnreachable(str(getattr(error, "orig", None) or error)) from error


async def _head_of(database: aiosqlite.Connection) -> Head:
    rows = list(await database.execute_fetchall(_HEAD))
    return Head(*rows[0]) if rows else Head()


async def _newest(connection: AsyncConnection) -> Head:
    row = (await connection.execute(sa.select(knowledge_revision.c.revision, knowledge_revision.c.mark))).first()
    return Head(*row) if row else Head()


async def _is_before(connection: AsyncConnection, had: Head, head: Head) -> bool:
    """Tell whether ``had`` is an earlier write of this database. An empty mirror always counts as earlier."""
    if had == Head():
        return True
    marks = (await connection.execute(sa.select(knowledge_revision.c.marks))).scalar_one_or_none() or []
    back = head.revision - had.revision
    return 0 < back < len(marks) and marks[-1 - back] == had.mark


def _stored(entry_id: str, placed: tuple[int, EntryRow] | None, revision: int) -> dict[str, object]:
    """Return the values of a row. A deleted entry keeps only its id."""
    if placed is None:
        return {"id": entry_id, "place": 0, "live": False, "entry": None, "revision": revision}
    place, row = placed
    return {
        "id": entry_id,
        "place": place,
        "live": row.live,
        "revision": revision,
        "entry": {
            "question": row.question,
            "answer": row.answer,
            "aliases": list(row.aliases),
            "tags": list(row.tags),
            "origin": row.origin,
            "alias_of": row.alias_of,
            "created_at": row.created_at.isoformat(),
            "updated_at": row.updated_at.isoformat(),
        },
    }


def _entry(row: Mapping[Any, Any]) -> EntryRow:
    entry = row["entry"]
    return EntryRow(
        row["id"],
        entry["question"],
        entry["answer"],
        tuple(entry["aliases"]),
        tuple(entry["tags"]),
        row["live"],
        entry["origin"],
        entry["alias_of"],
        datetime.fromisoformat(entry["created_at"]),
        datetime.fromisoformat(entry["updated_at"]),
    )
