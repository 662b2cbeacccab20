"""Plans an import into the embedded knowledge base, and carries it out.

A row means the entry with its id, or else the live one with its question, ignoring politeness; otherwise it is new. A
field without a column in the file stays as it is. An entry keeps aliases that no row has, because people approved some
of them one by one and no file knows of those; ``drop_aliases`` drops them.

A wording must mean one entry only, or it is never sure: so a row whose question or alias another row or a live entry
already has is a double.

Two rows of a file with the same question and different answers are unclear: nobody can tell which is right, and a
customer would get one of them. Neither is imported until somebody has decided, in the file or by replacing doubles.

If doubles are skipped, the existing entry keeps the wording: a row is left out if it is its question, and loses an
alias if it is that. If they are replaced, the row takes the wording: an earlier row with the same question or id is
left out, and an alias is taken from the other. An entry of the base keeps its own question in both cases.

Only the part of the base that the rows refer to is read and split into words: four rows cost the same in a base of ten
thousand.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace

from agent_core.errors import InputRejected
from knowledge.embedded import EmbeddedKnowledge
from knowledge.entries import LONGEST_ANSWER, LONGEST_QUESTION, Entry, EntryFilter, Forms, Related, forms_of, make_entry
from knowledge.importing.drafts import Draft
from knowledge.importing.limits import CHAINED, Allowance
from knowledge.importing.messages import ImportMessage
from knowledge.importing.plan import Added, Double, EntryChange, ImportPlan, OnDouble, Refused, Unclear


async def plan_import(
    base: EmbeddedKnowledge, name: str, drafts: Sequence[Draft], *, drop_aliases: bool = False
) -> ImportPlan:
    """Return the import's result if doubles are skipped; nothing is written. ``drop_aliases``: see ``decide``."""
    forms = Forms()
    wanted = await asyncio.to_thread(wanted_by, drafts, forms)
    related = await base.related(wanted, forms)
    return await asyncio.to_thread(decide, name, drafts, related, "skip", forms, drop_aliases=drop_aliases)


async def carry_out(
    base: EmbeddedKnowledge,
    plan: ImportPlan,
    *,
    doubles: OnDouble = "skip",
    wrote: Callable[[int, int], None] | None = None,
) -> ImportPlan:
    """Write the plan, all or nothing. Returns the changes: with doubles replaced it changes more than ``plan`` shows.

    wrote: is called now and then with the number of entries written, and of all.

    Raises InputRejected if the base has changed since, so that the plan is out of date.
    """
    done = plan

    def change(now: Related) -> Sequence[Entry]:
        nonlocal done

        def decided(on_double: OnDouble) -> ImportPlan:
            return decide(plan.name, plan.drafts, now, on_double, plan.forms, drop_aliases=plan.drop_aliases)

        if now != plan.base and decided("skip") != plan:
            raise InputRejected(
                "The knowledge base has changed since this import was planned; nothing was written.",
                advice="Look at what it would change now, and confirm again.",
                key="base_changed",
            )
        if doubles == "replace":
            done = decided(doubles)
        return [*(added.entry for added in done.added), *(changed.new for changed in done.changed)]

    wanted = await asyncio.to_thread(wanted_by, plan.drafts, plan.forms)
    await base.revise(wanted, plan.forms, change, wrote=wrote)
    return done


def wanted_by(drafts: Sequence[Draft], forms: Forms) -> EntryFilter:
    """Return the part of a base that these rows refer to."""
    usable = [draft for draft in drafts if not draft.problem]
    texts = (text for draft in usable for text in (draft.question, *(draft.aliases or ())))
    # Longer ones are refused; one more character is enough to detect them.
    found = frozenset(forms[text[: LONGEST_QUESTION + 1]] for text in texts)
    return EntryFilter(frozenset(draft.id for draft in usable if draft.id), found - {""})


