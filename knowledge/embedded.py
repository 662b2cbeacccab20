"""The knowledge base that needs no service: our own questions and answers, found by characters and pairs of them.

An entry comes first if its question or an alias has exactly the words of the query, except for politeness.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import fields
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from agent_core.errors import InputRejected, KnowledgeUnreachable
from agent_core.loop.questions import LEAST_SCORE
from agent_core.ports import Record
from agent_core.reply.sureness.plain import spaced, stripped
from knowledge.entries import (
    Entry,
    EntryFilter,
    Forms,
    Found,
    Related,
    Stats,
    forms_of,
    likeness,
    make_entry,
    now,
    sample_entries,
    tokens,
)
from storage.engine import Database
from storage.knowledge import EntryReader, EntryRow, EntryWriter, KnowledgeStore
from storage.repository import shielded

_MOST_CANDIDATES = 5
_AT_ONCE = 500  # entries whose words are counted between two reports of progress
_LONGEST_QUERY = 500  # characters that are used
# Called during the write with the other live entries that mean the same wording; if it raises, nothing is written.
Refusing = Callable[[Sequence[Entry]], None]


@shielded
class EmbeddedKnowledge:
    """The entries in ``db``, which stays open when this is closed.

    Raises KnowledgeUnreachable if the database cannot be used, and InputRejected for the id of an entry that does not
    exist (but ``get`` returns None, ``delete`` False).
    """

    def __init__(self, db: Database) -> None:
        self._store = KnowledgeStore(db)

    @property
    def name(self) -> str:
        return "embedded"

    async def close(self) -> None:
        """Do nothing, because others use the database."""

    async def retrieve(self, query: str) -> Sequence[Record]:
        """Return up to five records, best first; those whose wording equals the query come before all others.

        ``score`` is the share of the query's words in the entry's questions, for display: a lexical score does not tell
        right from wrong, so none is ``sure``.
        """
        query = query[:_LONGEST_QUERY]
        form, words = stripped(query), spaced(query) or query
        async with self._reading() as reader:
            exact = await _with_form(reader, form, live=True)
            found = await reader.search(tokens(words), _MOST_CANDIDATES)
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

    async def search(self, words: str, *, limit: int = 10, skip: int = 0, live: bool | None = None) -> Sequence[Found]:
        """Search for a person, best first: by words of questions, aliases, tags and answers, or by the start of an id.

        "" returns the newest changes, without the first ``skip``. ``live`` None includes waiting entries.
        An entry that is found by its words is left out if it scores too low to be a candidate for an answer.
        """
        words, limit = words.strip()[:_LONGEST_QUERY], max(1, limit)
        form = stripped(words)
        async with self._reading() as reader:
            if not words:
                return tuple(Found(_entry(row), 0.0) for row in await reader.newest(limit, skip=skip, live=live))
            exact = list(await _with_form(reader, form, live=live))
            named = await reader.get(_beginning(reader, words), live=live)
            near = await reader.search(tokens(words), limit, live=live)
        best = {row.id for row in exact} | {row.id for row in named if row.id == words}
        exact.sort(key=lambda row: row.id != words)
        rows = {row.id: row for row in (*exact, *named, *(row for row in near if _share(words, row) >= LEAST_SCORE))}
        return tuple(
            Found(_entry(row), 1.0 if row.id in best else _share(words, row)) for row in list(rows.values())[:limit]
        )

    async def add(self, entry: Entry, *, refuse: Refusing | None = None) -> Entry:
        """Add the entry, or change the one with its id, which keeps ``created_at``. Returns it as it is stored."""
        async with self._writing() as writer:
            await _check(writer, entry, refuse)
            return await _put(writer, entry)

    async def add_all(self, entries: Sequence[Entry]) -> None:
        """Add all entries or none."""
        values = await _values(entries, Forms())
        async with self._writing() as writer:
            await writer.put(values)

    async def add_unless(self, entry: Entry, known: Callable[[Sequence[Entry]], bool]) -> Entry | None:
        """Add the entry; None if ``known`` says that the entries with its wording, live or waiting, already have it."""
        async with self._writing() as writer:
            rows = await _with_form(writer, stripped(entry.question))
            return None if known([_entry(row) for row in rows]) else await _put(writer, entry)

    async def related(self, wanted: EntryFilter, forms: Forms) -> Related:
        """Return the entries that have a wanted id or form, or share a form with such an entry."""
        async with self._reading() as reader:
            return await _related(reader, wanted, forms)

    async def revise(
        self,
        wanted: EntryFilter,
        forms: Forms,
        change: Callable[[Related], Sequence[Entry]],
        *,
        wrote: Callable[[int, int], None] | None = None,
    ) -> None:
        """Put every entry that ``change`` makes of the related ones, in one write.

        All is computed before the write begins, because SQLite has one writer at a time; it is computed again if
        another has written meanwhile.

        change: is called in a thread. If it raises, nothing is written.
        wrote: is called now and then with the number of entries that are ready to be written, and of all.
        """
        while True:
            async with self._reading() as reader:
                found, seen = await _related(reader, wanted, forms), reader.revision
            values = await _values(await asyncio.to_thread(change, found), forms, wrote)
            async with self._writing() as writer:
                if writer.revision == seen:
                    await writer.put(values)
                    return

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
        """Change the given fields; a live entry stays live.

        A waiting wording that gets its own answer becomes an entry.
        """
        async with self._writing() as writer:
            old = await _there(writer, entry_id)
            new = _changed(old, question=question, answer=answer, aliases=aliases, tags=tags)
            if new == old:
                return new
            await _check(writer, new, refuse)
            return await _put(writer, new)

    async def pending(self) -> Sequence[Entry]:
        """Return the entries that wait for approval, oldest first."""
        return await self.list(live=False)

    async def approve(
        self,
        entry_id: str,
        *,
        question: str | None = None,
        answer: str | None = None,
        refuse: Refusing | None = None,
    ) -> Entry:
        """Make a waiting entry live, with the given changes, and return the live one; a live one stays so.

        A wording for another entry is added to that entry's aliases, and that entry is returned; with a different
        ``answer`` it becomes an entry of its own. Raises InputRejected if the other entry is gone.
        """
        async with self._writing() as writer:
            old = await _there(writer, entry_id)
            entry = _changed(old, question=question, answer=answer)
            await _check(writer, entry, refuse, former=False)
            if not entry.alias_of:
                live = entry.model_copy(update={"live": True})
                return old if live == old else await _put(writer, live)
            whole = await _get(writer, entry.alias_of)
            if whole is None:
                raise InputRejected(
                    f"The entry {entry.alias_of}, which this is another wording for, is gone.",
                    advice="Give it an answer of its own, or reject it.",
                    key="entry_gone",
                    id=entry.alias_of,
                )
            await writer.delete(entry_id)
            if stripped(entry.question) in forms_of(whole):
                return whole
            return await _put(writer, _changed(whole, aliases=(*whole.aliases, entry.question)))

    async def reject(self, entry_id: str) -> Entry:
        """Delete a waiting entry and return it.

        Raises InputRejected if it is live, because a live one must be deleted.
        """
        async with self._writing() as writer:
            entry = await _there(writer, entry_id)
            if entry.live:
                said, advice = f"The entry {entry_id} is live.", "Delete it where it is wrong."
                raise InputRejected(said, advice=advice, key="entry_live", id=entry_id)
            await writer.delete(entry_id)
            return entry

    async def get(self, entry_id: str) -> Entry | None:
        async with self._reading() as reader:
            return await _get(reader, entry_id)

    async def begins(self, start: str) -> Sequence[Entry]:
        """Return up to two entries whose ids begin with ``start``; only the one with exactly this id if it exists."""
        async with self._reading() as reader:
            ids = _beginning(reader, start)[:2] if start else []
            rows = await reader.get(ids[:1] if start in ids else ids)
        return tuple(map(_entry, rows))

    async def delete(self, entry_id: str) -> bool:
        """Delete the entry; return whether there was one."""
        async with self._writing() as writer:
            return await writer.delete(entry_id)

    async def doubles(self, entry: Entry) -> Sequence[Entry]:
        """Return the other live entries that one of its wordings means, too.

        Until that is resolved, it is never sure.
        """
        async with self._reading() as reader:
            return await _doubles(reader, entry)

    async def means(self, words: str) -> Entry | None:
        """Return the entry that has exactly these words, except for politeness: a live one before one that waits."""
        form = stripped(words[:_LONGEST_QUERY])
        async with self._reading() as reader:
            rows = await _with_form(reader, form)
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
        async with self._reading() as reader:
            return len(reader.index.ids)

    async def seed_sample_if_empty(self) -> int:
        """Fill an empty base with the sample shop's entries. Returns how many were added: 0 if it was not empty."""
        if await self.count():
            return 0
        entries = sample_entries()
        await self.add_all(entries)
        return len(entries)

    async def list(self, *, live: bool | None = None) -> Sequence[Entry]:
        """Return every entry, or only the live or the waiting ones, oldest first."""
        async with self._reading() as reader:
            rows = await reader.all(live=live)
        return await asyncio.to_thread(lambda: tuple(map(_entry, rows)))

    @asynccontextmanager
    async def _reading(self) -> AsyncIterator[EntryReader]:
        with _said():
            async with self._store.reading() as reader:
                yield reader

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[EntryWriter]:
        with _said():
            async with self._store.writing() as writer:
                yield writer


