"""Give the test corpus for the question "does this record answer what the customer wrote".

It has three parts, all from the TOML files beside this module, one file for each shop:

- `records()`: what a shop's knowledge base holds, 60 records. Many differ from a neighbour in one detail. Their answers
  are short and lean on the question ("是的亲，直接拍下就好。"), so an answer to a slightly different question is wrong.
- `near_misses()`: what a customer wrote, and the record that a naive chooser would take first. The record must not be
  sent without a person. If `other` names a record, that one may answer the words; the near record still must not.
- `paraphrases()`: what a customer wrote, and the record that a careful clerk would send without hesitation.

How a file is written:

- `question`, `aliases`, `answer`: the record. `presumes` tells a reader what the answer silently takes for granted.
- `light`, `middle`, `free`: fair paraphrases, by their distance from the record's words.
- `near.<class>`: near misses as they are.
- `swap.<class>`: "old -> new", done in each wording that has `old`; nothing after the arrow deletes it. " @id" at the
  end names a record that may answer the new words.
- `facts`: statements that make the answer wrong or not enough; they are put before or after the question, in the same
  message (`condition`) or in one of their own (`order`).
- `tails`: second clauses that ask or change something else (`second_half`).
- `follow`: what is written after the question in a message of its own (`order`).
- " | " separates messages.

Everything is deterministic: the choice among many combinations is made by a random number generator with a fixed seed
for each record and class. To count, and to read everything as JSON Lines:

    python -m tests.near_misses.corpus
    python -m tests.near_misses.corpus near_misses | less
    python -m tests.near_misses.corpus paraphrases

To add to the corpus, add lines to a TOML file. An id numbers the pairs of a record and class, so ids change then.
Before you add a near miss, check that the answer as it stands does not in truth answer it: "可以退的亲" answers
"不能退吧" too.
"""

from __future__ import annotations

import json
import random
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

CLASSES = {
    "number": "another number than the record speaks of",
    "unit": "another unit or measure than the record speaks of",
    "sign": "a sign changes what is asked about",
    "negation": "a negation or exception changes what is asked",
    "model": "another model, brand or product",
    "condition": "a condition is added that the record does not cover, or one that it needs is missing",
    "tense": "it has happened, or has not yet; the record speaks of another time",
    "second_half": "a second clause asks or changes something that the record does not answer",
    "order": "another message changes, replaces or takes back the question",
    "who_what": "another question about the same thing",
}
DISTANCES = ("light", "middle", "free")

MADE_PER_CLASS = 6  # made pairs of each record and class, beside those that are written out

_ENGLISH_CLOSERS = (
    "never mind",
    "nvm found it",
    "no need to reply",
    "sorry wrong shop",
    "forget it, I'll cancel",
    "already sorted",
    "please ignore my message",
    "wait, let me check first",
)
_CLOSERS = (
    "算了",
    "不用回了",
    "已经解决了",
    "没事了",
    "问错店了",
    "算了 我不要了",
    "哦看到了 不用回",
    "当我没说",
    "不用了 谢谢",
    "别回 我先问下我对象",
    "发错人了不好意思",
    "转人工",
    "你是机器人吧 叫个人来",
)
_LEADS = ("亲 {}", "你好，{}", "老板 {}", "在吗 | {}", "你好 | {}", "{} 谢谢", "客服在不在 | {}")
_ENGLISH_LEADS = ("hi, {}", "hello | {}", "{} thanks", "Hi there! {}", "hey | {}")

# {q}: a wording of the record, {x}: what is added.
_FACT_FORMS = ("{q}，{x}", "{x}，{q}", "{x} {q}", "{q} {x}", "{q}？{x}", "你好 {x} 想问下{q}")
_FACT_ORDERS = ("{q} | {x}", "{x} | {q}", "在吗 | {x} | {q}", "{q} | 谢谢 | {x}", "亲 {q} | {x}")
_TAIL_FORMS = ("{q}，{x}", "{q} {x}", "{q}？{x}", "亲 {q}，{x}", "{q}。{x}？")
_FOLLOW_ORDERS = ("{q} | {x}", "在吗 | {q} | {x}", "{q} | 谢谢 | {x}")
_ENGLISH_FACT_FORMS = ("{q}, {x}", "{x}, {q}", "{q}? {x}", "{x}. {q}", "hi, {x}, {q}")
_ENGLISH_FACT_ORDERS = ("{q} | {x}", "{x} | {q}", "hi | {x} | {q}", "{q} | thanks | {x}")
_ENGLISH_TAIL_FORMS = ("{q}, {x}", "{q} {x}", "{q}? {x}", "hi, {q}, {x}")
_ENGLISH_FOLLOW_ORDERS = ("{q} | {x}", "hi | {q} | {x}", "{q} | thanks | {x}")


