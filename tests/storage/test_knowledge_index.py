"""Ranking by words, against SQLite's own BM25."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing

import pytest

from storage.knowledge_index import EMPTY, WordIndex, pack

Texts = tuple[list[str], list[str]]  # the words of the wordings, and those of the answer


def texts(dice: random.Random) -> Texts:
    return dice.choices("abcdefghij", k=dice.randrange(1, 9)), dice.choices("aaabcdxyz", k=dice.randrange(12))


def indexed(before: WordIndex, numbers: Sequence[int], changed: dict[int, Texts], *, waiting: int = 0) -> WordIndex:
    rows = [(n, f"e{n}", n != waiting, pack(*changed[n], [f"form {n}"])) for n in sorted(changed)]
    return before.updated(numbers, rows)


def by_sqlite(entries: dict[int, Texts], words: Sequence[str], limit: int) -> list[str]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE VIRTUAL TABLE t USING fts5 (asked, answer)")
        rows = [(number, " ".join(asked), " ".join(answer)) for number, (asked, answer) in sorted(entries.items())]
        connection.executemany("INSERT INTO t (rowid, asked, answer) VALUES (?, ?, ?)", rows)
        found = "SELECT rowid FROM t WHERE t MATCH ? ORDER BY round(bm25(t, 2.0, 0.4), 9), rowid LIMIT ?"
        return [f"e{number}" for (number,) in connection.execute(found, (" OR ".join(words), limit))]


@pytest.mark.parametrize("seed", range(8))
def test_an_index_ranks_as_sqlite_does_however_it_came_about(seed: int) -> None:
    dice = random.Random(seed)
    entries: dict[int, Texts] = {}
    index = EMPTY
    for _ in range(12):
        gone = dice.sample(sorted(entries), min(len(entries), dice.randrange(3)))
        changed = {number: texts(dice) for number in dice.sample(range(1, 60), dice.randrange(8))}
        entries = {number: entry for number, entry in entries.items() if number not in gone} | changed
        index = indexed(index, sorted(entries), changed)
        assert list(index.ids) == [f"e{number}" for number in sorted(entries)]
        for _ in range(4):
            words = dice.sample("abcdefghijxyz", 3)
            assert index.search(words, 7, live=True) == by_sqlite(entries, words, 7)
        for number in range(1, 60):
            assert index.with_forms([f"form {number}"]) == ([f"e{number}"] if number in entries else [])


def test_waiting_entries_are_found_only_if_they_are_asked_for() -> None:
    index = indexed(EMPTY, [1, 2, 3], {1: (["a"], []), 2: (["a"], []), 3: (["b"], [])}, waiting=2)
    assert index.search(["a"], 5, live=True) == ["e1"]
    assert index.search(["a"], 5, live=False) == ["e2"]
    assert index.search(["a"], 5, live=None) == ["e1", "e2"]
    assert index.with_forms(["form 2", "form 1"]) == ["e1", "e2"]


def test_a_form_is_no_word_and_a_word_no_form() -> None:
    index = indexed(EMPTY, [1], {1: (["a"], ["b"])})
    assert index.search(["form 1"], 5, live=None) == []
    assert index.with_forms(["a", "b", ""]) == []
    assert EMPTY.search(["a"], 5, live=None) == EMPTY.with_forms(["a"]) == []


def test_words_that_do_not_fit_raise() -> None:
    with pytest.raises(ValueError, match="buffer size"):
        EMPTY.updated([1], [(1, "e1", True, b"x")])
