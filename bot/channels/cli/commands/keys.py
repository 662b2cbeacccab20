"""``phonedesk keys``: the API keys of programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer
from rich.table import Table

from agent_core.texts import Listed
from bot.channels.cli.commands.at_desk import with_desk
from bot.channels.cli.commands.output import Json, as_plain_data, tell_secret
from bot.channels.cli.terminal.console import Console, Text, print_json
from bot.channels.cli.terminal.language import texts
from bot.desk.actors import Actor, Role
from storage.api_keys import KeyRow

if TYPE_CHECKING:
    from bot.desk.desk import Desk


keys = typer.Typer(no_args_is_help=True)


@keys.command()
def add(
    name: str,
    role: Role = Role.OPERATOR,
    phone: list[str] | None = None,
    as_json: Json = False,
) -> None:
    """Make a key. It is shown once."""
    (key, row), lang = with_desk(lambda desk, me: desk.keys.add(me, name, role, phones=phone or ()))
    tell_secret("key", key, _plain(row), texts(lang).get("keys.added", name=row.name), as_json=as_json)


@keys.command("list")
def list_(as_json: Json = False) -> None:
    """List the keys, without the keys themselves."""

    async def found(desk: Desk, me: Actor) -> list[tuple[KeyRow, Sequence[str]]]:
        return [(row, await desk.phones.names(row.serials or ())) for row in await desk.keys.all(me)]

    rows, lang = with_desk(found)
    if as_json:
        print_json([_plain(row) for row, _ in rows])
        return
    words = texts(lang)
    table = Table(show_header=False, box=None, padding=(0, 1))
    for row, phones in rows:
        used = f"{row.last_used_at:%Y-%m-%d %H:%M}" if row.last_used_at else words.get("keys.never_used")
        limits = Listed(phones).joined(lang)
        table.add_row(*(Text(cell) for cell in (row.name, words.get(f"role.{row.role}"), limits, used)))
    Console().print(table if rows else Text(words.get("keys.none")))


@keys.command()
def rotate(name: str, as_json: Json = False) -> None:
    """Give a key a new secret. It is shown once; the old one is refused from now on."""
    (key, row), lang = with_desk(lambda desk, me: desk.keys.rotate(me, name))
    tell_secret("key", key, _plain(row), texts(lang).get("keys.rotated", name=row.name), as_json=as_json)


@keys.command()
def remove(name: str, as_json: Json = False) -> None:
    """Revoke a key at once, and stop its running work."""
    (row, stopped), lang = with_desk(lambda desk, me: desk.keys.remove(me, name))
    if as_json:
        print_json(_plain(row) | {"stopped": stopped})
        return
    words = texts(lang)
    Console().print(Text(words.get("keys.removed", name=row.name)))
    if stopped:
        Console().print(Text(words.get("keys.stopped", count=stopped)))


def _plain(row: KeyRow) -> dict[str, Any]:
    return {**as_plain_data(row), "serials": list(row.serials or ())}
