"""The index itself, below the cutting of words."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from pathlib import Path

import pytest

from storage.knowledge_index import VERSION, EntryRow, EntryWords, KnowledgeIndex


@pytest.mark.parametrize("word", ['"', '" OR "a', 'a" NOT "b', "a*", "NEAR(a b)", "question : a"])
async def test_a_word_is_data_even_with_signs(tmp_path: Path, word: str) -> None:
    index = KnowledgeIndex(tmp_path / "k.db")
    await index.put(EntryRow("1", "q", "x"), EntryWords(["b"], [], [], []))
    assert await index.search([word], 5) == ()
    assert [row.id for row in await index.search([word, "b"], 5)] == ["1"]
    await index.close()


def version(path: Path) -> int:
    with sqlite3.connect(path) as database:
        (found,) = database.execute("PRAGMA user_version").fetchone()
    database.close()
    return int(found)


async def test_a_write_cancelled_while_another_holds_the_lock_stops_no_later_one(tmp_path: Path) -> None:
    """At any moment of it: each round cancels one write somewhere between its start and its end."""
    path = tmp_path / "k.db"
    index = KnowledgeIndex(path)
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


@pytest.mark.parametrize("made", [f"PRAGMA user_version = {VERSION + 1}", "CREATE TABLE entries (number INTEGER)"])
async def test_a_file_of_another_release_is_left_alone(tmp_path: Path, made: str) -> None:
    path = tmp_path / "k.db"
    with sqlite3.connect(path) as other:
        other.execute(made)
    other.close()
    before = version(path)
    index = KnowledgeIndex(path)
    with pytest.raises(sqlite3.DatabaseError, match="another release"):
        await index.count()
    await index.close()
    assert version(path) == before


async def test_all_entries_or_none(tmp_path: Path) -> None:
    index = KnowledgeIndex(tmp_path / "k.db")
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
