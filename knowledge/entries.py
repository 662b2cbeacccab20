"""The entries of the embedded knowledge base: questions and answers, word for word, and their words for the index.

Chinese has no spaces between words, so characters count singly and in pairs; Latin words and numbers stay whole.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from importlib import resources
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from agent_core.errors import InputRejected
from agent_core.reply.sureness.plain import HAN, is_han, stripped
from agent_core.texts import Lang
from agent_core.texts.clean import clean_text

LONGEST_QUESTION = 500  # characters
LONGEST_ANSWER = 4000


class EntryState(StrEnum):
    LIVE = "live"
    PENDING = "pending"  # waits for approval and is never found by retrieve


def now() -> datetime:
    return datetime.now(UTC)


class Entry(BaseModel):
    """A question and its answer, word for word. Times are UTC.

    aliases: other ways to ask it.
    live: it is approved.
    origin: its source: "import:faq.xlsx", "person:NAME", "telegram:NAME", "terminal", "sample".
    alias_of: this waiting entry is only another wording for the entry with that id; ``answer`` is that one's.

    Origin and times do not count in comparisons. Every text is as ``clean_text`` makes it, because an answer is typed
    as it is. A question, an alias and a tag are one line.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(default_factory=lambda: uuid4().hex[:12], min_length=1, max_length=64)
    question: str = Field(max_length=LONGEST_QUESTION)
    answer: str = Field(max_length=LONGEST_ANSWER)
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    live: bool = True
    origin: str = ""
    alias_of: str = ""
    created_at: datetime = Field(default_factory=now)
    updated_at: datetime = Field(default_factory=now)

    @property
    def state(self) -> EntryState:
        return EntryState.LIVE if self.live else EntryState.PENDING

    @property
    def substance(self) -> tuple[object, ...]:
        """Everything except origin and times."""
        return (self.id, self.question, self.answer, self.aliases, self.tags, self.live, self.alias_of)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Entry) and self.substance == other.substance

    def __hash__(self) -> int:
        return hash(self.substance)

    @field_validator("question", mode="before")
    @classmethod
    def _one_line(cls, value: object) -> object:
        return line(value) if isinstance(value, str) else value

    @field_validator("answer", mode="before")
    @classmethod
    def _clean(cls, value: object) -> object:
        return clean_text(value) if isinstance(value, str) else value

    @field_validator("id", "question", "answer")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must not be blank")
        return value

    @field_validator("id")
    @classmethod
    def _one_word(cls, value: str) -> str:
        value = value.strip()
        if any(char.isspace() or not char.isprintable() for char in value):
            raise ValueError("must be one word, without blanks")
        return value

    @field_validator("aliases", "tags")
    @classmethod
    def _lines(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        found = lines(values)
        if any(len(value) > LONGEST_QUESTION for value in found):
            raise ValueError(f"must be of {LONGEST_QUESTION} characters at most each")
        return found

    @model_validator(mode="after")
    def _a_wording_waits(self) -> Entry:
        if self.live and self.alias_of:
            raise ValueError("an entry that is another wording for one can only wait for approval")
        return self


@dataclass(frozen=True, slots=True)
class Found:
    """A search result.

    ``score`` 0–1 is the share of the query's words in the entry; 1 means its id or its exact words.
    """

    entry: Entry
    score: float


@dataclass(frozen=True, slots=True)
class Stats:
    """Figures about the base.

    aliases: the number of those of live entries.
    newest: the time of the newest change; None in an empty base.
    tags: of live entries, most used first.
    """

    live: int
    pending: int
    aliases: int
    newest: datetime | None
    tags: Sequence[tuple[str, int]]


class Forms(dict[str, str]):
    """The exact forms of texts (see ``stripped``), each computed once, however often it is compared."""

    def __missing__(self, text: str) -> str:
        form = self[text] = stripped(text)
        return form


def forms_of(entry: Entry, forms: Forms | None = None) -> frozenset[str]:
    """Return the exact forms that mean the entry: its question and aliases without politeness."""
    form = stripped if forms is None else forms.__getitem__
    return frozenset(form(text) for text in (entry.question, *entry.aliases)) - {""}


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """The references of rows: the ``ids`` that they name, and the exact ``forms`` of their wordings."""

    ids: frozenset[str]
    forms: frozenset[str]


@dataclass(frozen=True, slots=True)
class Related:
    """The part of a base that such rows can change or double. ``ids``: all that are in use."""

    entries: tuple[Entry, ...] = ()
    ids: frozenset[str] = frozenset()


def line(text: str) -> str:
    """Return ``clean_text`` of a text on one line."""
    return re.sub(r"\s*\n\s*", " ", clean_text(text)).strip()


def lines(texts: Iterable[str]) -> tuple[str, ...]:
    """Return each text on one line, without blank ones and repetitions."""
    return tuple(dict.fromkeys(text for text in map(line, texts) if text))


def what_is_wrong(error: ValidationError) -> str:
    """Return the first problem in one line: the field and what it must be."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where} {first['msg'].removeprefix('Value error, ')}".strip()


def make_entry(**fields: object) -> Entry:
    """Make an entry of these fields. Raises InputRejected, which says which one is wrong."""
    try:
        return Entry.model_validate(fields)
    except ValidationError as error:
        said = f"This is no entry: {what_is_wrong(error)}."
        raise InputRejected(said, key="bad_entry", question=LONGEST_QUESTION, answer=LONGEST_ANSWER) from None


def sample_entries(lang: Lang = "zh") -> Sequence[Entry]:
    """Return the entries of the sample: a shop for phone accessories, with the same ids in each language."""
    text = (resources.files("knowledge") / "sample" / f"phone_accessories.{lang}.jsonl").read_text(encoding="utf-8")
    return tuple(entry.model_copy(update={"origin": "sample"}) for entry in read_entries(text))


def read_entries(text: str) -> Sequence[Entry]:
    """Read entries from JSON Lines, skipping blank lines. Raises InputRejected, which names the line that is wrong."""
    entries: list[Entry] = []
    for number, one in enumerate(text.split("\n"), start=1):  # splitlines would also split inside a text
        if not one.strip():
            continue
        try:
            entries.append(Entry.model_validate_json(one))
        except ValidationError as error:
            raise InputRejected(
                f"Line {number} is no entry: {what_is_wrong(error)}.",
                key="entry_line",
                line=number,
                why=what_is_wrong(error),
            ) from None
    return tuple(entries)


_RUN = re.compile(rf"[{HAN}]+|[^\W_{HAN}]+")


def normalize(text: str) -> str:
    """Return NFKC in lower case, with every punctuation mark and symbol as a space, and single spaces."""
    folded = unicodedata.normalize("NFKC", text).lower()
    return " ".join("".join(char if char.isalnum() else " " for char in folded).split())


def tokens(text: str) -> list[str]:
    """Return characters and pairs of neighbours of Han runs, and whole Latin words and numbers, in order."""
    found: list[str] = []
    for run in _RUN.findall(normalize(text)):
        if not is_han(run[0]):
            found.append(_without_accents(run))
            continue
        found.extend(run)
        found.extend(run[index : index + 2] for index in range(len(run) - 1))
    return found


def _without_accents(word: str) -> str:
    """Return a Latin word without its accents, which many people do not type; any other as it is."""
    if word.isascii():
        return word
    parts = unicodedata.normalize("NFD", word)
    return "".join(char for char in parts if not unicodedata.combining(char)) if parts[0].isascii() else word


def likeness(one: Collection[str], other: Collection[str]) -> float:
    """Return 0–1: the share of tokens that two texts have in common (Dice); 0 if one has none."""
    first, second = set(one), set(other)
    return 2 * len(first & second) / (len(first) + len(second)) if first and second else 0.0
