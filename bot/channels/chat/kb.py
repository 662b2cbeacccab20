"""``/kb``: the shop's own knowledge entries in the chat."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import get_args

import structlog

from agent_core.errors import InputRejected, PhonedeskError
from bot.channels.chat import commands, kb_cards, kb_reading
from bot.channels.chat.cards import Card, Document, Line
from bot.channels.chat.commands import Command
from bot.channels.chat.turn import Attached, Outgoing, Said, Subject, Turn
from bot.desk.actors import AccessDenied, BadRequest, NotFound, Role, role_denied
from bot.desk.knowledge_views import ImportStep, ImportView, KnowledgeFile, Tell
from knowledge.entries import Entry
from knowledge.exporting import Form
from knowledge.importing.limits import BYTES

log = structlog.get_logger(__name__)

MOST_BYTES_OUT = 20_000_000  # of an export
LONG_IMPORT = 1000  # rows; about a second
SHOWN_EVERY = 3.0  # seconds between edits of the progress message; that is allowed in groups, too
FORMS: tuple[str, ...] = get_args(Form)


async def kb(turn: Turn) -> Said:
    """Handle ``/kb``."""
    verb, rest = kb_reading.read_verb(turn.rest)
    if verb not in _OF_AN_ENTRY:
        return await _VERBS[verb](replace(turn, rest=rest))
    if entry_id := kb_reading.read_id(rest):
        return await _OF_AN_ENTRY[verb](turn, entry_id)
    return turn.tell(turn.texts.get("kb.how_id", verb=turn.texts.get(f"kb.verb_{verb}")))


async def button(turn: Turn, value: str) -> Said:
    """Handle a button of a knowledge card."""
    verb, _, rest = value.partition(":")
    handler = _BUTTONS.get(verb)
    return await handler(turn, rest) if handler else Said(toast=turn.texts.get("kb.lost"), alert=True)


# Looking --------------------------------------------------------------------------------------------------------------


async def _overview(turn: Turn) -> Said:
    return turn.say(kb_cards.overview_card(await turn.desk.kb.stats(turn.actor), turn.texts, turn.actor))


async def _stats(turn: Turn) -> Said:
    lines = kb_cards.stats_lines(await turn.desk.kb.stats(turn.actor), turn.texts)
    return turn.say(Card(turn.texts.get("kb.title"), lines))


async def _search(turn: Turn) -> Said:
    words = commands.unquoted(turn.rest)
    return turn.say(kb_cards.found_card(await turn.desk.kb.search(turn.actor, words), words, turn.texts))


async def _found_page(turn: Turn, page: str) -> Said:
    """Show another page of a search. The words are read again from the message that the list replies to."""
    asked = commands.parse(turn.incoming.subject)
    if not isinstance(asked, Command) or not page.isdecimal():
        return Said(toast=turn.texts.get("kb.lost"), alert=True)
    words = commands.unquoted(kb_reading.read_verb(asked.rest)[1])
    found = await turn.desk.kb.search(turn.actor, words)
    return turn.change(kb_cards.found_card(found, words, turn.texts, page=int(page)))


async def _shown(turn: Turn, entry_id: str) -> Said:
    return turn.say(await _card_of(turn, await turn.desk.kb.entry(turn.actor, entry_id)))


async def _card_of(turn: Turn, entry: Entry, title: str = "", before: Entry | None = None) -> Card:
    of = (await turn.desk.kb.meanings([entry])).get(entry.alias_of, "")
    return kb_cards.entry_card(entry, turn.texts, turn.actor, title=title, of=of, before=before)


# Keeping --------------------------------------------------------------------------------------------------------------


async def _add(turn: Turn) -> Said:
    text = kb_reading.read_entry(turn.rest)
    if text is None:
        return turn.tell(turn.texts.get("kb.how_add"), turn.texts.get("kb.how_add_lines"))
    entry = await turn.desk.kb.add(turn.actor, text, key=turn.incoming.key)
    title = turn.texts.get("kb.added" if entry.live else "kb.added_pending", id=entry.id)
    return turn.say(await _card_of(turn, entry, title))


async def _edit(turn: Turn) -> Said:
    meant, rest = kb_reading.read_meant(turn.rest)
    if not meant:
        return turn.tell(turn.texts.get("kb.how_edit"))
    entry_id = await turn.desk.kb.named(turn.actor, meant)
    text = kb_reading.read_fields(rest)
    if text is None:
        try:
            return await _shown(turn, entry_id)
        except NotFound:
            if len(meant.split()) == 1:
                raise
            return turn.tell(turn.texts.get("kb.how_edit"))  # the fields have no name
    before = await turn.desk.kb.entry(turn.actor, entry_id)
    entry = await turn.desk.kb.edit(turn.actor, entry_id, text)
    card = await _card_of(turn, entry, turn.texts.get("kb.edited", id=entry.id), before)
    return turn.say(replace(card, buttons=(*card.buttons, *kb_cards.undo_button(entry.id, turn.texts))))


async def _ask_to_delete(turn: Turn, entry_id: str) -> Said:
    if turn.actor.role is not Role.OWNER:
        raise role_denied(turn.actor, Role.OWNER)
    return turn.say(kb_cards.delete_card(await turn.desk.kb.entry(turn.actor, entry_id), turn.texts))


async def _deleted(turn: Turn, entry_id: str) -> Said:
    entry = await turn.desk.kb.delete(turn.actor, entry_id)
    said = turn.texts.get("kb.deleted", id=entry.id)
    lines = kb_cards.entry_lines(entry, turn.texts)
    return turn.change(Card(said, lines, None, kb_cards.undo_button(entry.id, turn.texts)), toast=said)


async def _undone(turn: Turn, entry_id: str) -> Said:
    entry = await turn.desk.kb.undo(turn.actor, entry_id)
    said = turn.texts.get("kb.undone", id=entry.id)
    return turn.change(await _card_of(turn, entry, said), toast=said)


async def _cancelled(turn: Turn, _: str) -> Said:
    said = turn.texts.get("kb.cancelled")
    return turn.change(Card(said), toast=said)


# Waiting entries ------------------------------------------------------------------------------------------------------


async def _pending(turn: Turn) -> Said:
    return turn.say(await _pending_again(turn, ""))


async def _pending_page(turn: Turn, page: str) -> Said:
    return turn.change(await _pending_again(turn, page))


async def _pending_again(turn: Turn, page: str) -> Card:
    entries = await turn.desk.kb.pending(turn.actor)
    meanings, at = await turn.desk.kb.meanings(entries), int(page) if page.isdecimal() else 0
    return kb_cards.pending_card(entries, meanings, turn.texts, page=at, owner=turn.actor.role is Role.OWNER)


async def _approve(turn: Turn, entry_id: str) -> Said:
    entry = await turn.desk.kb.approve(turn.actor, entry_id)
    return turn.say(Card(turn.texts.get("kb.approved", id=entry.id), kb_cards.entry_lines(entry, turn.texts)))


async def _approve_button(turn: Turn, value: str) -> Said:
    page, _, entry_id = value.partition(":")
    entry = await turn.desk.kb.approve(turn.actor, entry_id)
    return turn.change(await _pending_again(turn, page), toast=turn.texts.get("kb.approved", id=entry.id))


async def _reject(turn: Turn, entry_id: str) -> Said:
    entry = await turn.desk.kb.reject(turn.actor, entry_id)
    card = Card(turn.texts.get("kb.rejected", id=entry.id), kb_cards.entry_lines(entry, turn.texts))
    return turn.say(replace(card, buttons=kb_cards.undo_button(entry.id, turn.texts)))


async def _reject_button(turn: Turn, value: str) -> Said:
    page, _, entry_id = value.partition(":")
    entry = await turn.desk.kb.reject(turn.actor, entry_id)
    card = await _pending_again(turn, page)
    card = replace(card, buttons=(*card.buttons, *kb_cards.undo_button(entry.id, turn.texts)))
    return turn.change(card, toast=turn.texts.get("kb.rejected", id=entry.id))


# Files ----------------------------------------------------------------------------------------------------------------


async def _import(turn: Turn) -> Said:
    if turn.incoming.document is not None:
        return await document(turn, turn.incoming.document)
    await turn.desk.kb.allow_import(turn.actor)
    words = turn.texts
    return turn.tell(words.get("kb.how_import"), words.get("kb.how_import_columns"), words.get("kb.how_import_then"))


async def document(turn: Turn, file: Attached) -> Said:
    """Plan the import of an owner's document. Other people's documents are not fetched, and they are informed once."""
    try:
        await turn.desk.kb.allow_import(turn.actor)
    except AccessDenied:
        once = f"kb-document:{turn.chat.channel}:{turn.actor.user_id}"
        refused = Card(turn.texts.get("kb.not_your_document"))
        return Said((Outgoing(refused, turn.chat, turn.incoming.message_id, once=once),))
    table = await _fetched(turn, file)
    try:
        view = await turn.desk.kb.plan_import(turn.actor, [table])
    except InputRejected as error:
        raise _no_table(turn, error, file.name) from error
    said = turn.say(kb_cards.import_card(view, turn.texts))
    left_out = kb_cards.left_out_card(view.plan, turn.texts)
    return replace(said, messages=(*said.messages, *turn.say(left_out).messages)) if left_out is not None else said


async def _import_button(turn: Turn, value: str) -> Said:
    """Carry out an import. The file is fetched again from the message that the plan replies to, so it is not kept."""
    doubles, _, mark = value.partition(":")
    if turn.incoming.document is None:
        return Said(toast=turn.texts.get("kb.document_lost"), alert=True)
    await turn.desk.kb.allow_import(turn.actor)
    file = await _fetched(turn, turn.incoming.document)
    async with _progress(turn, file.name) as tell:
        view: ImportView = await turn.desk.kb.carry_out(
            turn.actor, [file], replace_doubles=doubles == "replace", mark=mark, tell=tell
        )
    card = kb_cards.import_card(view, turn.texts)
    if view.done:
        return turn.change(card, toast=card.title)
    changed = turn.texts.get("kb.plan_changed")
    return turn.change(replace(card, lines=(Line(changed), *card.lines)), toast=changed)


@asynccontextmanager
async def _progress(turn: Turn, name: str) -> AsyncIterator[Tell]:
    """Show the progress of a long import in place of the card whose button was tapped, without its buttons."""
    if turn.show is None:
        yield lambda _: None
        return
    show, newest, told = turn.show, asyncio.Event(), [ImportStep("read", 0, 1)]

    def tell(step: ImportStep) -> None:
        told[0] = step
        if step.kind != "read" and step.total >= LONG_IMPORT:
            newest.set()

    async def showing() -> None:
        while True:
            await newest.wait()
            newest.clear()
            card = kb_cards.progress_card(told[0], name, turn.texts)
            await show(Outgoing(card, turn.chat, replaces=turn.incoming.reply_to))
            await asyncio.sleep(SHOWN_EVERY)

    task = asyncio.create_task(showing())
    try:
        yield tell
    except PhonedeskError as error:  # otherwise the card would keep saying that it is active
        await _ended(task)
        if told[0].total >= LONG_IMPORT:
            failed = Card(turn.texts.get("kb.not_imported", name=name), (Line(turn.texts.error(error)),))
            await show(Outgoing(failed, turn.chat, replaces=turn.incoming.reply_to))
        raise
    finally:
        await _ended(task)


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    for failure in await asyncio.gather(task, return_exceptions=True):
        if isinstance(failure, Exception):
            log.warning("import_progress_not_shown", error=str(failure))


async def _fetched(turn: Turn, file: Attached) -> KnowledgeFile:
    if turn.files is None:
        raise BadRequest("This channel takes no documents.", key="no_documents")
    return KnowledgeFile(file.name, await turn.files.fetch(file, BYTES.most))


def _no_table(turn: Turn, error: InputRejected, name: str) -> PhonedeskError:
    """Return an error in the person's language.

    Some errors are only in English: for others, return the correct form.
    """
    return error if error.key or turn.texts.lang == "en" else BadRequest(error.message, key="no_table", name=name)


async def _export(turn: Turn) -> Said:
    words = turn.texts
    form = turn.rest.strip().lower().lstrip(".")
    if form not in FORMS:
        return turn.tell(words.get("kb.how_export", forms=" ".join(FORMS)))
    stats = (await turn.desk.kb.stats(turn.actor)).entries
    count = stats.live + stats.pending
    file = await turn.desk.kb.export(turn.actor, form)
    if not count:
        return turn.tell(words.get("kb.empty"))
    if len(file.data) > MOST_BYTES_OUT:
        said, advice = "The export is too large for a chat.", f"Use: phonedesk kb export {file.name}"
        raise BadRequest(said, advice=advice, key="export_too_large", file=file.name)
    lines = (Line(words.get("kb.export_lines", count=count)),)
    return turn.say(Card(words.get("kb.exported"), lines, document=Document(file.name, file.data)))


_VERBS: Mapping[str, Callable[[Turn], Awaitable[Said]]] = {
    "": _overview,
    "search": _search,
    "add": _add,
    "edit": _edit,
    "pending": _pending,
    "import": _import,
    "export": _export,
    "stats": _stats,
}
_OF_AN_ENTRY: Mapping[str, Callable[[Turn, str], Awaitable[Said]]] = {
    "delete": _ask_to_delete,
    "approve": _approve,
    "reject": _reject,
}
_BUTTONS: Mapping[str, Callable[[Turn, str], Awaitable[Said]]] = {
    "found": _found_page,
    "show": _shown,
    "del": _ask_to_delete,
    "delete": _deleted,
    "undo": _undone,
    "cancel": _cancelled,
    "pending": _pending_page,
    "ok": _approve_button,
    "drop": _reject_button,
    "import": _import_button,
}

SUBJECT = Subject(commands={"kb": kb}, buttons={"kb": button})
