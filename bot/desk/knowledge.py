"""The shop's own knowledge entries: search, edit, approve, import and export, each with the actor's rights.

The old state of an entry is kept in the audit log beside the command that changed it. That is where ``undo`` takes it
from, so it works after a restart and from another channel, for as long as the log is kept.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

from agent_core.errors import ConfigMissing
from bot.desk.actors import Actor, BadRequest, DoubleEntry, NotFound, Role, not_one_of, nothing_to_undo
from bot.desk.context import DeskService
from bot.desk.knowledge_views import EntryText, ImportStep, ImportView, KnowledgeFile, KnowledgeStats, Tell
from knowledge.embedded import EmbeddedKnowledge
from knowledge.entries import Entry, Found, make_entry
from knowledge.exporting import Form, write_table
from knowledge.importing.drafts import Draft, split
from knowledge.importing.plan import ImportPlan, OnDouble
from knowledge.importing.planner import carry_out, plan_import
from knowledge.importing.read import read_table

FORMS: tuple[str, ...] = get_args(Form)
MOST_FOUND = 50
MOST_LISTED = 8  # in an error
EDIT, DELETE, APPROVE, REJECT, UNDO = "kb edit", "kb delete", "kb approve", "kb reject", "kb undo"


class DeskKnowledge(DeskService):
    """The service for the shop's own entries. An id may have a number sign, and its beginning is enough.

    Raises NotFound if there is no such entry, and BadRequest if several ids begin like this.

    A viewer searches; an operator adds (waiting for approval), edits and rejects what waits; an owner also approves,
    edits what is live, deletes, imports and exports.
    """

    @property
    def _store(self) -> EmbeddedKnowledge:
        if self.context.store is None:
            raise ConfigMissing("There is no knowledge store here.", advice="Run phonedesk serve.", key="no_store")
        return self.context.store

    # Looking ----------------------------------------------------------------------------------------------------------

    async def search(self, actor: Actor, words: str, *, skip: int = 0) -> Sequence[Found]:
        """Return the entries that fit, best first; for a viewer only the live ones.

        "" returns the latest changes, ``MOST_FOUND`` of them after the first ``skip``.
        """
        await self._allow(actor, Role.VIEWER, "kb search", words=words)
        live = True if actor.role is Role.VIEWER else None
        return await self._store.search(words, limit=MOST_FOUND, skip=skip, live=live)

    async def entry(self, actor: Actor, entry_id: str) -> Entry:
        """Return one entry. Only operators may see one that waits for approval."""
        entry_id = await self._meant(actor, entry_id)
        entry = await self._store.get(_id(entry_id))
        waits = entry is not None and not entry.live
        await self._allow(actor, Role.OPERATOR if waits else Role.VIEWER, "kb show", entry=_id(entry_id))
        return self._local(_there(entry, entry_id))

    async def means(self, actor: Actor, question: str) -> Entry | None:
        """Return the entry for exactly these words: a live one, else a waiting one for operators, else None."""
        await self._allow(actor, Role.VIEWER, "kb search", words=question)
        entry = await self.context.store.means(question) if self.context.store is not None else None
        shown = entry is not None and (entry.live or actor.role.covers(Role.OPERATOR))
        return self._local(entry) if shown and entry is not None else None

    async def pending(self, actor: Actor) -> Sequence[Entry]:
        """Return the entries that wait for approval, the oldest first."""
        await self._allow(actor, Role.OPERATOR, "kb pending")
        return [self._local(entry) for entry in await self._store.pending()]

    async def meanings(self, entries: Iterable[Entry]) -> Mapping[str, str]:
        """Return the questions of the entries that these are other wordings of, by id. Checks no rights."""
        found = [await self._store.get(meant) for meant in sorted({entry.alias_of for entry in entries} - {""})]
        return {entry.id: entry.question for entry in found if entry is not None}

    async def stats(self, actor: Actor) -> KnowledgeStats:
        """Return how many entries there are, and whether they answer customers."""
        await self._allow(actor, Role.VIEWER, "kb stats")
        found = await self._store.stats()
        newest = found.newest.astimezone(self._zone) if found.newest is not None else None
        return KnowledgeStats(replace(found, newest=newest), self.context.provider, self.context.uses_entries)

    # Keeping ----------------------------------------------------------------------------------------------------------

    async def add(self, actor: Actor, text: EntryText, *, key: str = "") -> Entry:
        """Add an entry, and return it: an owner's is live, an operator's waits for approval.

        key: the request's name, see ``Desk``.
        Raises DoubleEntry if there is an entry for this question.
        """
        await self._allow(actor, Role.OPERATOR, "kb add", question=text.question or "")
        fields: dict[str, Any] = {"id": hashlib.blake2b(key.encode(), digest_size=6).hexdigest()} if key else {}
        entry = make_entry(
            **fields,
            question=text.question or "",
            answer=text.answer or "",
            aliases=(*(text.aliases or ()), *text.added),
            tags=text.tags or (),
            live=actor.role is Role.OWNER,
            origin=f"{actor.channel}:{actor.name}" if actor.channel != actor.name else actor.channel,
        )
        if key and (known := await self._store.get(entry.id)) is not None:
            return self._local(known)  # asked again
        return self._local(await self._store.add(entry, refuse=_refuse))

    def _local(self, entry: Entry) -> Entry:
        """Return the entry with its date in the owner's time zone."""
        return entry.model_copy(update={"created_at": entry.created_at.astimezone(self._zone)})

    async def _meant(self, actor: Actor, written: str) -> str:
        """Return the whole id of the entry whose id begins like this, or ``written`` itself if there is none."""
        found = await self._store.begins(_id(written))
        if len(found) > 1:
            await self._allow(actor, Role.VIEWER, "kb show", entry=_id(written))
            said = f"Several entries begin with {_id(written)}."
            raise BadRequest(said, advice="Write more of the id.", key="several_entries", id=_id(written))
        return found[0].id if found else _id(written)

    async def named(self, actor: Actor, written: str) -> str:
        """Return the id of the entry that is meant: by its id, by its beginning, or by words of its question.

        Returns the text itself if there is no such entry. Raises BadRequest if several have these words.
        """
        entry_id = await self._meant(actor, written)
        if await self._store.get(entry_id) is not None:
            return entry_id
        if (exact := await self.means(actor, written)) is not None:
            return exact.id
        words = written.strip().casefold()
        entries = [found.entry for found in await self.search(actor, written)] if words else []
        found = [one for one in entries if any(words in asked.casefold() for asked in (one.question, *one.aliases))]
        if len(found) > 1:
            shown = [f"{one.id} {' '.join(one.question.split())}" for one in found[:MOST_LISTED]]
            raise BadRequest(
                f"Several entries have the words {written!r}.",
                advice="Write the id of the one that is meant: " + "; ".join(shown),
                key="several_named",
                said=written.strip(),
                entries="\n".join([*shown, *(["…"] if len(found) > MOST_LISTED else [])]),
            )
        return found[0].id if found else entry_id

    async def edit(self, actor: Actor, entry_id: str, text: EntryText) -> Entry:
        """Change the fields that are not None, and return the entry.

        Raises BadRequest if an alias to remove does not exist, and DoubleEntry if another entry has the new question.
        """
        entry_id = await self._meant(actor, entry_id)
        old = await self._store.get(_id(entry_id))
        fields = {name: getattr(text, name) for name in ("question", "answer", "tags")}
        changes = {name: value for name, value in fields.items() if value is not None}
        if text.aliases is not None or text.added or text.removed:
            changes["aliases"] = _aliases(_there(old, entry_id), text)
        least = Role.OPERATOR if old is not None and not old.live else Role.OWNER
        new = _changed(old, changes) if old is not None else None
        if new is not None and actor.role.covers(least):
            # Checked before the old state is stored, because a refused edit must not be offered to undo. The write
            # checks again.
            known = {other.id for other in await self._store.doubles(_there(old, entry_id))}
            _refuse([other for other in await self._store.doubles(new) if other.id not in known])
        await self._change(actor, least, EDIT, entry_id, old, new)
        return self._local(await self._store.edit(_there(old, entry_id).id, **changes, refuse=_refuse))

    async def delete(self, actor: Actor, entry_id: str) -> Entry:
        """Delete an entry, and return it."""
        entry_id = await self._meant(actor, entry_id)
        entry = await self._store.get(_id(entry_id))
        await self._change(actor, Role.OWNER, DELETE, entry_id, entry, None)
        await self._store.delete(_there(entry, entry_id).id)
        return self._local(_there(entry, entry_id))

    async def approve(self, actor: Actor, entry_id: str) -> Entry:
        """Make a waiting entry live, and return it. Another wording of a live entry is added to that one.

        Raises BadRequest if somebody has decided on it before, and DoubleEntry if another entry answers this.
        """
        entry_id = await self._meant(actor, entry_id)
        # Owners only: an operator may propose a waiting entry or edit it, but not make it an answer to customers.
        entry = await self._store.get(_id(entry_id))
        decides = entry is not None and not entry.live
        await self._allow(actor, Role.OWNER, APPROVE, entry=_id(entry_id), decides=decides)
        if entry is None:
            await self._tell_decided(entry_id)
        return self._local(await self._store.approve(_there(entry, entry_id).id, refuse=_refuse))

    async def reject(self, actor: Actor, entry_id: str) -> Entry:
        """Delete a waiting entry, and return it. Raises BadRequest if it is live or was decided on before."""
        entry_id = await self._meant(actor, entry_id)
        entry = await self._store.get(_id(entry_id))
        waits = entry if entry is not None and not entry.live else None
        await self._change(actor, Role.OPERATOR, REJECT, entry_id, waits, None)
        if waits is None:
            await self._tell_decided(entry_id)
        if waits is None and entry is not None:
            said, advice = f"The entry {entry.id} is live already.", "Delete or edit it where it is wrong."
            raise BadRequest(said, advice=advice, key="entry_live", id=entry.id)
        await self._store.reject(_there(waits, entry_id).id)
        return self._local(_there(waits, entry_id))

    async def _tell_decided(self, entry_id: str) -> None:
        """Raise BadRequest if somebody has approved or rejected the entry already."""
        rows = await self._audit.of_entry(_id(entry_id), [APPROVE, REJECT, DELETE])
        row = next((row for row in rows if row.detail.get("before") or row.detail.get("decides")), None)
        if row is None or row.command == DELETE:
            return
        person = await self._person_of(row.actor)
        name = person.name if person is not None else row.actor
        done = "approved" if row.command == APPROVE else "rejected"
        said = f"The entry {_id(entry_id)} was {done} by {name} before."
        raise BadRequest(said, key=f"entry_{done}", id=_id(entry_id), by=name)

    async def undo(self, actor: Actor, entry_id: str) -> Entry:
        """Undo this person's newest edit, deletion or rejection, and return the entry.

        Raises BadRequest if that was of another entry, or if the entry was changed since.
        """
        wanted = _id(entry_id)
        rows = await self._audit.done_by(actor.id, [EDIT, DELETE, REJECT, UNDO])
        row = next((row for row in rows if row.command == UNDO or row.detail.get("before")), None)
        if row is None or row.command == UNDO or row.detail.get("entry") != wanted:
            raise nothing_to_undo()
        before = Entry.model_validate(row.detail["before"])
        now = await self._store.get(wanted)
        if _content(now) != row.detail.get("after"):
            advice = "Look at it before you change it again."
            raise BadRequest(f"The entry {wanted} was changed since.", advice=advice, key="entry_changed", id=wanted)
        if before.live:  # checked before the log has the undo; the write checks again
            known = {other.id for other in await self._store.doubles(now)} if now is not None else set()
            _refuse([other for other in await self._store.doubles(before) if other.id not in known])
        await self._allow(actor, Role.OPERATOR if not before.live else Role.OWNER, UNDO, entry=wanted)
        # A waiting entry may double another one: that is checked when it is approved.
        return self._local(await self._store.add(before, refuse=_refuse if before.live else None))

    async def _change(
        self, actor: Actor, least: Role, command: str, entry_id: str, old: Entry | None, new: Entry | None
    ) -> None:
        """Check the right, and store the entry's old state in the audit log if it changes."""
        detail: dict[str, Any] = {"entry": _id(entry_id)}
        if old is not None and old != new and actor.role.covers(least):
            detail |= {"before": old.model_dump(mode="json"), "after": _content(new)}
        await self._allow(actor, least, command, **detail)

    # Files ------------------------------------------------------------------------------------------------------------

    async def allow_import(self, actor: Actor) -> None:
        """Raise AccessDenied for people who may not import. Called before a file is fetched."""
        await self._allow(actor, Role.OWNER, "kb import")

    async def plan_import(
        self,
        actor: Actor,
        files: Sequence[KnowledgeFile],
        *,
        drop_aliases: bool = False,
        tell: Tell | None = None,
    ) -> ImportView:
        """Return the entries that an import would add and change, its doubles and its refused rows. Writes nothing.

        drop_aliases: entries lose the aliases that their rows do not have.
        tell: called with the progress.
        """
        await self._allow(actor, Role.OWNER, "kb import", files=[file.name for file in files], planned=True)
        plan, mark = await self._planned(files, tell or _silent, drop_aliases=drop_aliases)
        return ImportView(plan, mark)

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
        """Import the files, and return the changes.

        mark: of the plan that was shown. If the plan has changed since, nothing is done and the new one is returned.
        replace_doubles: a row that doubles an entry replaces it, instead of being skipped.
        """
        names = [file.name for file in files]
        asked: dict[str, Any] = {"files": names, "replace_doubles": replace_doubles, "drop_aliases": drop_aliases}
        await self._allow(actor, Role.OWNER, "kb import", **asked)
        tell = tell or _silent
        plan, found = await self._planned(files, tell, drop_aliases=drop_aliases)
        if mark and mark != found:
            return ImportView(plan, found)
        doubles: OnDouble = "replace" if replace_doubles else "skip"
        done = await carry_out(
            self._store, plan, doubles=doubles, wrote=lambda count, total: tell(ImportStep("write", count, total))
        )
        return ImportView(done, found, done=True)

    async def _planned(
        self, files: Sequence[KnowledgeFile], tell: Tell, *, drop_aliases: bool
    ) -> tuple[ImportPlan, str]:
        """Plan all files as one import, so that doubles between them are seen. Return the plan and its mark."""
        drafts: list[Draft] = []
        for number, file in enumerate(files):
            tell(ImportStep("read", number, len(files)))
            drafts += await asyncio.to_thread(read_table, file.name, file.data)
        tell(ImportStep("compare", 0, len(drafts)))
        names = ", ".join(file.name for file in files)
        plan = await plan_import(self._store, names, drafts, drop_aliases=drop_aliases)
        return plan, await asyncio.to_thread(_mark, plan)

    async def export(self, actor: Actor, form: str) -> KnowledgeFile:
        """Return all entries as a file. Raises BadRequest if there is no such form."""
        form = form.strip().lower().lstrip(".")
        await self._allow(actor, Role.OWNER, "kb export", form=form)
        if form not in FORMS:
            raise not_one_of(f"There is no export as {form or 'nothing'}.", form, FORMS)
        entries = await self._store.list()
        data = await asyncio.to_thread(write_table, entries, form)  # type: ignore[arg-type]  # one of Form, see above
        return KnowledgeFile(f"knowledge-{self._db.now():%Y%m%d-%H%M}.{form}", data)