async def _get(reader: EntryReader, entry_id: str) -> Entry | None:
    return next(map(_entry, await reader.get([entry_id])), None)


async def _there(writer: EntryWriter, entry_id: str) -> Entry:
    entry = await _get(writer, entry_id)
    if entry is None:
        said, advice = f"There is no entry {entry_id}.", "Search for it: it may have been deleted."
        raise InputRejected(said, advice=advice, key="no_entry", id=entry_id)
    return entry


async def _with_form(reader: EntryReader, form: str, *, live: bool | None = None) -> Sequence[EntryRow]:
    """Return the entries that this exact form means; the index may give others besides."""
    rows = await reader.with_forms([form], live=live) if form else ()
    return [row for row in rows if form in forms_of(_entry(row))]


def _beginning(reader: EntryReader, start: str) -> list[str]:
    """Return the ids that begin with ``start``, an exact match first, then in the entries' order."""
    return sorted((found for found in reader.index.ids if found.startswith(start)), key=lambda found: found != start)


async def _doubles(reader: EntryReader, entry: Entry) -> Sequence[Entry]:
    forms = forms_of(entry)
    others = map(_entry, await reader.with_forms(forms, live=True))
    return tuple(other for other in others if other.id not in (entry.id, entry.alias_of) and forms_of(other) & forms)


