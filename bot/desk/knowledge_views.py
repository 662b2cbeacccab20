"""What the desk takes and returns of the shop's own knowledge entries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from knowledge.entries import Stats
from knowledge.importing.plan import ImportPlan


@dataclass(frozen=True, slots=True)
class EntryText:
    """What a person writes of a knowledge entry; None is what they left alone.

    ``aliases`` and ``tags`` take the place of all that there were; ``added`` are single aliases. Each of ``removed``
    is an alias of the entry, or else several, parted as in a cell of an imported table.
    """

    question: str | None = None
    answer: str | None = None
    aliases: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KnowledgeFile:
    """A file to import, or an export. ``name`` is a plain name; its ending says the form."""

    name: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ImportView:
    """What an import would do, or did (``done``). ``mark`` names the plan: another one, another mark."""

    plan: ImportPlan
    mark: str
    done: bool = False


@dataclass(frozen=True, slots=True)
class ImportStep:
    """How far an import is: files read, then their rows compared with the base, then entries written."""

    kind: Literal["read", "compare", "write"]
    done: int
    total: int


Tell = Callable[[ImportStep], None]  # called from the event loop; it may not block


@dataclass(frozen=True, slots=True)
class KnowledgeStats:
    """``provider``: the knowledge base that answers customers; ``used``: the store's own entries are a part of it."""

    entries: Stats
    provider: str
    used: bool
