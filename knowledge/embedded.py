"""The knowledge base that needs no service: questions and answers of our own, found by characters and pairs.

What was asked in the very words of an entry's question or of one of its aliases, politeness left aside, comes first.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from agent_core.errors import InputRejected, KnowledgeUnreachable
from agent_core.ports import Record
from agent_core.reply.sureness.plain import spaced, stripped
from knowledge.entries import (
    Entry,
    EntryFilter,
    EntryState,
    Forms,
    Found,
    Related,
    Stats,
    forms_of,
    likeness,
    make_entry,
    now,
    read_entries,
    sample_entries,
    tokens,
)
from storage.knowledge_index import EntryRow, EntryWords, KnowledgeIndex, Writer
from storage.knowledge_shared import SharedIndex, SharedUnreachable

if TYPE_CHECKING:
    from storage.engine import Database

__all__ = ["EmbeddedKnowledge", "Entry", "EntryState", "Found", "Stats", "forms_of", "read_entries", "sample_entries"]

_MOST_CANDIDATES = 5
_AT_ONCE = 500  # entries whose words are held: those of 20,000 take 150 MB
_LONGEST_QUERY = 500  # characters that are looked at
Index = KnowledgeIndex | SharedIndex
# Called inside the write with the other live entries that a wording means; what it raises keeps it unwritten.
Refusing = Callable[[Sequence[Entry]], None]


class EmbeddedKnowledge:
    """Entries in an index, or in the file at a path, made where it is missing. KnowledgeUnreachable where it cannot be
    used.

    What names an entry that is not there raises InputRejected (``get`` gives None, ``delete`` False).
    """

    def __init__(self, index: Index | Path) -> None:
        self._index = KnowledgeIndex(index) if isinstance(index, Path) else index

    @classmethod
    def shared(cls, db: Database, mirror: Path, *, former: Path | None = None) -> EmbeddedKnowledge:
        """Entries that all machines of ``db`` share, mirrored in a file of this one; see ``SharedIndex``."""
        return cls(SharedIndex(db, mirror, lambda row: _words(_entry(row)), former=former))

    @property
    def name(self) -> str:
        return "embedded"

    async def close(self) -> None:
        await self._index.close()

    async def retrieve(self, query: str) -> Sequence[Record]:
        """Return up to five records, best first; those that the very words of the query ask for come first.

        ``score`` is the share of the query's words that the entry's questions hold, for showing: a lexical score does
        not tell right from wrong, so none is ``sure``.
        """
        query = query[:_LONGEST_QUERY]
        form, words = stripped(query), spaced(query) or query
        async with self._reading() as index:
            exact = await index.with_form(form) if form else ()
            found = await index.search(tokens(words), _MOST_CANDIDATES)
        exact = [
            row for row in exact if form in forms_of(_entry(row))
        ]  # an earlier release may have written to the file
        exact_ids = {row.id for row in exact}
        rows = [*exact, *(row for row in found if row.id not in exact_ids)][:_MOST_CANDIDATES]
        return tuple(
            Record(
                id=row.id,
                text=row.answer,
                question=row.question,
                score=1.0 if row.id in exact_ids else _score(words, row),
                source=f"embedded:{row.id}",
                aliases=row.aliases,
            )
            for row in rows
        )

    async def search(self, words: str, *, limit: int = 10, live: bool | None = None) -> Sequence[Found]:
        """For a person, best first: by the words of questions, aliases, tags and answers, by an id or its beginning.

        "" gives the newest changes. ``live`` None: waiting ones too.
        """
        words, limit = words.strip()[:_LONGEST_QUERY], max(1, limit)
        form = stripped(words)
        async with self._reading() as index:
            if not words:
                return tuple(Found(_entry(row), 0.0) for row in await index.newest(limit, live=live))
            exact = list(await index.with_form(form, live=live)) if form else []
            named = await index.with_id_like(words, limit, live=live)
            near = await index.search(tokens(words), limit, live=live)
        best = {row.id for row in exact} | {row.id for row in named if row.id == words}
        exact.sort(key=lambda row: row.id != words)
        rows = {row.id: row for row in (*exact, *named, *near)}
        return tuple(
            Found(_entry(row), 1.0 if row.id in best else _share(words, row)) for row in list(rows.values())[:limit]
        )

    async def add(self, entry: Entry, *, refuse: Refusing | None = None) -> Entry:
        """Add the entry, or change the one with its id, which keeps ``created_at``. Returns it as it is kept."""
        async with self._writing() as writer:
            await _check(writer, entry, refuse)
            return await _put(writer, entry)

    async def add_all(self, entries: Sequence[Entry]) -> None:
        """All of them or none."""
        async with self._writing() as writer:
            await _put_all(writer, entries, Forms(), None)

    async def add_unless(self, entry: Entry, known: Callable[[Sequence[Entry]], bool]) -> Entry | None:
        """Add it, or None where ``known`` says that the entries which its question means, live or waiting, have it."""
        async with self._writing() as writer:
            rows = await writer.with_form(stripped(entry.question))
            return None if known([_entry(row) for row in rows]) else await _put(writer, entry)

    async def related(self, wanted: EntryFilter, forms: Forms) -> Related:
        """What has an id or a form that is wanted, or shares a form with such an entry."""
        async with self._reading() as index:
            return await _related(index, wanted, forms)

    async def revise(
        self,
        wanted: EntryFilter,
        forms: Forms,
        change: Callable[[Related], Sequence[Entry]],
        *,
        wrote: Callable[[int, int], None] | None = None,
    ) -> None:
        """Put every entry that ``change`` makes of what is ``related``, as one: nothing else is written in between.

        change: called in a thread. What it raises is raised here, and nothing is written.
        wrote: called now and then with how many entries of how many are written.
        """
        async with self._writing() as writer:
            found = await _related(writer, wanted, forms)
            await _put_all(writer, await asyncio.to_thread(change, found), forms, wrote)

    async def edit(
        self,
        entry_id: str,
        *,
        question: str | None = None,
        answer: str | None = None,
        aliases: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
        refuse: Refusing | None = None,
    ) -> Entry:
        """Change what is given; live stays live. A waiting wording that gets its own answer is an entry of its own."""
        async with self._writing() as writer:
            old = await _there(writer, entry_id)
            new = _changed(old, question=question, answer=answer, aliases=aliases, tags=tags)
            if new == old:
                return new
            await _check(writer, new, refuse)
            return await _put(writer, new)

    async def pending(self) -> Sequence[Entry]:
        """What waits for approval, oldest first."""
        return await self.list(live=False)

    async def approve(
        self,
        entry_id: str,
        *,
        question: str | None = None,
        answer: str | None = None,
        refuse: Refusing | None = None,
    ) -> Entry:
        """Make a waiting entry live, changed as given, and return the live one; one that is live already stays so.

        A wording for another entry goes to that entry's aliases and that entry is returned; with an ``answer`` that
        differs it becomes an entry of its own. InputRejected where the other entry is gone.
        """
        async with self._writing() as writer:
            old = await _there(writer, entry_id)
            entry = _changed(old, question=question, answer=answer)
            await _check(writer, entry, refuse, former=False)
            if not entry.alias_of:
                live = entry.model_copy(update={"live": True})
                return old if live == old else await _put(writer, live)
            row = await writer.get(entry.alias_of)
            if row is None:
                raise InputRejected(
                    f"The entry {entry.alias_of}, which this is another wording for, is gone.",
                    advice="Give it an answer of its own, or reject it.",
                    key="entry_gone",
                    id=entry.alias_of,
                )
            whole = _entry(row)
            await writer.delete(entry_id)
            if stripped(entry.question) in forms_of(whole):
                return whole
            return await _put(writer, _changed(whole, aliases=(*whole.aliases, entry.question)))

    async def reject(self, entry_id: str) -> Entry:
        """Throw a waiting entry away, and return it. InputRejected where it is live: that is deleted, not rejected."""
        async with self._writing() as writer:
            entry = await _there(writer, entry_id)
            if entry.live:
                said, advice = f"The entry {entry_id} is live.", "Delete it where it is wrong."
                raise InputRejected(said, advice=advice, key="entry_live", id=entry_id)
            await writer.delete(entry_id)
            return entry

    async def get(self, entry_id: str) -> Entry | None:
        async with self._reading() as index:
            row = await index.get(entry_id)
        return _entry(row) if row else None

    async def begins(self, start: str) -> Sequence[Entry]:
        """Up to two entries whose ids begin so; the one with this very id alone where there is one."""
        async with self._reading() as index:
            rows = await index.with_id_like(start, 2) if start else ()
        return tuple(_entry(row) for row in (rows[:1] if rows and rows[0].id == start else rows))

    async def delete(self, entry_id: str) -> bool:
        """Whether there was one."""
        async with self._writing() as writer:
            return await writer.delete(entry_id)

    async def doubles(self, entry: Entry) -> Sequence[Entry]:
        """The other live entries that a wording of this one means too: while it is so, that wording is never sure."""
        async with self._reading() as index:
            return await _doubles(index.with_form, entry)

    async def means(self, words: str) -> Entry | None:
        """The entry that these very words ask for, politeness left aside: a live one before one that waits."""
        form = stripped(words[:_LONGEST_QUERY])
        async with self._reading() as index:
            rows = await index.with_form(form, live=None) if form else ()
        found = [_entry(row) for row in rows]
        return next((entry for entry in found if entry.live), found[0] if found else None)

    async def stats(self) -> Stats:
        entries = await self.list()
        live = [entry for entry in entries if entry.live]
        tags = Counter(tag for entry in live for tag in entry.tags)
        return Stats(
            live=len(live),
            pending=len(entries) - len(live),
            aliases=sum(len(entry.aliases) for entry in live),
            newest=max((entry.updated_at for entry in entries), default=None),
            tags=sorted(tags.items(), key=lambda item: (-item[1], item[0])),
        )

    async def count(self) -> int:
        async with self._reading() as index:
            return await index.count()

    async def seed_sample_if_empty(self) -> int:
        """Fill an empty base with the sample shop's entries. How many were added: 0 where it was not empty."""
        if await self.count():
            return 0
        entries = sample_entries()
        await self.add_all(entries)
        return len(entries)

    async def list(self, *, live: bool | None = None) -> Sequence[Entry]:
        """Every entry, or only the live or the waiting ones, oldest first."""
        async with self._reading() as index:
            rows = await index.entries(live=live)
        return await asyncio.to_thread(lambda: tuple(map(_entry, rows)))

    @asynccontextmanager
    async def _reading(self) -> AsyncIterator[KnowledgeIndex]:
        """What has been written until now; asked for once, however much is read inside."""
        with _said():
            yield await self._index.reading()

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[Writer]:
        with _said():
            async with self._index.writing() as writer:
                yield writer


