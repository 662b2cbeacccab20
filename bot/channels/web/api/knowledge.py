"""The shop's own knowledge entries over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import AliasPath, Base64Bytes, Field

from bot.channels.chat.kb_cards import import_card
from bot.channels.chat.texts import texts
from bot.channels.web.api.operations import ApiCall, Line, Lines, Operations, Shown, Text, Wish
from bot.desk.actors import Role
from bot.desk.knowledge_views import EntryText, ImportView, KnowledgeFile

operations = Operations("knowledge")


class ApiEntry(Shown):
    """A question and its answer, word for word. ``live``: approved; others are never sent."""

    id: str
    question: str
    answer: str
    aliases: list[str]
    tags: list[str]
    live: bool
    origin: str
    alias_of: str
    created_at: datetime
    updated_at: datetime


class ApiEntries(Shown):
    items: list[ApiEntry]


class ApiFoundEntry(Shown):
    """``score``: the share of the query's words in the entry, 0–1."""

    entry: ApiEntry
    score: float


class ApiFoundEntries(Shown):
    items: list[ApiFoundEntry]


class ApiSearchQuery(Wish):
    words: Annotated[Line, Field(min_length=1)]


class ApiNewEntry(Wish):
    question: Annotated[Text, Field(min_length=1)]
    answer: Annotated[Text, Field(min_length=1)]
    aliases: Lines = []
    tags: Lines = []


class ApiEntryChange(Wish):
    """What is left out stays as it is."""

    question: Annotated[Text, Field(min_length=1)] | None = None
    answer: Annotated[Text, Field(min_length=1)] | None = None
    aliases: Lines | None = None
    tags: Lines | None = None


class ApiNewImport(Wish):
    """A table of questions and answers: .csv, .xlsx, .jsonl, .json, .md, .docx or .zip.

    content: the file in base64. mark: of the plan that was shown; "" to see the plan, and change nothing.
    replace_doubles: a row takes a wording that something else has, too.
    """

    name: Annotated[Line, Field(min_length=1)]
    content: Annotated[Base64Bytes, Field(min_length=1, max_length=2_000_000)]
    mark: Line = ""
    replace_doubles: bool = False


class ApiImported(Shown):
    """What an import would do, or did (``done``). ``summary``: all of it in words, a line each."""

    done: bool
    mark: str
    added: int
    changed: int
    same: int
    doubles: int
    unclear: int
    refused: int
    summary: list[str]


class ApiKnowledgeFigures(Shown):
    """``used``: the shop's own entries are among the knowledge bases that answer customers (``provider``)."""

    live: int = Field(validation_alias=AliasPath("entries", "live"))
    pending: int = Field(validation_alias=AliasPath("entries", "pending"))
    provider: str
    used: bool


@operations.get("/knowledge")
async def get_knowledge(call: ApiCall) -> ApiKnowledgeFigures:
    """Show how many entries there are, and whether they answer customers."""
    return ApiKnowledgeFigures.of(await call.desk.kb.stats(call.actor))


@operations.get("/knowledge/search")
async def search_knowledge(call: ApiCall, query: ApiSearchQuery) -> ApiFoundEntries:
    """Find the entries that fit these words, best first."""
    found = await call.desk.kb.search(call.actor, query.words)
    return ApiFoundEntries(items=[ApiFoundEntry.of(each) for each in found])


@operations.get("/knowledge/pending", Role.OPERATOR)
async def list_pending(call: ApiCall) -> ApiEntries:
    """List the entries that wait for approval, the oldest first."""
    return ApiEntries(items=[ApiEntry.of(each) for each in await call.desk.kb.pending(call.actor)])


@operations.post("/knowledge/entries", Role.OPERATOR, status=201, once=True)
async def add_entry(call: ApiCall, body: ApiNewEntry) -> ApiEntry:
    """Add an entry. An owner's is live; an operator's waits for approval."""
    text = EntryText(body.question, body.answer, tuple(body.aliases), tuple(body.tags))
    return ApiEntry.of(await call.desk.kb.add(call.actor, text, key=call.key))


@operations.get("/knowledge/entries/{entry_id}")
async def get_entry(call: ApiCall, entry_id: str) -> ApiEntry:
    """Show an entry."""
    return ApiEntry.of(await call.desk.kb.entry(call.actor, entry_id))


@operations.patch("/knowledge/entries/{entry_id}", Role.OPERATOR)
async def change_entry(call: ApiCall, entry_id: str, body: ApiEntryChange) -> ApiEntry:
    """Change an entry. Only an owner may change a live one."""
    aliases = None if body.aliases is None else tuple(body.aliases)
    tags = None if body.tags is None else tuple(body.tags)
    return ApiEntry.of(
        await call.desk.kb.edit(call.actor, entry_id, EntryText(body.question, body.answer, aliases, tags))
    )


@operations.delete("/knowledge/entries/{entry_id}", Role.OWNER)
async def delete_entry(call: ApiCall, entry_id: str) -> ApiEntry:
    """Delete an entry."""
    return ApiEntry.of(await call.desk.kb.delete(call.actor, entry_id))


@operations.post("/knowledge/entries/{entry_id}/approve", Role.OWNER)
async def approve_entry(call: ApiCall, entry_id: str) -> ApiEntry:
    """Make a waiting entry live."""
    return ApiEntry.of(await call.desk.kb.approve(call.actor, entry_id))


@operations.post("/knowledge/entries/{entry_id}/reject", Role.OPERATOR)
async def reject_entry(call: ApiCall, entry_id: str) -> ApiEntry:
    """Delete a waiting entry."""
    return ApiEntry.of(await call.desk.kb.reject(call.actor, entry_id))


@operations.post("/knowledge/entries/{entry_id}/undo", Role.OPERATOR)
async def undo_entry(call: ApiCall, entry_id: str) -> ApiEntry:
    """Take back one's own newest change, if it was of this entry."""
    return ApiEntry.of(await call.desk.kb.undo(call.actor, entry_id))


@operations.post("/knowledge/import", Role.OWNER)
async def import_knowledge(call: ApiCall, body: ApiNewImport) -> ApiImported:
    """Show what the import of a file would do, or carry out what was shown.

    If the base has changed since, nothing is done, and the answer is the new plan.
    """
    files = [KnowledgeFile(body.name.replace("\\", "/").rpartition("/")[2], body.content)]
    if not body.mark:
        return _imported(call, await call.desk.kb.plan_import(call.actor, files))
    done = await call.desk.kb.carry_out(call.actor, files, mark=body.mark, replace_doubles=body.replace_doubles)
    return _imported(call, done)


def _imported(call: ApiCall, view: ImportView) -> ApiImported:
    plan, card = view.plan, import_card(view, texts(call.actor.lang))
    return ApiImported(
        done=view.done,
        mark=view.mark,
        added=len(plan.added),
        changed=len(plan.changed),
        same=len(plan.same),
        doubles=len(plan.doubles),
        unclear=len(plan.unclear),
        refused=len(plan.rejected),
        summary=[card.title, *(f"{line.label}\n{line.text}" if line.label else line.text for line in card.lines)],
    )
