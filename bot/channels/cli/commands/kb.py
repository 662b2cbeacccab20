"""``phonedesk kb``: the shop's own knowledge entries in the terminal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_core.errors import InputRejected
from bot.channels.chat.cards import Card
from bot.channels.chat.texts import Lang, Texts
from bot.channels.cli.commands.at_desk import with_desk
from bot.channels.cli.commands.common import Exit, fail
from bot.channels.cli.commands.output import Json
from bot.channels.cli.files import write
from bot.channels.cli.terminal.console import Console, confirm, print_json
from bot.channels.cli.terminal.language import texts
from bot.channels.cli.terminal.render import panel
from bot.desk.actors import Actor, BadRequest
from bot.desk.knowledge_views import EntryText, ImportView, KnowledgeFile, Tell
from knowledge.importing.drafts import split

if TYPE_CHECKING:
    from bot.desk.desk import Desk
    from knowledge.entries import Entry

Id = Annotated[str, typer.Argument(metavar="ID")]
Aliases = Annotated[list[str] | None, typer.Option("--alias")]
Tags = Annotated[list[str] | None, typer.Option("--tag")]

kb = typer.Typer(no_args_is_help=True)


@kb.command()
def search(words: Annotated[list[str] | None, typer.Argument()] = None,
           as_json: Json = False) -> None:  # fmt: skip
    """Search entries, including those that wait for approval."""
    from bot.channels.chat.kb_cards import found_card

    asked = " ".join(words or [])
    found, lang = with_desk(lambda desk, me: desk.kb.search(me, asked))
    if as_json:
        print_json([{**_plain(one.entry), "score": one.score} for one in found])
    else:
        _print(found_card(found, asked, texts(lang), paged=False))


@kb.command()
def add(
    question: str,
    answer: str,
    alias: Aliases = None,
    tag: Tags = None,
    as_json: Json = False,
) -> None:
    """Add an entry; it is live at once."""
    text = EntryText(question, answer, _several(alias) or (), _several(tag, commas=True) or ())
    _one(lambda desk, me: desk.kb.add(me, text), "kb.added", as_json)


@kb.command()
def edit(
    entry_id: Id,
    question: str | None = None,
    answer: str | None = None,
    alias: Aliases = None,
    tag: Tags = None,
    add_alias: Annotated[list[str] | None, typer.Option("--add-alias")] = None,
    remove_alias: Annotated[list[str] | None, typer.Option("--remove-alias")] = None,
    no_aliases: Annotated[bool, typer.Option("--no-aliases")] = False,
    no_tags: Annotated[bool, typer.Option("--no-tags")] = False,
    as_json: Json = False,
) -> None:
    """Change the given fields, and show the former ones."""
    text = EntryText(
        question,
        answer,
        () if no_aliases else _several(alias),
        () if no_tags else _several(tag, commas=True),
        _several(add_alias) or (),
        tuple(remove_alias or ()),
    )
    if text == EntryText():
        fail(InputRejected("It is not said what to change.", advice="Give --answer, for example.", key="entry_what"))
    old: list[Entry] = []

    async def changed(desk: Desk, me: Actor) -> Entry:
        meant = await desk.kb.named(me, entry_id)
        old.append(await desk.kb.entry(me, meant))
        return await desk.kb.edit(me, meant, text)

    _one(changed, "kb.edited", as_json, old)


def _several(given: list[str] | None, *, commas: bool = False) -> tuple[str, ...] | None:
    """Return the values of an option, each split like a cell of an imported table; None if nothing was given.

    An empty value counts as nothing: only --no-aliases and --no-tags remove values.
    """
    return tuple(part for value in given or () for part in split(value, commas=commas)) or None


@kb.command()
def delete(entry_id: Id, as_json: Json = False) -> None:
    """Delete an entry, and show it."""
    _one(lambda desk, me: desk.kb.delete(me, entry_id), "kb.deleted", as_json)


@kb.command()
def pending(as_json: Json = False) -> None:
    """List learnt entries that wait for approval, oldest first."""
    from bot.channels.chat.kb_cards import pending_card

    async def found(desk: Desk, me: Actor) -> tuple[Sequence[Entry], Mapping[str, str]]:
        entries = await desk.kb.pending(me)
        return entries, await desk.kb.meanings(entries)

    (entries, meanings), lang = with_desk(found)
    if as_json:
        print_json([_plain(entry) for entry in entries])
    else:
        _print(pending_card(entries, meanings, texts(lang), paged=False))


@kb.command()
def approve(entry_id: Id, as_json: Json = False) -> None:
    """Let a waiting entry answer customers."""
    _one(lambda desk, me: desk.kb.approve(me, entry_id), "kb.approved", as_json)


@kb.command()
def reject(entry_id: Id, as_json: Json = False) -> None:
    """Delete a waiting entry, and show it."""
    _one(lambda desk, me: desk.kb.reject(me, entry_id), "kb.rejected", as_json)


@kb.command("import")
def import_(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", exists=True, dir_okay=False, readable=True)],
    dry_run: Annotated[bool, typer.Option("--dry-run")] = False,
    replace_doubles: Annotated[bool, typer.Option("--replace-doubles")] = False,
    drop_aliases: Annotated[bool, typer.Option("--drop-aliases")] = False,
    yes: Annotated[bool, typer.Option("--yes")] = False,
    verbose: Annotated[bool, typer.Option("--verbose")] = False,
    as_json: Json = False,
) -> None:
    """Import CSV, XLSX, JSONL or Markdown: several files as one, completely or not at all.

    Anything that would be lost is shown first, and a person confirms it, or ``yes`` does.
    """
    given = [KnowledgeFile(file.name, _read(file)) for file in files]
    mark = ""
    if dry_run or (drop_aliases and not yes):
        view, lang = _imported(
            lambda desk, me, tell: desk.kb.plan_import(me, given, drop_aliases=drop_aliases, tell=tell)
        )
        mark = view.mark
        if not dry_run and view.plan.lost:
            _show_import(view, texts(lang), Console(stderr=as_json), verbose=verbose)
            if not confirm(texts(lang).get("kb.import_sure"), wrong=texts(lang).get("common.yes_or_no")):
                Console(stderr=True).print(texts(lang).get("kb.import_not_done"))
                raise typer.Exit(Exit.FAILED)
    if not dry_run:
        view, lang = _imported(
            lambda desk, me, tell: desk.kb.carry_out(
                me, given, replace_doubles=replace_doubles, drop_aliases=drop_aliases, mark=mark, tell=tell
            )
        )
        if not view.done:
            fail(InputRejected("The knowledge base has changed since the preview.", key="base_changed"))
    if as_json:
        print_json(_plan(view))
    else:
        words = texts(lang)
        _show_import(view, words, Console(), verbose=verbose)
        if not replace_doubles and any(not double.fixed for double in view.plan.doubles):
            Console().print(words.get("kb.import_doubles_how"))
        if dry_run and view.plan.writes:
            Console().print(words.get("kb.import_for_real"))
    plan = view.plan
    left_out = plan.rejected or plan.unclear
    if not dry_run and left_out and not (plan.writes or plan.same or plan.doubles):
        raise typer.Exit(Exit.FAILED)


def _imported(call: Callable[[Desk, Actor, Tell], Awaitable[ImportView]]) -> tuple[ImportView, Lang]:
    """Do a step of an import and show its progress."""
    from bot.channels.chat.kb_cards import step_words

    live = Console(stderr=True)

    async def called(desk: Desk, me: Actor) -> ImportView:
        words = texts(me.lang)
        with live.status(words.get("kb.import_step_read")) as shown:
            return await call(desk, me, lambda step: shown.update(step_words(step, words)))

    return with_desk(called)


def _show_import(view: ImportView, words: Texts, console: Console, *, verbose: bool) -> None:
    from bot.channels.chat.kb_cards import SHOWN_OF_A_GROUP, import_card

    card, plan = import_card(view, words, most=None if verbose else SHOWN_OF_A_GROUP), view.plan
    console.print(panel(Card(card.title, card.lines)))
    groups = (plan.added, plan.changed, plan.unclear, plan.doubles, plan.rejected)
    if not verbose and any(len(group) > SHOWN_OF_A_GROUP for group in groups):
        console.print(words.get("kb.import_verbose"))


@kb.command()
def export(
    file: Annotated[Path, typer.Argument(dir_okay=False)],
    as_json: Json = False,
) -> None:
    """Write every entry to a file, which can be imported again."""
    made, lang = with_desk(lambda desk, me: desk.kb.export(me, file.suffix))
    try:
        write(file, made.data)
    except BadRequest as error:
        fail(error)
    if as_json:
        print_json({"file": str(file), "bytes": len(made.data)})
    else:
        Console().print(texts(lang).get("kb.written", file=file))


@kb.command()
def stats(as_json: Json = False) -> None:
    """Show how many entries there are, and whether they answer customers."""
    from bot.channels.chat.kb_cards import stats_lines

    found, lang = with_desk(lambda desk, me: desk.kb.stats(me))
    if as_json:
        entries = found.entries
        print_json(
            {
                "live": entries.live,
                "pending": entries.pending,
                "aliases": entries.aliases,
                "newest": entries.newest.isoformat() if entries.newest else None,
                "tags": dict(entries.tags),
                "provider": found.provider,
                "used": found.used,
            }
        )
    else:
        words = texts(lang)
        _print(Card(words.get("kb.title"), stats_lines(found, words)))


def _read(file: Path) -> bytes:
    """Read one byte more than an import allows: the reader of the data refuses a larger file."""
    from knowledge.importing.limits import BYTES

    with file.open("rb") as opened:
        return opened.read(BYTES.most + 1)


def _one(
    call: Callable[[Desk, Actor], Awaitable[Entry]], key: str, as_json: bool, before: Sequence[Entry] = ()
) -> None:
    """Do what is asked with an entry, and show it. ``before``: filled by ``call`` with the former entry."""
    from bot.channels.chat.kb_cards import entry_lines

    entry, lang = with_desk(call)
    if as_json:
        print_json(_plain(entry))
        return
    words = texts(lang)
    _print(Card(words.get(key, id=entry.id), entry_lines(entry, words, before=next(iter(before), None))))


def _print(card: Card) -> None:
    Console().print(panel(Card(card.title, card.lines)))  # its buttons' actions are commands of their own


def _plain(entry: Entry) -> dict[str, Any]:
    return entry.model_dump(mode="json")


def _plan(view: ImportView) -> dict[str, Any]:
    plan = view.plan
    return {
        "name": plan.name,
        "done": view.done,
        "added": [{"place": one.place, "entry": _plain(one.entry)} for one in plan.added],
        "changed": [{"place": one.place, "before": _plain(one.old), "after": _plain(one.new)} for one in plan.changed],
        "same": [entry.id for entry in plan.same],
        "doubles": _rows(plan.doubles, "place", "wording", "other_place", "other", "whole", "fixed", "differs"),
        "unclear": _rows(plan.unclear, "place", "question", "answer", "other_places"),
        "refused": _rows(plan.rejected, "place", "reason"),
        "kept_aliases": [{"entry": one.new.id, "aliases": list(one.kept)} for one in plan.changed if one.kept],
        "lost_aliases": [{"entry": one.entry.id, "aliases": list(one.aliases)} for one in plan.lost],
        "notes": list(plan.notes),
    }


def _rows(found: Sequence[object], *names: str) -> list[dict[str, Any]]:
    return [{name: getattr(one, name) for name in names} for one in found]
