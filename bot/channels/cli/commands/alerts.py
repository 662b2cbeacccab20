"""``phonedesk alerts``: test the addresses for alerts and digests besides Telegram."""

from __future__ import annotations

import typer

from bot.channels.cli.commands.common import Exit, run_async, settings_from
from bot.channels.cli.commands.output import Json
from bot.channels.cli.terminal.console import Console, Text, print_json
from bot.channels.cli.terminal.language import texts

alerts = typer.Typer(no_args_is_help=True)


@alerts.callback()
def all_of_them() -> None:
    """Try out where alerts and digests go besides Telegram."""


@alerts.command("test")
def try_out(as_json: Json = False) -> None:
    """Send a message to each address of PHONEDESK_NOTIFY__URLS. Exit code 1 if one does not get through."""
    from bot.app.notify import SECONDS, Trial, services_of, trial

    settings = settings_from()

    async def tried() -> list[tuple[int, str, Trial]]:
        services, message = services_of(settings.notify.addresses), trial(settings.lang)
        return [(service.number, service.name, await service.try_out(message)) for service in services]

    results = run_async(tried)
    words = texts(settings.lang)
    if as_json:
        print_json(
            [
                {"number": number, "service": name, "sent": not one.why, "why": one.why, "status": one.status}
                for number, name, one in results
            ]
        )
    for number, name, one in [] if as_json else results:
        line = words.get("notify.not_sent" if one.why else "notify.sent", number=number, service=name)
        why = words.get(f"notify.why_{one.why}", status=one.status, seconds=round(SECONDS)) if one.why else ""
        Console().print(Text(line + why))
    if not results and not as_json:
        Console().print(Text(words.get("notify.none")))
    if any(one.why for *_, one in results):
        raise typer.Exit(Exit.FAILED)