@dataclass(frozen=True, slots=True)
class ShopRecord:
    id: str
    shop: str
    question: str
    aliases: tuple[str, ...]
    answer: str
    presumes: str

    @property
    def wordings(self) -> tuple[str, ...]:
        return (self.question, *self.aliases)

    @property
    def english(self) -> bool:
        return self.question.isascii()


@dataclass(frozen=True, slots=True)
class NearMiss:
    """`kind` is one of `CLASSES` ("class" in JSON). `other`: a record that may answer these words instead, or ""."""

    id: str
    kind: str
    record: str
    messages: tuple[str, ...]
    why: str
    other: str = ""


@dataclass(frozen=True, slots=True)
class Paraphrase:
    record: str
    messages: tuple[str, ...]
    distance: str


@dataclass(frozen=True, slots=True)
class _Candidate:
    messages: tuple[str, ...]
    why: str
    other: str = ""


# Blanks and the marks that end or join clauses. Signs that carry meaning (+ - % : . / < > ~ ¥ $) stay.
_IGNORED = frozenset(" \t\n　，。？！；、…“”‘’,?!;\"'")
_COURTESIES = ("麻烦问一下", "麻烦问下", "客服在不在", "你好", "您好", "请问", "在吗", "谢谢", "老板", "亲", "呀")
_ENGLISH_COURTESIES = ("hi there", "hello", "thank you", "thanks", "please", "hey", "hi")


def bare(messages: Iterable[str]) -> str:
    """Return the words as one string in lower case, without blanks, clause marks, greetings and thanks."""
    kept = []
    for message in messages:
        words = message.lower()
        if words.isascii():
            spaced = " " + "".join(" " if mark in _IGNORED else mark for mark in words) + " "
            for courtesy in _ENGLISH_COURTESIES:
                spaced = spaced.replace(f" {courtesy} ", " ")
            words = spaced.rstrip(" .")
        else:
            for courtesy in _COURTESIES:
                words = words.replace(courtesy, "")
        kept.append("".join(mark for mark in words if mark not in _IGNORED))
    return "".join(kept)


@cache
def _entries() -> tuple[dict[str, Any], ...]:
    """Read the TOML files, in the order of their names, and add the shop to each entry."""
    return tuple(
        {**entry, "shop": path.stem}
        for path in sorted(Path(__file__).parent.glob("*.toml"))
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["record"]
    )


@cache
def records() -> tuple[ShopRecord, ...]:
    """Return all records, by shop."""
    return tuple(_record(entry) for entry in _entries())


@cache
def paraphrases() -> tuple[Paraphrase, ...]:
    """Return the fair paraphrases of all records."""
    return tuple(
        Paraphrase(entry["id"], _messages(words), distance)
        for entry in _entries()
        for distance in DISTANCES
        for words in entry[distance]
    )


@cache
def near_misses() -> tuple[NearMiss, ...]:
    """Return the near misses of all records, by record and class; each pair of a record once."""
    found: list[NearMiss] = []
    for entry in _entries():
        record = _record(entry)
        seen: set[tuple[str, ...]] = set()
        for kind in CLASSES:
            number = 0
            for candidate in _chosen(entry, record, kind):
                if candidate.messages in seen:
                    continue
                seen.add(candidate.messages)
                number += 1
                id_ = f"{record.id}/{kind}/{number:02}"
                found.append(NearMiss(id_, kind, record.id, candidate.messages, candidate.why, candidate.other))
    return tuple(found)


def _record(entry: dict[str, Any]) -> ShopRecord:
    return ShopRecord(
        entry["id"], entry["shop"], entry["question"], tuple(entry["aliases"]), entry["answer"], entry["presumes"]
    )


