"""``phonedesk keys``: the API keys of programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from agent_core.texts import Listed
from bot.channels.cli.commands.at_desk import with_desk
from bot.channels.cli.terminal.console import Console, Text, print_json
from bot.channels.cli.terminal.language import texts
from bot.desk.actors import Actor, Role
from storage.api_keys import KeyRow

if TYPE_CHECKING:
    from bot.desk.desk import Desk

Json = Annotated[bool, typer.Option("--json")]
Name = str

keys = typer.Typer(
    no_args_is_help=True,
)


@keys.command()
def add(
    name: Name,
    role: Role = Role.OPERATOR,
    phone: list[str] | None = None,
    as_json: Json = False,
) -> None:
    """Make a key. It is shown once."""

    async def added(desk: Desk, me: Actor) -> tuple[str, KeyRow]:
        return await desk.keys.add(me, name, role, phones=phone or ())

    (key, row), lang = with_desk(added)
    if as_json:
        print_json({"key": key, **_plain(row)})
        return
    words = texts(lang)
    Console().print(key, soft_wrap=True)
    Console(stderr=True).print(Text(words.get("keys.added", name=row.name)))


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
def rotate(name: Name, as_json: Json = False) -> None:
    """Give a key a new secret. It is shown once; the old one is refused from now on."""

    async def rotated(desk: Desk, me: Actor) -> tuple[str, KeyRow]:
        return await desk.keys.rotate(me, name)

    (key, row), lang = with_desk(rotated)
    if as_json:
        print_json({"key": key, **_plain(row)})
        return
    Console().print(key, soft_wrap=True)
    Console(stderr=True).print(Text(texts(lang).get("keys.rotated", name=row.name)))


@keys.command()
def remove(name: Name, as_json: Json = False) -> None:
    """Revoke a key at once, and stop its running work."""

    async def removed(desk: Desk, me: Actor) -> tuple[KeyRow, int]:
        return await desk.keys.remove(me, name)

    (row, stopped), lang = with_desk(removed)
    if as_json:
        print_json(_plain(row) | {"stopped": stopped})
        return
    words = texts(lang)
    Console().print(Text(words.get("keys.removed", name=row.name)))
    if stopped:
        Console().print(Text(words.get("keys.stopped", count=stopped)))


def _plain(row: KeyRow) -> dict[str, Any]:
    return {
        **asdict(row),
        "serials": list(row.serials or ()),
        "created_at": row.created_at.isoformat(),
        "last_used_at": row.last_used_at.isoformat() if row.last_used_at else None,
    }