def _silent(_: ImportStep) -> None:
    """Ignore the progress of an import."""


def _refuse(doubles: Sequence[Entry]) -> None:
    """Raise DoubleEntry if there are doubles: if two entries answer a question, no record is sure for it."""
    for other in doubles:
        raise DoubleEntry(
            f"The entry #{other.id} answers this already: {other.question}",
            advice=f"Change that one: /kb edit {other.id}",
            key="entry_there",
            id=other.id,
            question=other.question,
        )


def _id(written: str) -> str:
    return written.strip().lstrip("#")


def _there(entry: Entry | None, entry_id: str) -> Entry:
    if entry is None:
        advice = "Search for it: it may have been deleted."
        raise NotFound(f"There is no entry {_id(entry_id)}.", advice=advice, key="no_entry", id=_id(entry_id))
    return entry


def _aliases(old: Entry, text: EntryText) -> tuple[str, ...]:
    """Return the aliases that ``text`` leaves the entry with."""
    aliases = old.aliases if text.aliases is None else text.aliases
    gone: set[str] = set()
    for written in text.removed:
        # An imported alias may contain a separator: it can still be named as a whole.
        gone |= {written.strip()} if written.strip() in aliases else set(split(written, commas=False))
    for alias in sorted(gone):
        if alias not in aliases:
            raise BadRequest(
                f"The entry #{old.id} has no alias “{alias}”.",
                advice=f"See what it has: /kb search {old.question}",
                key="no_such_alias",
                id=old.id,
                alias=alias,
                question=old.question,
            )
    return tuple(dict.fromkeys((*(alias for alias in aliases if alias not in gone), *text.added)))


