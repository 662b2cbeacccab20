"""The index itself, below the cutting of words."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from storage.knowledge_index import VERSION, EntryRow, EntryWords, KnowledgeIndex

# As the first release wrote it, with user_version 0.
OLD = """
CREATE TABLE IF NOT EXISTS entries (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, question TEXT NOT NULL, answer TEXT NOT NULL,
    aliases TEXT NOT NULL, tags TEXT NOT NULL, live INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS forms (
    number INTEGER NOT NULL REFERENCES entries (number) ON DELETE CASCADE, form TEXT NOT NULL,
    PRIMARY KEY (form, number)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS forms_of_entry ON forms (number);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (question, aliases, answer, tokenize = 'unicode61');
"""
OLD_ROWS = """
INSERT INTO entries VALUES (7, 'a', 'q', 'x', '["z"]', '["t"]', 1), (8, 'b', 'r', 'y', '[]', '[]', 0);
INSERT INTO words (rowid, question, aliases, answer) VALUES (7, 'q', 'z t', 'x'), (8, 'r', '', 'y');
INSERT INTO forms VALUES (7, 'q'), (7, 'z'), (8, 'r');
"""


def forms(row: EntryRow) -> Sequence[str]:
    return (row.question, *row.aliases)


@pytest.mark.parametrize("word", ['"', '" OR "a', 'a" NOT "b', "a*", "NEAR(a b)", "question : a"])
async def test_a_word_is_data_even_with_signs(tmp_path: Path, word: str) -> None:
    index = KnowledgeIndex(tmp_path / "k.db", forms)
    await index.put(EntryRow("1", "q", "x"), EntryWords(["b"], [], [], []))
    assert await index.search([word], 5) == ()
    assert [row.id for row in await index.search([word, "b"], 5)] == ["1"]
    await index.close()


def version(path: Path) -> int:
    with sqlite3.connect(path) as database:
        (found,) = database.execute("PRAGMA user_version").fetchone()
    database.close()
    return int(found)


async def test_a_file_of_the_first_release_is_upgraded(tmp_path: Path) -> None:
    path = tmp_path / "k.db"
    old = sqlite3.connect(path)
    old.executescript(OLD + OLD_ROWS)
    old.close()
    assert version(path) == 0
    for _ in range(2):
        index = KnowledgeIndex(path, forms)
        first, second = await index.entries()
        assert (first.id, first.question, first.answer, first.aliases, first.tags) == ("a", "q", "x", ("z",), ("t",))
        assert (first.live, second.live, first.origin, first.alias_of) == (True, False, "", "")
        assert datetime.now(UTC) - first.created_at < timedelta(minutes=5)
        assert [row.id for row in await index.with_form("z")] == ["a"]
        assert [row.id for row in await index.search(["t"], 5)] == ["a"]
        assert await index.search(["r"], 5) == ()
        await index.put(EntryRow("c", "c", "c", origin="terminal"), EntryWords(["c"], [], [], ["c"]))
        await index.close()
        assert version(path) == VERSION
        assert await index.delete("c")
        await index.close()


async def test_the_forms_of_an_earlier_release_are_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "k.db"
    index = KnowledgeIndex(path, forms)
    await index.put(EntryRow("1", "1.5米", "x", ("a",)), EntryWords([], [], [], ["15米", "a"]))
    await index.close()
    with sqlite3.connect(path) as old:
        old.execute("PRAGMA user_version = 1")
    old.close()
    assert [row.id for row in await index.with_form("1.5米")] == ["1"]
    assert [row.id for row in await index.with_form("a")] == ["1"]
    assert await index.with_form("15米") == ()
    await index.close()
    assert version(path) == VERSION


async def test_a_write_cancelled_while_another_holds_the_lock_stops_no_later_one(tmp_path: Path) -> None:
    """At any moment of it: each round cancels one write somewhere between its start and its end."""
    path = tmp_path / "k.db"
    index = KnowledgeIndex(path, forms)
    try:
        await _cut_writes(index, path)
    finally:
        await index.close()


async def _cut_writes(index: KnowledgeIndex, path: Path) -> None:
    assert await index.count() == 0
    other = sqlite3.connect(path, isolation_level=None)
    dice = random.Random(7)
    for n in range(60):
        held = n % 3 == 0
        if held:
            other.execute("BEGIN IMMEDIATE")
        work = asyncio.create_task(index.put(EntryRow(f"cut{n}", "q", "x"), EntryWords(["q"], [], [], ["q"])))
        await asyncio.sleep(dice.random() * 0.004)
        work.cancel()
        if held:
            await asyncio.sleep(0)
            other.execute("ROLLBACK")
        await asyncio.wait([work])
        await index.put(EntryRow(f"kept{n}", "q", "x"), EntryWords(["q"], [], [], ["q"]))
    other.close()
    rows = await index.entries()
    assert sum(row.id.startswith("kept") for row in rows) == 60
    assert {row.id for row in rows} == {row.id for row in await index.search(["q"], 200)}  # each whole or not at all


async def test_the_first_release_may_still_write_to_it(tmp_path: Path) -> None:
    """After a way back to it, and forward again."""
    path = tmp_path / "k.db"
    index = KnowledgeIndex(path, forms)
    assert await index.count() == 0
    await index.close()
    old = sqlite3.connect(path)
    old.executescript(OLD)
    old.execute("INSERT INTO entries (id, question, answer, aliases, tags, live) VALUES ('a', 'q', 'x', '[]', '[]', 1)")
    old.commit()
    old.close()
    (row,) = await index.entries()
    assert (row.id, row.created_at.year) == ("a", 1970)
    await index.close()


async def test_a_file_of_a_later_release_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "k.db"
    with sqlite3.connect(path) as later:
        later.execute(f"PRAGMA user_version = {VERSION + 1}")
    later.close()
    index = KnowledgeIndex(path, forms)
    with pytest.raises(sqlite3.DatabaseError, match="later release"):
        await index.count()
    await index.close()
    assert version(path) == VERSION + 1


async def test_all_entries_or_none(tmp_path: Path) -> None:
    index = KnowledgeIndex(tmp_path / "k.db", forms)
    good = (EntryRow("1", "q", "x"), EntryWords(["b"], [], [], ["q"]))
    bad = (EntryRow("2", "q", None), EntryWords([], [], [], []))  # type: ignore[arg-type]  # a row the file refuses
    with pytest.raises(Exception, match="NOT NULL"):
        await index.put_all([good, bad])
    assert await index.count() == 0
    assert await index.with_form("q") == ()
    await index.put_all([good])
    await index.put_all([good])
    assert await index.count() == 1
    assert [row.id for row in await index.search(["b"], 5)] == ["1"]
    await index.close()
