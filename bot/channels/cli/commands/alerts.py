"""``phonedesk alerts``: test the addresses for alerts and digests besides Telegram."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from bot.channels.cli.commands.common import Exit, run_async, settings_from
from bot.channels.cli.terminal.console import Console, Text, print_json
from bot.channels.cli.terminal.language import texts

alerts = typer.Typer(no_args_is_help=True)


@alerts.callback()
def all_of_them() -> None:
    """Try out where alerts and digests go besides Telegram."""


@alerts.command("test")
def try_out(as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
    """Send a message to each address of PHONEDESK_NOTIFY__URLS. Exit code 1 if one does not get through."""
    from bot.app.notify import services_of, trial

    settings = settings_from()

    async def sent() -> list[tuple[int, str, bool]]:
        services = services_of(settings.notify.addresses)
        taken = await asyncio.gather(*(service.send(trial(settings.lang)) for service in services))
        return [(service.number, service.name, one) for service, one in zip(services, taken, strict=True)]

    results = run_async(sent)
    words = texts(settings.lang)
    if as_json:
        print_json([{"number": number, "service": name, "sent": one} for number, name, one in results])
    for number, name, one in [] if as_json else results:
        Console().print(Text(words.get("notify.sent" if one else "notify.not_sent", number=number, service=name)))
    if not results and not as_json:
        Console().print(Text(words.get("notify.none")))
    if not all(one for *_, one in results):
        raise typer.Exit(Exit.FAILED)