def _changed(old: Entry, changes: Mapping[str, Any]) -> Entry:
    """Return the entry as the store will have it: a waiting wording that gets its own answer becomes its own entry."""
    new = make_entry(**{**{name: getattr(old, name) for name in Entry.model_fields}, **changes})
    return new.model_copy(update={"alias_of": ""}) if new.answer != old.answer else new


def _content(entry: Entry | None) -> Mapping[str, Any] | None:
    """Return all fields but the times, in the form in which the audit log stores them."""
    return None if entry is None else entry.model_dump(mode="json", exclude={"created_at", "updated_at"})


def _mark(plan: ImportPlan) -> str:
    """Return a hash that is equal for plans that do the same. New entries' ids differ each time and are left out."""
    told = {
        "added": [(added.place, _new(added.entry)) for added in plan.added],
        "changed": [(change.place, _content(change.old), _content(change.new)) for change in plan.changed],
        "doubles": [(double.place, double.wording, double.other_place, double.other) for double in plan.doubles],
        "unclear": [(one.place, one.question, one.answer, one.other_places) for one in plan.unclear],
        "refused": [(refused.place, refused.reason) for refused in plan.rejected],
    }
    return hashlib.blake2b(json.dumps(told, ensure_ascii=False).encode(), digest_size=6).hexdigest()


def _new(entry: Entry) -> Mapping[str, Any]:
    return entry.model_dump(mode="json", exclude={"id", "created_at", "updated_at"})
