"""Ranks knowledge entries by the words that they share with a query, in memory.

Each entry brings its words as bytes, packed once when it is stored, so the index of 20,000 entries is built in half a
second. Ranking is BM25 as in SQLite's FTS5 (https://www.sqlite.org/fts5.html#the_bm25_function), but the same on both
databases.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np

# A word of an entry: its CRC-32, and how often it occurs in the wordings and in the answer. An exact form is a word
# that occurs in neither. Two words may have one CRC-32, so a search for a form compares the text as well.
WORD = np.dtype([("word", "<u4"), ("asked", "<u2"), ("answer", "<u2")])
_OFTEN = 0xFFFF  # the most that is counted
_ASKED, _ANSWER = 2.0, 0.4  # weights of a word in a wording and in the answer
_K1, _B = 1.2, 0.75
_LEAST = 1e-6  # the weight of a word that more than half of the entries have


def pack(asked: Iterable[str], answer: Iterable[str], forms: Iterable[str]) -> bytes:
    """Return the search data of an entry as bytes.

    asked: the words of its question, aliases and tags. forms: the exact forms that mean it.
    """
    in_asked, in_answer = Counter(map(_hash, asked)), Counter(map(_hash, answer))
    words = {**in_asked, **in_answer, **dict.fromkeys(map(_form, forms))}
    found = [(word, min(in_asked[word], _OFTEN), min(in_answer[word], _OFTEN)) for word in words]
    return np.array(found, WORD).tobytes()


@dataclass(frozen=True, slots=True, eq=False)
class WordIndex:
    """Entries by their words. The arrays ``numbers`` to ``lengths`` have one item per entry, in the entries' order.

    numbers: the entries' numbers, ascending. lengths: how many words each has, with repetitions.
    words: every word of every entry, sorted by its CRC-32. owners: whose each of them is, as a place in ``numbers``.
    """

    numbers: np.ndarray
    ids: np.ndarray
    live: np.ndarray
    lengths: np.ndarray
    words: np.ndarray
    owners: np.ndarray

    def updated(self, numbers: Sequence[int], changed: Sequence[tuple[int, str, bool, bytes]]) -> WordIndex:
        """Return the index of the entries with these numbers, ascending.

        changed: the new and changed ones among them: their numbers, ids, whether they are live, and packed words.
        """
        new = np.array(numbers, np.int64)
        at = _places(new, [number for number, *_ in changed])
        words = np.frombuffer(b"".join(packed for *_, packed in changed), WORD)
        counts = [len(packed) // WORD.itemsize for *_, packed in changed]
        owners = np.repeat(at, counts)
        lengths = np.bincount(owners, words["asked"].astype(np.uint32) + words["answer"], len(new))[at]

        kept = np.isin(self.numbers, np.delete(new, at))
        before = _places(new, self.numbers)  # the present places of the old entries
        of_kept = kept[self.owners]
        words = np.concatenate([self.words[of_kept], words])
        owners = np.concatenate([before[self.owners[of_kept]], owners])
        order = np.argsort(words["word"], kind="stable")  # quick where little is new, because the rest is sorted

        def joined(old: np.ndarray, values: Sequence[object] | np.ndarray) -> np.ndarray:
            made = np.empty(len(new), old.dtype)
            made[before[kept]] = old[kept]
            made[at] = values
            return made

        return WordIndex(
            new,
            joined(self.ids, [row[1] for row in changed]),
            joined(self.live, [row[2] for row in changed]),
            joined(self.lengths, lengths),
            words[order],
            owners[order],
        )

    def search(self, words: Iterable[str], limit: int, *, live: bool | None) -> list[str]:
        """Return the ids of up to ``limit`` entries that share words with these, best first.

        live: None finds live and waiting entries.
        """
        scores = np.zeros(len(self.ids))
        norms = _K1 * (1 - _B + _B * self.lengths / max(self.lengths.mean(), 1)) if len(scores) else scores
        for word in {_hash(word): None for word in words}:
            found, entries = self._having(word)
            frequency = _ASKED * found["asked"] + _ANSWER * found["answer"]
            rarity = math.log((len(scores) - len(entries) + 0.5) / (len(entries) + 0.5))
            scores[entries] += max(rarity, _LEAST) * frequency * (_K1 + 1) / (frequency + norms[entries])
        if live is not None:
            scores[self.live != live] = 0
        best = np.argsort(-scores, kind="stable")[:limit]
        return [str(self.ids[entry]) for entry in best if scores[entry] > 0]

    def with_forms(self, forms: Iterable[str]) -> list[str]:
        """Return the ids of the entries that one of these exact forms may mean, in the entries' order."""
        found: set[int] = set()
        for form in forms:
            found.update(self._having(_form(form))[1].tolist())
        return [str(self.ids[entry]) for entry in sorted(found)]

    def _having(self, word: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the places of a word, and the entry of each."""
        hashes, wanted = self.words["word"], np.uint32(word)  # of the array's type, which would else be copied
        start, end = np.searchsorted(hashes, wanted, "left"), np.searchsorted(hashes, wanted, "right")
        return self.words[start:end], self.owners[start:end]


EMPTY = WordIndex(*(np.empty(0, kind) for kind in (np.int64, object, bool, float, WORD, np.uint32)))


def _places(numbers: np.ndarray, wanted: Sequence[int] | np.ndarray) -> np.ndarray:
    return np.searchsorted(numbers, np.asarray(wanted, np.int64)).astype(np.uint32)


def _hash(word: str) -> int:
    return crc32(word.encode())


def _form(form: str) -> int:
    return crc32(b"=" + form.encode())