def decide(
    name: str,
    drafts: Sequence[Draft],
    base: Related,
    on_double: OnDouble,
    forms: Forms,
    *,
    drop_aliases: bool = False,
) -> ImportPlan:
    """Return the plan, for a base of which ``base`` is the part that the rows refer to.

    Takes seconds for thousands of rows. Raises InputRejected if rows rename each other in too long a chain.

    drop_aliases: an entry loses the aliases that its row does not have, if the file has a column for them.
    """
    return _Planner(name, base, on_double, forms, drop_aliases=drop_aliases).plan(drafts)


@dataclass(slots=True)
class _Item:
    """A row that adds an entry, or changes ``old``."""

    place: str
    new: Entry
    old: Entry | None = None
    by_question: bool = False
    kept: tuple[str, ...] = ()  # as in ``EntryChange``
    is_row: bool = True  # False: an entry that only loses an alias to the row at ``place``


class _Planner:
    """The planner of an import. It settles rows in the file's order, against the entries that no row changes and the
    rows before.

    A row that is left out brings back the entry which it would have changed; so everything is settled again without it,
    until every remaining row is taken.
    """

    def __init__(self, name: str, base: Related, on_double: OnDouble, forms: Forms, *, drop_aliases: bool) -> None:
        self._name = name
        self._drop_aliases = drop_aliases
        self._replace = on_double == "replace"
        self._forms = forms
        self._related = base
        self._base = {entry.id: entry for entry in base.entries}
        self._asked: dict[tuple[str, bool], list[Entry]] = {}  # by the question's form and whether it is live
        for entry in base.entries:
            self._asked.setdefault((self._forms[entry.question], entry.live), []).append(entry)
        self._ids = set(base.ids)
        self._unchanging: dict[str, tuple[str, Entry]] = {}  # by id: the row and its entry
        self._refused: list[Refused] = []
        self._out: set[str] = set()  # places of rows that are left out
        self._left_out: list[Double] = []  # the reasons
        self._begin()

    def _begin(self) -> None:
        self._same = dict(self._unchanging)
        self._items: dict[str, _Item] = {}  # rows that are taken, by id
        self._now: dict[str, Entry] = {}  # entries that are live after the import, by id
        self._holders: dict[str, set[str]] = {}  # by form: the ids in _now that it means
        self._doubles: list[Double] = []

    def plan(self, drafts: Sequence[Draft]) -> ImportPlan:
        self._ids |= {draft.id for draft in drafts if draft.id}
        items = [item for draft in drafts if (item := self._item(draft))]
        unclear = {} if self._replace else self._unclear(items)
        self._out |= unclear.keys()
        taken = Allowance(self._name)
        while True:
            before = len(self._out)
            left = [replace(item) for item in items if item.place not in self._out]
            taken.take(CHAINED, len(left) + len(self._base))
            self._settle_all(left)
            if len(self._out) == before:
                break
        order = {draft.place: number for number, draft in reversed(list(enumerate(drafts)))}
        kept = sorted(self._items.values(), key=lambda item: order[item.place])
        return ImportPlan(
            name=self._name,
            drafts=tuple(drafts),
            added=tuple(Added(item.place, item.new) for item in kept if item.old is None),
            changed=tuple(
                EntryChange(item.place, item.old, item.new, item.by_question, _both(item.kept, item.new.aliases))
                for item in kept
                if item.old
            ),
            same=tuple(entry for _, entry in self._same.values()),
            doubles=tuple(sorted((*self._left_out, *self._doubles), key=lambda double: order[double.place])),
            unclear=tuple(unclear.values()),
            rejected=tuple(self._refused),
            notes=tuple(dict.fromkeys(note for draft in drafts for note in draft.notes)),
            drop_aliases=self._drop_aliases,
            base=self._related,
            forms=self._forms,
        )

    def _unclear(self, items: Sequence[_Item]) -> dict[str, Unclear]:
        """Return the rows that another one contradicts, by their places. A row that changes nothing stays."""
        rows = [(item.place, item.new) for item in items]
        groups: dict[tuple[str, str], list[tuple[str, Entry]]] = {}
        for place, entry in (*self._unchanging.values(), *rows):
            if entry.live:  # two with the same question may wait, because people answered it differently
                groups.setdefault(("asks", self._forms[entry.question] or entry.question), []).append((place, entry))
                groups.setdefault(("id", entry.id), []).append((place, entry))
        others: dict[str, dict[str, None]] = {}
        for group in groups.values():
            answers = {entry.answer for _, entry in group}
            for place, entry in group if len(answers) > 1 else ():
                differing = [at for at, other in group if other.answer != entry.answer]
                others.setdefault(place, {}).update(dict.fromkeys(differing))
        return {
            place: Unclear(place, entry.question, entry.answer, tuple(others[place]))
            for place, entry in rows
            if place in others
        }

    def _settle_all(self, items: Sequence[_Item]) -> None:
        self._begin()
        touched = {item.old.id for item in items if item.old}
        for entry in self._base.values():
            if entry.live and entry.id not in touched:
                self._hold(entry)
        unchanged = (entry for _, entry in self._unchanging.values() if entry.id not in touched)
        written = [*unchanged, *(item.new for item in items)]
        claimed = {form for entry in written if entry.live for form in forms_of(entry, self._forms)}
        for item in items:
            if item.old and not self._drop_aliases:
                self._keep_aliases(item, item.old, claimed)
            self._settle(item)

    def _keep_aliases(self, item: _Item, old: Entry, claimed: Set[str]) -> None:
        """Give the row those aliases of its entry that no row has claimed, in the entry's order."""
        had = [alias for alias in old.aliases if alias in item.new.aliases or self._forms[alias] not in claimed]
        item.kept = tuple(alias for alias in had if alias not in item.new.aliases)
        new = [alias for alias in item.new.aliases if alias not in had]
        item.new = item.new.model_copy(update={"aliases": (*had, *new)})

    def _item(self, draft: Draft) -> _Item | None:
        """Return the effect of the row by itself; None if it is refused or changes nothing."""
        if draft.problem:
            self._refused.append(Refused(draft.place, draft.problem))
            return None
        try:
            old = self._old(draft)
            new = self._new(draft, old)
        except InputRejected as error:
            self._refused.append(Refused(draft.place, _reason(error)))
            return None
        if old and old == new and old.id not in self._unchanging:
            self._unchanging[old.id] = (draft.place, old)
            return None
        return _Item(draft.place, new, old, by_question=old is not None and old.id != draft.id)

    def _old(self, draft: Draft) -> Entry | None:
        if draft.id in self._base:
            return self._base[draft.id]
        form = self._forms[draft.question[: LONGEST_QUESTION + 1]]  # ``_new`` refuses a longer one
        found = self._asked.get((form, draft.live is not False), []) if form else []
        if draft.live is False:  # two with the same question may wait, because people answered it differently
            found = [entry for entry in found if entry.answer == draft.answer]
        if len(found) > 1:
            ids = ", ".join(entry.id for entry in found)
            raise InputRejected(ImportMessage("several", ids=ids))
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
        """Return an id that is the same for the same question in the same base, so that plans can be compared."""
        count = 0
        while True:
            found = hashlib.sha256(f"{self._forms[draft.question] or draft.question}\n{count}".encode()).hexdigest()[
                :12
            ]
            if found not in self._ids:
                self._ids.add(found)
                return found
            count += 1

    def _settle(self, item: _Item) -> None:
        """Take the row unless another has its id or question; leave out or take over its double aliases."""
        if not self._id_is_free(item) or (item.new.live and not self._question_is_free(item)):
            self._out.add(item.place)
            return
        if item.new.live:
            self._settle_aliases(item)
            self._hold(item.new)
        if item.old and item.old == item.new:
            self._same.setdefault(item.old.id, (item.place, item.old))
        else:
            self._items[item.new.id] = item

    def _id_is_free(self, item: _Item) -> bool:
        earlier = self._items.get(item.new.id)
        if earlier:
            self._left_out.append(self._double(item, item.new.question, earlier.new, whole=True))
            if self._replace:
                self._drop(earlier)
        elif item.new.id in self._same:
            _, entry = self._same[item.new.id]
            told = self._doubles if self._replace else self._left_out
            told.append(self._double(item, item.new.question, entry, whole=True))
            if self._replace:
                del self._same[item.new.id]
        else:
            return True
        return self._replace

    def _question_is_free(self, item: _Item) -> bool:
        form = self._forms[item.new.question]
        others = [self._now[other] for other in sorted(self._others(form, item.new.id))]
        asking = [other for other in others if self._forms[other.question] == form]
        fixed = any(self._row_of(other) is None for other in asking)
        free = not others or (self._replace and not fixed)
        for other in others:
            stays = other in asking and self._row_of(other) is None
            told = self._doubles if free and other not in asking else self._left_out
            told.append(self._double(item, item.new.question, other, whole=True, fixed=stays))
        for other in others if free else ():
            row = self._row_of(other)
            if row and other in asking:
                self._drop(row)
            else:
                self._take(other, form, item.place)
        return free

    def _settle_aliases(self, item: _Item) -> None:
        own = self._forms[item.new.question]
        kept: list[str] = []
        for alias in item.new.aliases:
            form = self._forms[alias]
            others = [self._now[other] for other in sorted(self._others(form, item.new.id))] if form != own else []
            fixed = any(self._forms[other.question] == form for other in others)
            for other in others:
                asks = self._forms[other.question] == form
                self._doubles.append(self._double(item, alias, other, whole=False, fixed=asks))
            if others and (fixed or not self._replace):
                continue
            for other in others:
                self._take(other, form, item.place)
            kept.append(alias)
        if len(kept) < len(item.new.aliases):
            item.new = item.new.model_copy(update={"aliases": tuple(kept)})

    def _double(self, item: _Item, wording: str, other: Entry, *, whole: bool, fixed: bool = False) -> Double:
        row = self._row_of(other)
        in_base = row is None and other.id not in self._same
        place = row.place if row else f"entry {other.id}" if in_base else self._same[other.id][0]
        answers = item.new.answer, other.answer
        return Double(item.place, wording, answers[0], place, other.question, answers[1], whole, fixed, in_base)

    def _row_of(self, entry: Entry) -> _Item | None:
        """Return the row of an entry; None for one of the base."""
        item = self._items.get(entry.id)
        return item if item and item.is_row else None

    def _others(self, form: str, own: str) -> set[str]:
        return self._holders.get(form, set()) - {own} if form else set()

    def _hold(self, entry: Entry) -> None:
        self._release(entry.id)
        self._now[entry.id] = entry
        for form in forms_of(entry, self._forms):
            self._holders.setdefault(form, set()).add(entry.id)

    def _release(self, entry_id: str) -> None:
        if gone := self._now.pop(entry_id, None):
            for form in forms_of(gone, self._forms):
                self._holders[form].discard(entry_id)

    def _drop(self, earlier: _Item) -> None:
        """Leave out an earlier row."""
        self._out.add(earlier.place)
        del self._items[earlier.new.id]
        self._release(earlier.new.id)

    def _take(self, other: Entry, form: str, place: str) -> None:
        """Take the alias with this form from an earlier row or from an entry of the base."""
        aliases = tuple(alias for alias in other.aliases if self._forms[alias] != form)
        less = other.model_copy(update={"aliases": aliases})
        if item := self._items.get(other.id):
            item.new = less
        else:
            self._items[other.id] = _Item(place, less, self._base[other.id], is_row=False)
            self._same.pop(other.id, None)
        self._hold(less)


def _both(some: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    return tuple(one for one in some if one in others)


def _reason(error: InputRejected) -> str:
    """Return why a row is not an entry, in words that can be given in the person's language."""
    if isinstance(error.message, ImportMessage):
        return error.message
    why = error.message.removeprefix("This is no entry: ").rstrip(".")
    return ImportMessage("no_entry", question=LONGEST_QUESTION, answer=LONGEST_ANSWER, why=why)
