"""``phonedesk webhooks``: events that are sent to programs."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from agent_core.texts import Listed
from bot.channels.cli.commands.at_desk import with_desk
from bot.channels.cli.commands.common import Exit
from bot.channels.cli.terminal.console import Console, Text, print_json
from bot.channels.cli.terminal.language import texts
from bot.desk.actors import Actor
from bot.desk.webhooks_views import DeliveryView, IncomingView, May, WebhookView
from storage.webhooks import GONE, WAITED

if TYPE_CHECKING:
    from bot.channels.chat.texts import Lang, Texts
    from bot.desk.desk import Desk

Json = Annotated[bool, typer.Option("--json")]
Id = Annotated[int, typer.Argument()]

_GIVEN_UP = {GONE: "webhooks.why_gone", WAITED: "webhooks.why_waited"}

webhooks = typer.Typer(no_args_is_help=True)
incoming = typer.Typer(no_args_is_help=True)
webhooks.add_typer(incoming, name="incoming", no_args_is_help=True)


@webhooks.command()
def add(url: str, events: Annotated[str, typer.Option()], as_json: Json = False) -> None:
    """Add a webhook. Its secret is shown once."""

    async def added(desk: Desk, me: Actor) -> tuple[str, WebhookView]:
        return await desk.webhooks.add(me, url, events.replace("，", ",").split(","))

    (secret, view), lang = with_desk(added)
    if as_json:
        print_json({"secret": secret, **_plain(view)})
        return
    Console().print(secret, soft_wrap=True)
    Console(stderr=True).print(Text(texts(lang).get("webhooks.added", id=view.id)))


@webhooks.command("list")
def list_(as_json: Json = False) -> None:
    """List the webhooks, without their secrets."""

    async def found(desk: Desk, me: Actor) -> list[WebhookView]:
        return await desk.webhooks.all(me)

    views, lang = with_desk(found)
    if as_json:
        print_json([_plain(view) for view in views])
        return
    words, console = texts(lang), Console()
    for view in views:
        state = words.get(f"webhooks.{view.state}", waiting=view.waiting, dead=view.dead)
        console.print(Text(f"{view.id}  {view.url}"), soft_wrap=True)  # never cut, because people copy it
        console.print(Text(f"   {Listed(view.events).joined(lang)} · {state}"), soft_wrap=True)
    if not views:
        console.print(Text(words.get("webhooks.none")))


@webhooks.command()
def remove(id: Id, as_json: Json = False) -> None:  # noqa: A002 - what people see
    """Remove a webhook, with its deliveries."""

    async def removed(desk: Desk, me: Actor) -> WebhookView:
        return await desk.webhooks.remove(me, id)

    view, lang = with_desk(removed)
    if as_json:
        print_json(_plain(view))
        return
    Console().print(Text(texts(lang).get("webhooks.removed", url=view.url)))


@webhooks.command()
def rotate(id: Id, as_json: Json = False) -> None:  # noqa: A002 - as above
    """Give a webhook a new secret. It is shown once; the old one signs, too, for 24 hours."""

    async def rotated(desk: Desk, me: Actor) -> tuple[str, WebhookView]:
        return await desk.webhooks.rotate(me, id)

    (secret, view), lang = with_desk(rotated)
    if as_json:
        print_json({"secret": secret, **_plain(view)})
        return
    Console().print(secret, soft_wrap=True)
    until = f"{view.old_secret_until:%m-%d %H:%M}" if view.old_secret_until is not None else ""
    Console(stderr=True).print(Text(texts(lang).get("webhooks.rotated", until=until)))


@webhooks.command("test")
def try_out(id: Id, as_json: Json = False) -> None:  # noqa: A002 - as above
    """Send a test message now. Exit code 1 if it does not get through."""

    async def tested(desk: Desk, me: Actor) -> DeliveryView:
        return await desk.webhooks.test(me, id)

    view, lang = with_desk(tested)
    if as_json:
        print_json(_plain(view))
    else:
        Console().print(Text(_ended(view, texts(lang))))
    if view.state != "delivered":
        raise typer.Exit(Exit.FAILED)


@webhooks.command()
def deliveries(
    id: Id,  # noqa: A002 - as above
    dead: bool = False,
    limit: Annotated[int, typer.Option(min=1, max=100)] = 20,
    as_json: Json = False,
) -> None:
    """List the messages of a webhook, the newest first."""

    async def found(desk: Desk, me: Actor) -> list[DeliveryView]:
        return await desk.webhooks.deliveries(me, id, state="dead" if dead else "", limit=limit)

    views, lang = with_desk(found)
    if as_json:
        print_json([_plain(view) for view in views])
        return
    words = texts(lang)
    table = Table(show_header=False, box=None, padding=(0, 1))
    for view in views:
        cells = (str(view.id), f"{view.created_at:%m-%d %H:%M:%S}", view.event, _ended(view, words))
        table.add_row(*(Text(cell) for cell in cells))
    Console().print(table if views else Text(words.get("webhooks.nothing_dead" if dead else "webhooks.nothing_sent")))


@webhooks.command()
def retry(id: Id, message: Annotated[int, typer.Argument()], as_json: Json = False) -> None:  # noqa: A002 - as above
    """Send a message again that was given up."""

    async def again(desk: Desk, me: Actor) -> DeliveryView:
        return await desk.webhooks.retry(me, id, message)

    view, lang = with_desk(again)
    if as_json:
        print_json(_plain(view))
        return
    Console().print(Text(texts(lang).get("webhooks.again", id=view.id)))


@incoming.command("add")
def add_incoming(
    name: str, may: Annotated[May, typer.Option()], phone: list[str] | None = None, as_json: Json = False
) -> None:
    """Make an incoming webhook. Its secret is shown once."""

    async def added(desk: Desk, me: Actor) -> tuple[str, IncomingView]:
        return await desk.incoming.add(me, name, may, phones=phone or ())

    _tell_secret(with_desk(added), "webhooks.incoming_added", as_json)


@incoming.command("list")
def list_incoming(as_json: Json = False) -> None:
    """List the incoming webhooks, without their secrets."""

    async def found(desk: Desk, me: Actor) -> list[IncomingView]:
        return await desk.incoming.all(me)

    views, lang = with_desk(found)
    if as_json:
        print_json([_plain(view) for view in views])
        return
    words = texts(lang)
    table = Table(show_header=False, box=None, padding=(0, 1))
    for view in views:
        cells = (view.name, words.get(f"webhooks.may_{view.may}"), Listed(view.phones).joined(lang))
        table.add_row(*(Text(cell) for cell in cells))
    Console().print(table if views else Text(words.get("webhooks.no_incoming")))


@incoming.command("rotate")
def rotate_incoming(name: str, as_json: Json = False) -> None:
    """Give an incoming webhook a new secret. It is shown once; the old one holds for 24 hours."""

    async def rotated(desk: Desk, me: Actor) -> tuple[str, IncomingView]:
        return await desk.incoming.rotate(me, name)

    _tell_secret(with_desk(rotated), "webhooks.incoming_rotated", as_json)


@incoming.command("remove")
def remove_incoming(name: str, as_json: Json = False) -> None:
    """Remove an incoming webhook: its messages are refused from now on."""

    async def removed(desk: Desk, me: Actor) -> IncomingView:
        return await desk.incoming.remove(me, name)

    view, lang = with_desk(removed)
    if as_json:
        print_json(_plain(view))
        return
    Console().print(Text(texts(lang).get("webhooks.incoming_removed", name=view.name)))


def _tell_secret(made: tuple[tuple[str, IncomingView], Lang], key: str, as_json: bool) -> None:
    (secret, view), lang = made
    if as_json:
        print_json({"secret": secret, **_plain(view)})
        return
    Console().print(secret, soft_wrap=True)
    until = f"{view.old_secret_until:%m-%d %H:%M}" if view.old_secret_until is not None else ""
    Console(stderr=True).print(Text(texts(lang).get(key, name=view.name, until=until)))


def _ended(view: DeliveryView, words: Texts) -> str:
    """Return the outcome of a message's last attempt, and what is next, in one line."""
    why = view.error or (f"HTTP {view.status}" if view.status is not None else "")
    if view.error in _GIVEN_UP:
        why = words.get(_GIVEN_UP[view.error])
    took = f"{view.seconds or 0:.1f}"
    if view.state == "delivered":
        return words.get("webhooks.delivered", why=why, seconds=took, attempts=view.attempts)
    if view.state == "dead":
        return words.get("webhooks.dead", why=why, attempts=view.attempts)
    if view.waits_for is not None:
        return words.get("webhooks.behind", id=view.waits_for)
    if not why:
        return words.get("webhooks.unsent", attempts=view.attempts)
    at = f"{view.next_at:%m-%d %H:%M:%S}" if view.next_at is not None else ""
    return words.get("webhooks.waits", why=why, at=at, attempts=view.attempts)


def _plain(view: WebhookView | DeliveryView | IncomingView) -> dict[str, Any]:
    return {
        name: value.isoformat() if isinstance(value, datetime) else list(value) if isinstance(value, tuple) else value
        for name, value in asdict(view).items()
    }
