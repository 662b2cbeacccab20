"""The index itself, below the cutting of words."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.knowledge_index import EntryRow, EntryWords, KnowledgeIndex


@pytest.mark.parametrize("word", ['"', '" OR "a', 'a" NOT "b', "a*", "NEAR(a b)", "question : a"])
async def test_a_word_is_data_even_with_signs(tmp_path: Path, word: str) -> None:
    index = KnowledgeIndex(tmp_path / "k.db")
    await index.put(EntryRow("1", "q", "x"), EntryWords(["b"], [], [], []))
    assert await index.search([word], 5) == ()
    assert [row.id for row in await index.search([word, "b"], 5)] == ["1"]
    await index.close()


async def test_all_entries_or_none(tmp_path: Path) -> None:
    index = KnowledgeIndex(tmp_path / "k.db")
    good = (EntryRow("1", "q", "x"), EntryWords(["b"], [], [], ["q"]))
    bad = (EntryRow("2", "q", None), EntryWords([], [], [], []))  # type: ignore[arg-type]  # a row the file refuses
    with pytest.raises(Exception, match="NOT NULL"):
        await index.put_all([good, bad])
    assert await index.count() == 0
    assert await index.with_form("q") == ()
    await index.put_all([good])
    assert await index.count() == 1
    await index.close()