async def _there(writer: Writer, entry_id: str) -> Entry:
    row = await writer.get(entry_id)
    if row is None:
        said, advice = f"There is no entry {entry_id}.", "Search for it: it may have been deleted."
        raise InputRejected(said, advice=advice, key="no_entry", id=entry_id)
    return _entry(row)


async def _doubles(with_form: Callable[[str], Awaitable[Sequence[EntryRow]]], entry: Entry) -> Sequence[Entry]:
    found: dict[str, Entry] = {}
    for form in sorted(forms_of(entry)):
        for row in await with_form(form):
            if row.live and row.id not in (entry.id, entry.alias_of):
                found[row.id] = _entry(row)
    return tuple(found.values())


async def _check(writer: Writer, entry: Entry, refuse: Refusing | None, *, former: bool = True) -> None:
    """Tell ``refuse`` of the doubles that ``entry`` would have; ``former``: not of those that it has already."""
    if refuse is None or not (found := await _doubles(writer.with_form, entry)):
        return
    row = await writer.get(entry.id) if former else None
    known = {other.id for other in await _doubles(writer.with_form, _entry(row))} if row else set()
    if new := [other for other in found if other.id not in known]:
        refuse(new)


async def _related(index: KnowledgeIndex | Writer, wanted: EntryFilter, forms: Forms) -> Related:
    """Two steps: a row may keep the aliases of the entry that it changes, so what doubles those counts, too."""
    first = await index.related(wanted.ids, wanted.forms)

    def theirs() -> set[str]:
        return {form for row in first for form in forms_of(_entry(row), forms)} - wanted.forms

    second = await index.related((), more) if (more := await asyncio.to_thread(theirs)) else ()
    rows = {row.id: row for row in (*first, *second)}
    return Related(tuple(map(_entry, rows.values())), await index.ids())