async def _check(writer: EntryWriter, entry: Entry, refuse: Refusing | None, *, former: bool = True) -> None:
    """Tell ``refuse`` of the doubles that ``entry`` would have; if ``former``, only of new ones."""
    if refuse is None or not (found := await _doubles(writer, entry)):
        return
    old = await _get(writer, entry.id) if former else None
    known = {other.id for other in await _doubles(writer, old)} if old else set()
    if new := [other for other in found if other.id not in known]:
        refuse(new)


async def _related(reader: EntryReader, wanted: EntryFilter, forms: Forms) -> Related:
    """Collect in two steps: a row may keep the aliases of the entry that it changes, so their doubles count, too."""

    def having(some: Collection[str]) -> set[str]:
        return set(reader.index.with_forms(some))

    ids = reader.index.ids
    first = await asyncio.to_thread(having, wanted.forms) | wanted.ids.intersection(ids)
    rows = await reader.get([entry_id for entry_id in ids if entry_id in first])

    def theirs() -> set[str]:
        return having({form for row in rows for form in forms_of(_entry(row), forms)} - wanted.forms)

    second = await asyncio.to_thread(theirs) - first
    rows = (*rows, *await reader.get([entry_id for entry_id in ids if entry_id in second]))
    return Related(tuple(map(_entry, rows)), frozenset(ids))


async def _values(
    entries: Sequence[Entry], forms: Forms, wrote: Callable[[int, int], None] | None = None
) -> Sequence[dict[str, Any]]:
    """Return the rows of entries. ``wrote`` is called with the number that is ready, and that of all."""
    values: list[dict[str, Any]] = []

    def indexed(some: Sequence[Entry]) -> list[dict[str, Any]]:
        return [_indexed(_renewed(entry), forms) for entry in some]

    for start in range(0, len(entries), _AT_ONCE):
        values += await asyncio.to_thread(indexed, entries[start : start + _AT_ONCE])
        if wrote is not None:
            wrote(len(values), len(entries))
    return values


async def _put(writer: EntryWriter, entry: Entry) -> Entry:
    entry = _renewed(entry)
    await writer.put([_indexed(entry)])
    return await _get(writer, entry.id) or entry


def _renewed(entry: Entry) -> Entry:
    return entry.model_copy(update={"updated_at": now()})


def _changed(entry: Entry, **changes: object) -> Entry:
    """Return the entry with the changes that are not None. Raises InputRejected if the result is not an entry."""
    given = {name: value for name, value in changes.items() if value is not None}
    new = make_entry(**{**{name: getattr(entry, name) for name in Entry.model_fields}, **given})
    return new.model_copy(update={"alias_of": ""}) if new.answer != entry.answer else new


def _indexed(entry: Entry, forms: Forms | None = None) -> dict[str, Any]:
    """Return the row of an entry, with the words that it is found by."""
    from storage.knowledge_index import pack  # needs numpy, which takes long to load

    asked = [word for text in (entry.question, *entry.aliases, *entry.tags) for word in tokens(text)]
    return {**entry.model_dump(), "words": pack(asked, tokens(entry.answer), forms_of(entry, forms))}


def _entry(row: EntryRow) -> Entry:
    """Convert a row without checks: it was checked when it came in, and an earlier release may have allowed more."""
    return Entry.model_construct(**{field.name: getattr(row, field.name) for field in fields(row)})


def _score(query: str, row: EntryRow) -> float:
    """Return 0–0.99: the largest share of the query's words in one wording of the entry."""
    asked = tokens(query)
    best = max(likeness(asked, tokens(text)) for text in (row.question, *row.aliases))
    return min(0.99, round(best, 2))


def _share(words: str, row: EntryRow) -> float:
    """Return 0–0.99: the share of these words that occur anywhere in the entry."""
    wanted = set(tokens(words))
    if not wanted:
        return 0.0
    held = {word for text in (row.question, *row.aliases, *row.tags, row.answer) for word in tokens(text)}
    return min(0.99, round(len(wanted & held) / len(wanted), 2))


@contextmanager
def _said() -> Iterator[None]:
    try:
        yield
    except (SQLAlchemyError, OSError) as error:
        why = getattr(error, "orig", None) or error
        raise KnowledgeUnreachable(
            f"The database with the knowledge entries cannot be used: {why}.",
            advice="Check PHONEDESK_DATABASE_URL and that the server runs; for SQLite, PHONEDESK_DATA_DIR.",
            key="knowledge_database",
            why=str(why),
        ) from error
