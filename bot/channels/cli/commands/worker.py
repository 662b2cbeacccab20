"""``phonedesk worker``: a machine that only has phones."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from agent_core.errors import ConfigInvalid
from bot.app.memory import pictures_given_back
from bot.app.settings.layers import Settings
from bot.app.settings.loading import load
from bot.app.settings.values import HOST_NAME
from bot.channels.cli.commands.common import fail, log_to_file, run_async, settings_from
from bot.channels.cli.terminal.console import Console, Text
from bot.channels.cli.terminal.language import texts

if TYPE_CHECKING:
    from bot.app.core import Core
    from bot.app.worker import RunningWorker


def worker(
    host: str | None = None,
    metrics_port: Annotated[int, typer.Option(min=0, max=65535)] = 0,
) -> None:
    """Run tasks on this machine's phones, until Ctrl-C or SIGTERM. The bot is served elsewhere."""

    def given(settings: Settings) -> Settings:
        if not host:
            return settings
        return settings.model_copy(update={"queue": settings.queue.model_copy(update={"executor_id": host})})

    settings = given(settings_from(quiet=False))
    if host is not None and not HOST_NAME.fullmatch(host):
        said, advice = f"{host!r} is no name for a host.", "Letters, digits, dot, dash; at most 64."
        fail(ConfigInvalid(said, advice=advice, key="bad_host", said=host))
    log_to_file(settings)
    run_async(lambda: _work(settings, lambda: given(load()), metrics_port))


async def _work(settings: Settings, read: Callable[[], Settings], metrics_port: int) -> None:
    from bot.app.core import open_core
    from bot.app.reload import Reloader
    from bot.app.shutdown import ending, start_in
    from bot.app.worker import running_worker, until_ended

    words, console = texts(settings.lang), Console()

    def say_end() -> None:
        console.print(Text(words.get("worker.ending")))

    with ending(say_end, settings.queue.drain_seconds) as ended:
        async with pictures_given_back(), open_core(settings) as core, running_worker(core, tells=False) as work:
            phones = await work.host.look()
            console.print(Text(words.get("worker.up", host=work.host.name, phones=len(phones))))
            async with AsyncExitStack() as stack:
                await start_in(stack, Reloader(core, read))
                if metrics_port:
                    console.print(Text(f"{await _serve_metrics(stack, core, work, metrics_port)}/metrics"))
                await until_ended(ended, work)


async def _serve_metrics(stack: AsyncExitStack, core: Core, work: RunningWorker, port: int) -> str:
    """Start the web server for metrics. Return its address."""
    from bot.app.server_names import web_names
    from bot.app.worker import metrics_of
    from bot.channels.web.app import make_app, serving
    from bot.channels.web.metrics import add_metrics

    async def ready() -> dict[str, bool]:
        return {"database": core.db.away_since is None, "queue": work.queue.running}

    settings = core.settings.web
    app, metrics = make_app(ready, web_names(settings), core.settings.lang), metrics_of(core)
    stack.push_async_callback(metrics.close)
    add_metrics(app, metrics, core.db, settings.host)
    return await stack.enter_async_context(serving(app, settings.host, port))
