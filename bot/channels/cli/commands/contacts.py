"""``phonedesk contacts``: saved contacts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from bot.channels.chat.cards import Card
from bot.channels.chat.contacts import contact_lines
from bot.channels.cli.commands.at_desk import with_desk
from bot.channels.cli.commands.output import Json
from bot.channels.cli.terminal.console import Console, print_json
from bot.channels.cli.terminal.language import texts
from bot.channels.cli.terminal.render import panel
from bot.desk.actors import Actor
from bot.desk.views import ContactView

if TYPE_CHECKING:
    from bot.desk.desk import Desk

App = Annotated[str, typer.Option()]
Serial = Annotated[str, typer.Option()]

contacts = typer.Typer(no_args_is_help=True)


@contacts.command("list")
def list_(
    app: str = "",
    text: str = "",
    tag: str = "",
    as_json: Json = False,
) -> None:
    """List the contacts."""

    async def named(desk: Desk, me: Actor) -> list[tuple[ContactView, str]]:
        found = await desk.contacts.find(me, app=app, text=text, tag=tag)
        return list(zip(found, await desk.phones.names([contact.serial for contact in found]), strict=True))

    found, lang = with_desk(named)
    words = texts(lang)
    if as_json:
        print_json([asdict(contact) for contact, _ in found])
        return
    for contact, phone in found:
        Console().print(panel(Card(contact.name, contact_lines(contact, phone, words))))
    if not found:
        Console().print(words.get("contacts.none_found" if app or text or tag else "contacts.empty"))


@contacts.command()
def add(
    name: str,
    app: App = "qq",
    number: str = "",
    tag: list[str] | None = None,
    serial: Serial = "",
    note: str = "",
    as_json: Json = False,
) -> None:
    """Add a contact."""
    contact = ContactView(app, name, serial, number, tuple(tag or ()), note)
    _one(lambda desk, me: desk.contacts.add(me, contact), "contacts.added", as_json)


@contacts.command()
def edit(
    name: str,
    app: App = "qq",
    serial: str = "",
    rename: str | None = None,
    number: str | None = None,
    tag: list[str] | None = None,
    note: str | None = None,
    as_json: Json = False,
) -> None:
    """Change the given fields."""
    _one(
        lambda desk, me: desk.contacts.edit(
            me, name, app=app, serial=serial, rename=rename, number=number, tags=tag, note=note
        ),
        "contacts.changed",
        as_json,
    )


@contacts.command()
def remove(name: str, app: App = "qq", serial: Serial = "", as_json: Json = False) -> None:
    """Remove a contact."""
    _one(lambda desk, me: desk.contacts.remove(me, name, app=app, serial=serial), "contacts.removed", as_json)


def _one(call: Callable[[Desk, Actor], Awaitable[ContactView]], key: str, as_json: bool) -> None:
    async def named(desk: Desk, me: Actor) -> tuple[ContactView, str]:
        view = await call(desk, me)
        (phone,) = await desk.phones.names([view.serial])
        return view, phone

    (view, phone), lang = with_desk(named)
    if as_json:
        print_json(asdict(view))
        return
    words = texts(lang)
    Console().print(panel(Card(words.get(key, name=view.name), contact_lines(view, phone, words))))