async def _put_all(
    writer: Writer, entries: Sequence[Entry], forms: Forms, wrote: Callable[[int, int], None] | None
) -> None:
    def indexed(some: Sequence[Entry]) -> Sequence[tuple[EntryRow, EntryWords]]:
        return [_indexed(_renewed(entry), forms) for entry in some]

    for start in range(0, len(entries), _AT_ONCE):
        await writer.put_all(await asyncio.to_thread(indexed, entries[start : start + _AT_ONCE]))
        if wrote is not None:
            wrote(min(start + _AT_ONCE, len(entries)), len(entries))


async def _put(writer: Writer, entry: Entry) -> Entry:
    entry = _renewed(entry)
    await writer.put(*_indexed(entry))
    row = await writer.get(entry.id)
    return _entry(row) if row else entry


def _renewed(entry: Entry) -> Entry:
    return entry.model_copy(update={"updated_at": now()})


def _changed(entry: Entry, **changes: object) -> Entry:
    """With those that are not None. InputRejected where it would be no entry."""
    given = {name: value for name, value in changes.items() if value is not None}
    new = make_entry(**{**{name: getattr(entry, name) for name in Entry.model_fields}, **given})
    return new.model_copy(update={"alias_of": ""}) if new.answer != entry.answer else new


def _indexed(entry: Entry, forms: Forms | None = None) -> tuple[EntryRow, EntryWords]:
    row = EntryRow(
        entry.id,
        entry.question,
        entry.answer,
        entry.aliases,
        entry.tags,
        entry.live,
        entry.origin,
        entry.alias_of,
        entry.created_at,
        entry.updated_at,
    )
    return row, _words(entry, forms)


