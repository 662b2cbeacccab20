"""``phonedesk contacts``: customers that are known beforehand."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from bot.chat.cards import Card
from bot.chat.contacts import contact_lines
from bot.chat.texts import texts
from bot.commands.at_desk import with_desk
from bot.desk.actors import Actor
from bot.desk.contacts_port import ContactView
from bot.terminal.console import Console, print_json
from bot.terminal.render import panel

if TYPE_CHECKING:
    from bot.desk.desk import HouseDesk

Name = Annotated[str, typer.Argument(help="The name as it stands in the app.")]
App = Annotated[str, typer.Option(help="The app that the contact is in.")]
Serial = Annotated[str, typer.Option(help="Only on this phone; without it on any.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

contacts = typer.Typer(
    no_args_is_help=True,
    help="Customers that are known beforehand. Example: phonedesk contacts add 11 --number 12345678",
)


@contacts.command("list")
def list_(
    app: Annotated[str, typer.Option(help="Only of this app.")] = "",
    text: Annotated[str, typer.Option(help="Words of name, number or note.")] = "",
    tag: Annotated[str, typer.Option(help="Only with this tag.")] = "",
    as_json: Json = False,
) -> None:
    """List the contacts. Example: phonedesk contacts list --tag 老客户"""
    found, lang = with_desk(lambda desk, me: desk.contacts(me, app=app, text=text, tag=tag))
    words = texts(lang)
    if as_json:
        print_json([asdict(contact) for contact in found])
        return
    for contact in found:
        Console().print(panel(Card(contact.name, contact_lines(contact, words))))
    if not found:
        Console().print(words.get("contacts.none_found" if app or text or tag else "contacts.empty"))


@contacts.command()
def add(
    name: Name,
    app: App = "qq",
    number: Annotated[str, typer.Option(help="The account's number in the app, digits only.")] = "",
    tag: Annotated[list[str] | None, typer.Option(help="A tag; may be given several times.")] = None,
    serial: Serial = "",
    note: Annotated[str, typer.Option(help="A note for yourself.")] = "",
    as_json: Json = False,
) -> None:
    """Add a contact. Example: phonedesk contacts add 11 --number 12345678 --tag 老客户"""
    contact = ContactView(app, name, serial, number, tuple(tag or ()), note)
    _one(lambda desk, me: desk.add_contact(me, contact), "contacts.added", as_json)


@contacts.command()
def edit(
    name: Name,
    app: App = "qq",
    serial: Annotated[str, typer.Option(help="The phone of the contact that is meant.")] = "",
    rename: Annotated[str | None, typer.Option(help="The new name.")] = None,
    number: Annotated[str | None, typer.Option(help="The new number; '' for none.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="The tags from now on; '' for none.")] = None,
    note: Annotated[str | None, typer.Option(help="The new note; '' for none.")] = None,
    as_json: Json = False,
) -> None:
    """Change what is given. Example: phonedesk contacts edit 11 --number 87654321"""
    _one(
        lambda desk, me: desk.edit_contact(
            me, name, app=app, serial=serial, rename=rename, number=number, tags=tag, note=note
        ),
        "contacts.changed",
        as_json,
    )


@contacts.command()
def remove(name: Name, app: App = "qq", serial: Serial = "", as_json: Json = False) -> None:
    """Remove a contact. Example: phonedesk contacts remove 11"""
    _one(lambda desk, me: desk.remove_contact(me, name, app=app, serial=serial), "contacts.removed", as_json)


def _one(call: Callable[[HouseDesk, Actor], Awaitable[ContactView]], key: str, as_json: bool) -> None:
    view, lang = with_desk(call)
    if as_json:
        print_json(asdict(view))
        return
    words = texts(lang)
    Console().print(panel(Card(words.get(key, name=view.name), contact_lines(view, words))))
