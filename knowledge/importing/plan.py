"""What an import would change, and the import itself.

A row is the entry with its id, or else the live one with its question, politeness left aside; otherwise it is new. What
a file has no column for stays as it is. A wording must mean one entry only, or nothing is ever sure of it: so a row
whose question or alias another row or a live entry has already is a double.

Skipping doubles, what was there keeps the wording: a row is left out where it is its question, and loses an alias
where it is that. Replacing them, the row takes the wording: an earlier row with the same question or id is left out,
and an alias is taken from the other. An entry of the base keeps its own question in both.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agent_core.errors import InputRejected
from knowledge.entries import Entry, make_entry
from knowledge.importing.drafts import Draft
from knowledge.tokens import stripped

OnDouble = Literal["skip", "replace"]


@dataclass(frozen=True, slots=True)
class Added:
    place: str
    entry: Entry


@dataclass(frozen=True, slots=True)
class Change:
    """``by_question``: the row names no id that the base has; it is the question of ``old``, politeness left aside.

    ``place`` is the row's; of an entry that only loses an alias it is that of the row that takes it.
    """

    place: str
    old: Entry
    new: Entry
    by_question: bool = False


@dataclass(frozen=True, slots=True)
class Double:
    """``wording`` of the row at ``place`` is also one of ``other`` at ``other_place``: a row, or "entry ID".

    ``whole``: it is the row's question (or its id), so the row as a whole is left out unless doubles are replaced;
    otherwise it is one of its aliases, and only that is left out. ``fixed``: replacing would change nothing, it is the
    question of an entry of the base.
    """

    place: str
    wording: str
    other_place: str
    other: str  # the other's question
    whole: bool
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """``same``: entries that their rows do not change. ``drafts`` are what was read. Everything in the file's order."""

    name: str
    drafts: tuple[Draft, ...]
    added: tuple[Added, ...] = ()
    changed: tuple[Change, ...] = ()
    same: tuple[Entry, ...] = ()
    doubles: tuple[Double, ...] = ()
    rejected: tuple[Refused, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def writes(self) -> int:
        """How many entries it adds or changes."""
        return len(self.added) + len(self.changed)


def decide(name: str, drafts: Sequence[Draft], entries: Sequence[Entry], on_double: OnDouble) -> ImportPlan:
    """The plan for a base that holds ``entries``. Takes seconds for thousands of rows."""
    return _Planner(name, entries, on_double).plan(drafts)


@dataclass(slots=True)
class _Item:
    """A row that adds an entry, or changes ``old``."""

    place: str
    new: Entry
    old: Entry | None = None
    by_question: bool = False


class _Planner:
    def __init__(self, name: str, entries: Sequence[Entry], on_double: OnDouble) -> None:
        self._name = name
        self._replace = on_double == "replace"
        self._base = {entry.id: entry for entry in entries}
        self._asked: dict[tuple[str, bool], list[Entry]] = {}  # by the question's form and whether it is live
        for entry in entries:
            self._asked.setdefault((stripped(entry.question), entry.live), []).append(entry)
        self._items: dict[str, _Item] = {}  # by id, in the file's order
        self._now: dict[str, Entry] = {}  # what is live if all is carried out, by id
        self._holders: dict[str, set[str]] = {}  # of a form: the ids in _now that it means
        self._ids = set(self._base)
        self._same: dict[str, tuple[str, Entry]] = {}  # by id: the row and its entry
        self._doubles: list[Double] = []
        self._refused: list[Refused] = []

    def plan(self, drafts: Sequence[Draft]) -> ImportPlan:
        self._ids |= {draft.id for draft in drafts if draft.id}
        items = [item for draft in drafts if (item := self._item(draft))]
        touched = {item.old.id for item in items if item.old}
        for entry in self._base.values():
            if entry.live and entry.id not in touched:
                self._hold(entry)
        for item in items:
            self._settle(item)
        notes = dict.fromkeys(note for draft in drafts for note in draft.note.split("\n") if note)
        kept = self._items.values()
        return ImportPlan(
            name=self._name,
            drafts=tuple(drafts),
            added=tuple(Added(item.place, item.new) for item in kept if item.old is None),
            changed=tuple(Change(item.place, item.old, item.new, item.by_question) for item in kept if item.old),
            same=tuple(entry for _, entry in self._same.values()),
            doubles=tuple(self._doubles),
            rejected=tuple(self._refused),
            notes=tuple(notes),
        )

    def _item(self, draft: Draft) -> _Item | None:
        """What the row would do by itself; None where it is refused or changes nothing."""
        if draft.problem:
            self._refused.append(Refused(draft.place, draft.problem))
            return None
        try:
            old = self._old(draft)
            new = self._new(draft, old)
        except InputRejected as error:
            self._refused.append(Refused(draft.place, error.message))
            return None
        if old and _like(old, new) and old.id not in self._same:
            self._same[old.id] = (draft.place, old)
            return None
        return _Item(draft.place, new, old, by_question=old is not None and old.id != draft.id)

    def _old(self, draft: Draft) -> Entry | None:
        if draft.id in self._base:
            return self._base[draft.id]
        form = stripped(draft.question)
        found = self._asked.get((form, draft.live is not False), []) if form else []
        if draft.live is False:  # two may wait with the same question: people answered it differently
            found = [entry for entry in found if entry.answer == draft.answer]
        if len(found) > 1:
            ids = ", ".join(entry.id for entry in found)
            raise InputRejected(f"several entries have this question ({ids}): write the id of the one that is meant")
        return found[0] if found else None

    def _new(self, draft: Draft, old: Entry | None) -> Entry:
        live = draft.live if draft.live is not None else old.live if old else not draft.alias_of
        alias_of = draft.alias_of if draft.alias_of is not None else old.alias_of if old else ""
        fields: dict[str, object] = {
            "id": old.id if old else draft.id or self._free_id(draft),
            "question": draft.question,
            "answer": draft.answer,
            "aliases": draft.aliases if draft.aliases is not None else old.aliases if old else (),
            "tags": draft.tags if draft.tags is not None else old.tags if old else (),
            "live": live,
            "alias_of": "" if live else alias_of,
            "origin": f"import:{self._name}",
        }
        return make_entry(**fields)

    def _free_id(self, draft: Draft) -> str:
        """The same for the same question in the same base, so that two plans can be compared."""
        count = 0
        while True:
            found = hashlib.sha256(f"{stripped(draft.question) or draft.question}\n{count}".encode()).hexdigest()[:12]
            if found not in self._ids:
                self._ids.add(found)
                return found
            count += 1

    def _settle(self, item: _Item) -> None:
        """Take the row unless another has its id or question; leave out or take over the aliases that are double."""
        if not self._id_is_free(item) or (item.new.live and not self._question_is_free(item)):
            if item.old and item.old.live and item.old.id not in self._items:
                self._hold(item.old)
            return
        if item.new.live:
            self._settle_aliases(item)
            self._hold(item.new)
        if item.old and _like(item.old, item.new):
            self._same.setdefault(item.old.id, (item.place, item.old))
        else:
            self._items[item.new.id] = item

    def _id_is_free(self, item: _Item) -> bool:
        earlier = self._items.get(item.new.id)
        place, question = (earlier.place, earlier.new.question) if earlier else ("", "")
        if earlier is None and item.new.id in self._same:
            place, question = self._same[item.new.id][0], self._same[item.new.id][1].question
        if not place:
            return True
        self._doubles.append(Double(item.place, item.new.question, place, question, whole=True))
        if not self._replace:
            return False
        self._same.pop(item.new.id, None)
        self._drop(item.new.id)
        return True

    def _question_is_free(self, item: _Item) -> bool:
        form = stripped(item.new.question)
        others = [self._now[other] for other in sorted(self._others(form, item.new.id))]
        free = True
        for other in others:
            asks = stripped(other.question) == form
            fixed = asks and other.id not in self._items
            free = free and self._replace and not fixed
            self._double(item, item.new.question, other, whole=True, fixed=fixed)
        for other in others if free else ():
            if stripped(other.question) == form:
                self._drop(other.id)
            else:
                self._take(other, form, item.place)
        return free

    def _settle_aliases(self, item: _Item) -> None:
        own = stripped(item.new.question)
        kept: list[str] = []
        for alias in item.new.aliases:
            form = stripped(alias)
            others = [self._now[other] for other in sorted(self._others(form, item.new.id))] if form != own else []
            fixed = any(stripped(other.question) == form for other in others)
            for other in others:
                self._double(item, alias, other, whole=False, fixed=stripped(other.question) == form)
            if others and (fixed or not self._replace):
                continue
            for other in others:
                self._take(other, form, item.place)
            kept.append(alias)
        if len(kept) < len(item.new.aliases):
            item.new = item.new.model_copy(update={"aliases": tuple(kept)})

    def _double(self, item: _Item, wording: str, other: Entry, *, whole: bool, fixed: bool) -> None:
        row = self._items.get(other.id)
        place = row.place if row else self._same[other.id][0] if other.id in self._same else f"entry {other.id}"
        self._doubles.append(Double(item.place, wording, place, other.question, whole=whole, fixed=fixed))

    def _others(self, form: str, own: str) -> set[str]:
        return self._holders.get(form, set()) - {own} if form else set()

    def _hold(self, entry: Entry) -> None:
        self._release(entry.id)
        self._now[entry.id] = entry
        for form in _forms(entry):
            self._holders.setdefault(form, set()).add(entry.id)

    def _release(self, entry_id: str) -> None:
        if gone := self._now.pop(entry_id, None):
            for form in _forms(gone):
                self._holders[form].discard(entry_id)

    def _drop(self, entry_id: str) -> None:
        """Leave out an earlier row; the entry that it would have changed is again what it was."""
        item = self._items.pop(entry_id, None)
        self._release(entry_id)
        if item and item.old and item.old.live:
            self._hold(item.old)

    def _take(self, other: Entry, form: str, place: str) -> None:
        """The alias with this form from an earlier row or from an entry of the base."""
        aliases = tuple(alias for alias in other.aliases if stripped(alias) != form)
        less = other.model_copy(update={"aliases": aliases})
        if item := self._items.get(other.id):
            item.new = less
        else:
            self._items[other.id] = _Item(place, less, self._base[other.id])
            self._same.pop(other.id, None)
        self._hold(less)


def _forms(entry: Entry) -> set[str]:
    return {stripped(text) for text in (entry.question, *entry.aliases)} - {""}


def _like(old: Entry, new: Entry) -> bool:
    """The same but for where it came from."""
    return old == new.model_copy(update={"origin": old.origin})
