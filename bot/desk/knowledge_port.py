"""What a channel can ask of the knowledge base. See ``bot.desk.port``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from bot.desk.actors import Actor
from knowledge.entries import Entry, Found, Stats
from knowledge.importing.plan import ImportPlan


@dataclass(frozen=True, slots=True)
class EntryText:
    """What a person writes of a knowledge entry; None is what they left alone."""

    question: str | None = None
    answer: str | None = None
    aliases: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None


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


class KnowledgeDesk(Protocol):
    """The entries of the shop's own store. An id may be written with a number sign; NotFound for one that is none.

    A viewer searches; an operator adds (waiting for approval), edits and rejects what waits; an owner also approves,
    edits what is live, deletes, imports and exports.
    """

    async def search(self, actor: Actor, words: str) -> Sequence[Found]:
        """The live entries that fit, best first."""

    async def entry(self, actor: Actor, entry_id: str) -> Entry:
        """One entry; a waiting one is for operators."""

    async def means(self, actor: Actor, question: str) -> Entry | None:
        """The entry that these very words ask for: a live one, else, for who may see it, one that waits."""

    async def add(self, actor: Actor, text: EntryText, *, key: str = "") -> Entry:
        """An owner's is live, an operator's waits. DoubleEntry where it is there. ``key`` as ``start_run``."""

    async def edit(self, actor: Actor, entry_id: str, text: EntryText) -> Entry:
        """Change what is not None."""

    async def delete(self, actor: Actor, entry_id: str) -> Entry:
        """The entry that was there."""

    async def pending(self, actor: Actor) -> Sequence[Entry]:
        """What waits for approval, oldest first."""

    async def approve(self, actor: Actor, entry_id: str) -> Entry:
        """The entry that is live now: of another wording for one, that one."""

    async def reject(self, actor: Actor, entry_id: str) -> Entry:
        """The waiting entry that was thrown away."""

    async def undo(self, actor: Actor, entry_id: str) -> Entry:
        """Take back this person's newest edit, deletion or rejection; BadRequest where that was of another entry."""

    async def allow_import(self, actor: Actor) -> None:
        """AccessDenied for who may not import; asked before a file is fetched."""

    async def plan_import(
        self,
        actor: Actor,
        files: Sequence[KnowledgeFile],
        *,
        drop_aliases: bool = False,
        tell: Tell | None = None,
    ) -> ImportView:
        """What would be added and changed, what doubles and what is refused; nothing is written.

        drop_aliases: entries lose the aliases that their rows do not have.
        """

    async def carry_out(
        self,
        actor: Actor,
        files: Sequence[KnowledgeFile],
        *,
        replace_doubles: bool = False,
        drop_aliases: bool = False,
        mark: str = "",
        tell: Tell | None = None,
    ) -> ImportView:
        """Import. Where the plan is not the one of ``mark`` any more, nothing is done and the new plan is given."""

    async def export(self, actor: Actor, form: str) -> KnowledgeFile:
        """Every entry. BadRequest for a form that is none."""

    async def stats(self, actor: Actor) -> KnowledgeStats: ...