def _words(entry: Entry, forms: Forms | None = None) -> EntryWords:
    aliases = [word for text in (*entry.aliases, *entry.tags) for word in tokens(text)]
    return EntryWords(tokens(entry.question), aliases, tokens(entry.answer), sorted(forms_of(entry, forms)))


def _entry(row: EntryRow) -> Entry:
    """Nothing is checked: it was when it came in, and an earlier release may have allowed more."""
    return Entry.model_construct(
        id=row.id,
        question=row.question,
        answer=row.answer,
        aliases=row.aliases,
        tags=row.tags,
        live=row.live,
        origin=row.origin,
        alias_of=row.alias_of,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def _score(query: str, row: EntryRow) -> float:
    """0–0.99: the most of the query's words that one wording of the entry holds."""
    asked = tokens(query)
    best = max(likeness(asked, tokens(text)) for text in (row.question, *row.aliases))
    return min(0.99, round(best, 2))


def _share(words: str, row: EntryRow) -> float:
    """0–0.99: how many of these words stand somewhere in the entry."""
    wanted = set(tokens(words))
    if not wanted:
        return 0.0
    held = {word for text in (row.question, *row.aliases, *row.tags, row.answer) for word in tokens(text)}
    return min(0.99, round(len(wanted & held) / len(wanted), 2))


@contextmanager
def _said() -> Iterator[None]:
    try:
        yield
    except SharedUnreachable as error:
        raise KnowledgeUnreachable(
            f"The database with the knowledge entries cannot be used: {error}.",
            advice="Check PHONEDESK_DATABASE_URL and that the server runs.",
            key="knowledge_database",
            why=str(error),
        ) from error
    except (sqlite3.Error, OSError) as error:
        raise KnowledgeUnreachable(
            f"The knowledge file cannot be used: {error}.",
            advice="Check that the folder of PHONEDESK_DATA_DIR exists and can be written.",
            key="knowledge_file",
            why=error,
        ) from error
