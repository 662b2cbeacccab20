"""``phonedesk people``: who may use the bot."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from bot.channels.chat.cards import Card
from bot.channels.chat.people import in_short, person_lines
from bot.channels.cli.commands.at_desk import who_of, with_desk
from bot.channels.cli.commands.output import Json, as_plain_data
from bot.channels.cli.terminal.console import Console, Text, print_json
from bot.channels.cli.terminal.language import texts
from bot.channels.cli.terminal.render import panel
from bot.desk.actors import Actor, BadRequest, Role
from bot.desk.team_views import PersonView

if TYPE_CHECKING:
    from bot.desk.desk import Desk


people = typer.Typer(no_args_is_help=True)


@people.command("list")
def list_(as_json: Json = False) -> None:
    """List the people, with roles and limits."""
    found, lang = with_desk(lambda desk, me: desk.team.people(me))
    if as_json:
        print_json([as_plain_data(person) for person in found])
        return
    words = texts(lang)
    table = Table(show_header=False, box=None, padding=(0, 1))
    for person in found:
        table.add_row(*(Text(cell) for cell in (f"#{person.id}", person.name, in_short(words, person))))
    Console().print(table if found else words.get("people.nobody"))


@people.command()
def role(who: str, new: Annotated[Role, typer.Argument(metavar="ROLE")], as_json: Json = False) -> None:
    """Give somebody another role."""
    _one(lambda desk, me: desk.team.set_role(me, who_of(who), new), "people.changed", as_json)


@people.command()
def limit(
    who: str,
    phone: list[str] | None = None,
    chat: list[str] | None = None,
    as_json: Json = False,
) -> None:
    """Limit somebody to phones and chats."""

    async def limited(desk: Desk, me: Actor) -> PersonView:
        if phone is None and chat is None:
            raise BadRequest("There is nothing to change.", advice="Give --phone or --chat.", key="people_what")
        chats = None if chat is None else [f"telegram:{name}" if name and ":" not in name else name for name in chat]
        return await desk.team.limit(me, who_of(who), phones=phone, chats=chats)

    _one(limited, "people.changed", as_json)


@people.command()
def remove(who: str, as_json: Json = False) -> None:
    """Remove somebody's access."""
    _one(lambda desk, me: desk.team.remove(me, who_of(who)), "people.removed", as_json)


def _one(call: Callable[[Desk, Actor], Awaitable[PersonView]], key: str, as_json: bool) -> None:
    view, lang = with_desk(call)
    if as_json:
        print_json(as_plain_data(view))
        return
    words = texts(lang)
    Console().print(Text(words.get(key, name=view.name) if key == "people.removed" else words.get(key)))
    Console().print(panel(Card(f"#{view.id} {view.name}", person_lines(words, view))))
