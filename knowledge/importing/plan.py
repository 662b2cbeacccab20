"""The plan of an import: what it adds and changes, and which rows are left out, with the reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from knowledge.entries import Entry, Forms, Related, forms_of
from knowledge.importing.drafts import Draft

OnDouble = Literal["skip", "replace"]


@dataclass(frozen=True, slots=True)
class Added:
    place: str
    entry: Entry


@dataclass(frozen=True, slots=True)
class EntryChange:
    """An entry that changes.

    place: the row's; for an entry that only loses an alias, that of the row that takes it.
    by_question: the row has no id that the base knows, but the question of ``old``, ignoring politeness.
    kept: aliases that the row does not have.
    """

    place: str
    old: Entry
    new: Entry
    by_question: bool = False
    kept: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Double:
    """A wording of a row that something else has, too.

    place, wording, answer: the row's.
    other_place, other, other_answer: of the other: a row's place, or "entry ID"; its question; its answer.
    whole: the wording is the row's question (or its id), so the whole row is left out unless doubles are replaced;
    otherwise it is an alias, and only that is left out.
    fixed: replacing would change nothing, because it is the question of an entry of the base.
    in_base: the other is an entry of the base that no row of the file has.
    """

    place: str
    wording: str
    answer: str
    other_place: str
    other: str
    other_answer: str
    whole: bool
    fixed: bool = False
    in_base: bool = False

    @property
    def differs(self) -> bool:
        """Tell whether the two have different answers."""
        return self.answer != self.other_answer


@dataclass(frozen=True, slots=True)
class Unclear:
    """A row that is left out because those at ``other_places`` have its question or id, but another answer."""

    place: str
    question: str
    answer: str
    other_places: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class Lost:
    """The aliases that ``entry`` had before the import."""

    entry: Entry
    aliases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """The changes of an import, in the file's order.

    same: entries that their rows do not change.
    drafts: the rows that were read.
    base, forms: the part of the base that it was made for, and the forms computed for it.
    """

    name: str
    drafts: tuple[Draft, ...]
    added: tuple[Added, ...] = ()
    changed: tuple[EntryChange, ...] = ()
    same: tuple[Entry, ...] = ()
    doubles: tuple[Double, ...] = ()
    unclear: tuple[Unclear, ...] = ()
    rejected: tuple[Refused, ...] = ()
    notes: tuple[str, ...] = ()
    drop_aliases: bool = False
    base: Related = field(default_factory=Related, compare=False, repr=False)
    forms: Forms = field(default_factory=Forms, compare=False, repr=False)

    @property
    def writes(self) -> int:
        """The number of entries that it adds or changes."""
        return len(self.added) + len(self.changed)

    @property
    def lost(self) -> tuple[Lost, ...]:
        """The aliases that no longer mean anything; one that another row takes is not lost."""
        after = [*(one.entry for one in self.added), *(one.new for one in self.changed), *self.same]
        held = {form for entry in after for form in forms_of(entry, self.forms)}
        lost = []
        for one in self.changed:
            gone = (text for text in one.old.aliases if text not in one.new.aliases)
            if aliases := tuple(text for text in gone if self.forms[text] not in held):
                lost.append(Lost(one.new, aliases))
        return tuple(lost)