def _chosen(entry: dict[str, Any], record: ShopRecord, kind: str) -> Iterator[_Candidate]:
    """Yield what is written out for the class, then a seeded choice of what is made."""
    chance = random.Random(f"{record.id}/{kind}")
    presumes = f"the record presumes: {record.presumes}"
    written = [_Candidate(_messages(words), f"{CLASSES[kind]}; {presumes}") for words in entry["near"].get(kind, ())]
    yield from written

    made = list(_swapped(entry, kind))
    if kind == "condition":
        made += _added(entry, "facts", _ENGLISH_FACT_FORMS if record.english else _FACT_FORMS, chance)
    elif kind == "second_half":
        made += _added(entry, "tails", _ENGLISH_TAIL_FORMS if record.english else _TAIL_FORMS, chance)
    elif kind == "order":
        made += _added(entry, "facts", _ENGLISH_FACT_ORDERS if record.english else _FACT_ORDERS, chance)
        made += _added(entry, "follow", _ENGLISH_FOLLOW_ORDERS if record.english else _FOLLOW_ORDERS, chance)
        made += _closed(record, chance)
    else:
        leads = _ENGLISH_LEADS if record.english else _LEADS
        made += [
            _Candidate(_messages(chance.choice(leads).format(candidate.messages[0])), candidate.why)
            for candidate in written
            if len(candidate.messages) == 1
        ]
    yield from _varied(made, chance)[:MADE_PER_CLASS]


def _swapped(entry: dict[str, Any], kind: str) -> Iterator[_Candidate]:
    """Do each swap of the class in each wording and each light or middle paraphrase that has the old words."""
    for swap in entry.get("swap", {}).get(kind, ()):
        change, _, other = swap.partition(" @")
        old, _, new = change.partition(" -> ")
        why = f"{CLASSES[kind]}: {old!r} became {new!r}" if new else f"{CLASSES[kind]}: {old!r} is missing"
        for words in (entry["question"], *entry["aliases"], *entry["light"], *entry["middle"]):
            if old in words:
                yield _Candidate(_messages(words.replace(old, new, 1)), why, other)


def _added(entry: dict[str, Any], key: str, forms: Sequence[str], chance: random.Random) -> Iterator[_Candidate]:
    """Put each of the record's `key` beside a wording, in one of the forms."""
    wordings = [entry["question"], *entry["aliases"], *entry["middle"]]
    for addition in entry[key]:
        form = chance.choice(forms)
        words = form.format(q=chance.choice(wordings).rstrip("?？"), x=addition)
        yield _Candidate(_messages(words), f"{addition!r} is not covered; the record presumes: {entry['presumes']}")


def _closed(record: ShopRecord, chance: random.Random) -> Iterator[_Candidate]:
    """Take the question back, or ask for a person, in a message after it."""
    closers = _ENGLISH_CLOSERS if record.english else _CLOSERS
    for closer in chance.sample(closers, 3):
        yield _Candidate((chance.choice(record.wordings), closer), f"the customer wants no answer now: {closer!r}")


def _varied(candidates: list[_Candidate], chance: random.Random) -> list[_Candidate]:
    """Shuffle the candidates so that one of each reason comes before the second of any."""
    chance.shuffle(candidates)
    times: Counter[str] = Counter()
    ranked = []
    for candidate in candidates:
        ranked.append((times[candidate.why], candidate))
        times[candidate.why] += 1
    return [candidate for _, candidate in sorted(ranked, key=lambda pair: pair[0])]


def _messages(words: str) -> tuple[str, ...]:
    return tuple(" ".join(message.split()).replace(" ?", "?") for message in words.split(" | "))


def main(part: str = "counts") -> None:
    """Write the counts by class, or one part of the corpus as JSON Lines, to standard output."""
    if part == "counts":
        counts: dict[str, Any] = {
            "records": len(records()),
            "near misses": len(near_misses()),
            "by class": Counter(pair.kind for pair in near_misses()),
            "paraphrases": len(paraphrases()),
            "by distance": Counter(paraphrase.distance for paraphrase in paraphrases()),
        }
        sys.stdout.write(json.dumps(counts, indent=2) + "\n")
        return
    parts: dict[str, Sequence[ShopRecord | NearMiss | Paraphrase]] = {
        "records": records(),
        "near_misses": near_misses(),
        "paraphrases": paraphrases(),
    }
    for item in parts[part]:
        fields = asdict(item)
        if "kind" in fields:
            fields["class"] = fields.pop("kind")
        sys.stdout.write(json.dumps(fields, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
