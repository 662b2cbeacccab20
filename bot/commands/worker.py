"""``phonedesk worker``: a machine that has phones, and nothing else."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from agent_core.errors import ConfigInvalid
from bot.chat.texts import texts
from bot.commands.common import fail, run_async, settings_from
from bot.memory import pictures_given_back
from bot.settings import HOST_NAME, Settings


def worker(
    host: Annotated[
        str, typer.Option(help="This machine's name, not any other's; without it PHONEDESK_QUEUE__EXECUTOR_ID.")
    ] = "",
) -> None:
    """Do the runs of the phones of this machine, until Ctrl-C or SIGTERM. The bot is served elsewhere.

    Example: PHONEDESK_DATABASE_URL=postgresql://… phonedesk worker --host counter-2
    """
    settings = settings_from(quiet=False)
    if host and not HOST_NAME.fullmatch(host):
        fail(ConfigInvalid(f"{host!r} is no name for a host.", advice="Letters, digits, dot, dash; at most 64."))
    if host:
        queue = settings.queue.model_copy(update={"executor_id": host})
        settings = settings.model_copy(update={"queue": queue})
    run_async(lambda: _work(settings))


async def _work(settings: Settings) -> None:
    from bot.app import open_core
    from bot.ending import ending
    from bot.working import until_ended, working

    words, console = texts(settings.lang), Console()

    def say_end() -> None:
        console.print(Text(words.get("worker.ending")))

    with ending(say_end, settings.queue.drain_seconds) as ended:
        async with pictures_given_back(), open_core(settings) as core, working(core, tells=False) as work:
            phones = await work.host.look()
            console.print(Text(words.get("worker.up", host=work.host.name, phones=len(phones))))
            if "embedded" in settings.knowledge.providers and not core.db.is_sqlite:
                console.print(Text(words.get("worker.own_store")))
            await until_ended(ended, work)
