"""The parameters and results of the desk's knowledge service."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from knowledge.entries import Stats
from knowledge.importing.plan import ImportPlan


@dataclass(frozen=True, slots=True)
class EntryText:
    """A person's text for a knowledge entry; None leaves a field as it is.

    aliases, tags: replace all earlier ones.
    added: aliases to add. removed: aliases to remove, each one alias or several, separated as in a cell of an imported
        table.
    """

    question: str | None = None
    answer: str | None = None
    aliases: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KnowledgeFile:
    """A file to import, or an export. ``name`` is a file name without a folder; its ending tells the form."""

    name: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ImportView:
    """The changes of an import, planned or made (``done``). ``mark``: a hash of the plan."""

    plan: ImportPlan
    mark: str
    done: bool = False


@dataclass(frozen=True, slots=True)
class ImportStep:
    """The progress of an import: files read, then their rows compared with the base, then entries written."""

    kind: Literal["read", "compare", "write"]
    done: int
    total: int


Tell = Callable[[ImportStep], None]  # called from the event loop; it must not block


@dataclass(frozen=True, slots=True)
class KnowledgeStats:
    """The figures of the shop's own entries.

    provider: the knowledge bases that answer customers. used: the shop's own entries are among them.
    """

    entries: Stats
    provider: str
    used: bool
