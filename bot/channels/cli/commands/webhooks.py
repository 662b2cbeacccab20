"""``phonedesk webhooks``: events that are sent to programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from agent_core.texts import Listed
from bot.channels.cli.commands.at_desk import with_desk
from bot.channels.cli.commands.common import Exit
from bot.channels.cli.commands.output import Json, as_plain_data, tell_secret
from bot.channels.cli.terminal.console import Console, Text, print_json
from bot.channels.cli.terminal.language import texts
from bot.desk.webhooks_views import DeliveryView, IncomingView, May, WebhookView
from storage.webhooks import GONE, WAITED

if TYPE_CHECKING:
    from bot.channels.chat.texts import Texts

Id = Annotated[int, typer.Argument()]

_GIVEN_UP = {GONE: "webhooks.why_gone", WAITED: "webhooks.why_waited"}

webhooks = typer.Typer(no_args_is_help=True)
incoming = typer.Typer(no_args_is_help=True)
webhooks.add_typer(incoming, name="incoming", no_args_is_help=True)


@webhooks.command()
def add(url: str, events: Annotated[str, typer.Option()], as_json: Json = False) -> None:
    """Add a webhook. Its secret is shown once."""
    kinds = events.replace("，", ",").split(",")
    (secret, view), lang = with_desk(lambda desk, me: desk.webhooks.add(me, url, kinds))
    _tell_secret(secret, view, texts(lang).get("webhooks.added", id=view.id), as_json)


@webhooks.command("list")
def list_(as_json: Json = False) -> None:
    """List the webhooks, without their secrets."""
    views, lang = with_desk(lambda desk, me: desk.webhooks.all(me))
    if as_json:
        print_json([as_plain_data(view) for view in views])
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
    view, lang = with_desk(lambda desk, me: desk.webhooks.remove(me, id))
    _tell(view, texts(lang).get("webhooks.removed", url=view.url), as_json)


@webhooks.command()
def rotate(id: Id, as_json: Json = False) -> None:  # noqa: A002 - as above
    """Give a webhook a new secret. It is shown once; the old one signs, too, for 24 hours."""
    (secret, view), lang = with_desk(lambda desk, me: desk.webhooks.rotate(me, id))
    _tell_secret(secret, view, texts(lang).get("webhooks.rotated", until=_until(view)), as_json)


@webhooks.command("test")
def try_out(id: Id, as_json: Json = False) -> None:  # noqa: A002 - as above
    """Send a test message now. Exit code 1 if it does not get through."""
    view, lang = with_desk(lambda desk, me: desk.webhooks.test(me, id))
    if as_json:
        print_json(as_plain_data(view))
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
    state = "dead" if dead else ""
    views, lang = with_desk(lambda desk, me: desk.webhooks.deliveries(me, id, state=state, limit=limit))
    if as_json:
        print_json([as_plain_data(view) for view in views])
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
    view, lang = with_desk(lambda desk, me: desk.webhooks.retry(me, id, message))
    _tell(view, texts(lang).get("webhooks.again", id=view.id), as_json)


@incoming.command("add")
def add_incoming(
    name: str, may: Annotated[May, typer.Option()], phone: list[str] | None = None, as_json: Json = False
) -> None:
    """Make an incoming webhook. Its secret is shown once."""
    (secret, view), lang = with_desk(lambda desk, me: desk.incoming.add(me, name, may, phones=phone or ()))
    _tell_secret(secret, view, texts(lang).get("webhooks.incoming_added", name=view.name), as_json)


@incoming.command("list")
def list_incoming(as_json: Json = False) -> None:
    """List the incoming webhooks, without their secrets."""
    views, lang = with_desk(lambda desk, me: desk.incoming.all(me))
    if as_json:
        print_json([as_plain_data(view) for view in views])
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
    (secret, view), lang = with_desk(lambda desk, me: desk.incoming.rotate(me, name))
    said = texts(lang).get("webhooks.incoming_rotated", name=view.name, until=_until(view))
    _tell_secret(secret, view, said, as_json)


@incoming.command("remove")
def remove_incoming(name: str, as_json: Json = False) -> None:
    """Remove an incoming webhook: its messages are refused from now on."""
    view, lang = with_desk(lambda desk, me: desk.incoming.remove(me, name))
    _tell(view, texts(lang).get("webhooks.incoming_removed", name=view.name), as_json)


def _tell(view: WebhookView | DeliveryView | IncomingView, said: str, as_json: bool) -> None:
    if as_json:
        print_json(as_plain_data(view))
    else:
        Console().print(Text(said))


def _tell_secret(secret: str, view: WebhookView | IncomingView, said: str, as_json: bool) -> None:
    tell_secret("secret", secret, as_plain_data(view), said, as_json=as_json)


def _until(view: WebhookView | IncomingView) -> str:
    """Return how long the old secret holds; "" if there is none."""
    return f"{view.old_secret_until:%m-%d %H:%M}" if view.old_secret_until is not None else ""


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
