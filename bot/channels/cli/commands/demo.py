"""``phonedesk demo``: the main job on a virtual phone."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any, Literal, TextIO

import typer

from agent_core import extras
from agent_core.loop.tasks import check_task
from agent_core.session import Session, Status
from agent_core.texts import Lang
from bot.channels.cli.commands.common import BY_STATUS, Exit, result_of, run_async, settings_from
from bot.channels.cli.commands.output import Json
from bot.channels.cli.terminal.console import Console, Text, print_json
from bot.channels.cli.terminal.input import drop_typed, read_line
from bot.channels.cli.terminal.language import spoken_language, texts

DEFAULT_TASK = "QQ回复联系人11"
OUTPUT = Path("demo-output")


def demo(
    headless: Annotated[bool, typer.Option("--headless")] = False,
    task: str = DEFAULT_TASK,
    scenario: Path | None = None,
    lang: Lang | None = None,
    tree: Literal["auto", "on", "off"] = "auto",
    as_json: Json = False,
) -> None:
    """Show the main job on this machine; no phone, token, model or knowledge base is needed."""
    settings_from(lang=lang)
    if not headless and not as_json and task == DEFAULT_TASK and tree == "auto":
        raise typer.Exit(run_async(lambda: _shown(scenario, lang)))
    folder = None if headless else OUTPUT
    result, session = run_async(lambda: _headless(task, scenario, lang, tree, as_json, folder))
    if as_json:
        print_json(result)
    raise typer.Exit(BY_STATUS.get(session.comes_to, Exit.FAILED))


async def _shown(scenario: Path | None, lang: Lang | None) -> Exit:
    """Show the whole demo. Ctrl-C ends it in order, says so at once, and deletes temporary data at the end.

    Without a terminal nobody can answer, and the demo does it by itself.
    """
    extras.require("demo")
    from bot.app.shutdown import ending
    from bot.tools.demo.show import show

    console = Console()

    is_watched = sys.stdin.isatty() and sys.stdout.isatty()  # noqa: TID251 - not printed to

    def say_end() -> None:
        console.print(Text("\n" + texts(spoken_language()).get("demo.stopping")))

    with ending(say_end, drain_seconds=0) as stopped:
        showing = asyncio.create_task(
            show(console, OUTPUT, scenario=scenario, lang=lang, read=reader(console) if is_watched else None),
            name="demo",
        )
        stopping = asyncio.create_task(stopped.wait(), name="demo-stop")
        await asyncio.wait({showing, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not stopping.done():
            stopping.cancel()
            return Exit.OK if await showing else Exit.FAILED
        showing.cancel()
        await asyncio.gather(showing, return_exceptions=True)
        return Exit.STOPPED


def reader(console: Console, stdin: TextIO | None = None) -> Callable[[], Coroutine[Any, Any, str | None]]:
    """Return a function that reads a line typed from then on: keys pressed while the demo worked are no answer."""

    async def read() -> str | None:
        drop_typed(stdin)
        return await read_line(console, stdin)

    return read


async def _headless(
    task: str, scenario: Path | None, lang: str | None, tree: str, as_json: bool, folder: Path | None
) -> tuple[dict[str, Any], Session]:
    # A run's modules take a second to import, and `--help` does not need them.
    from bot.app.core import open_core
    from bot.app.run_here import run_here
    from bot.channels.cli.terminal.live import LiveRuns, outcome_line
    from bot.tools.demo.pictures import leave_pictures
    from bot.tools.demo.world import demo_world
    from scheduler.runs.human import StoredHuman

    check_task(task)
    if tree == "off":
        extras.require("ocr")  # without either, the demo's model sees nothing
    started = time.monotonic()
    async with demo_world(scenario, lang=lang, observe={"tree": tree}) as world, open_core(world.settings) as core:
        words = texts(world.settings.lang)
        console = Console(stderr=as_json, quiet=as_json)
        session = await run_here(
            core,
            task,
            human=StoredHuman(core.db, hold_seconds=0, attempt=1),
            store=LiveRuns(core.runs(attempt=1), console, words, core.attached.name, core.db),
        )
        console.print(outcome_line(session, words))
        if folder is not None:
            await leave_pictures(core.db, world.phone, folder)
            console.print(Text(words.get("demo.done", folder=folder)))
        console.print(Text(words.get("demo.finished")))
        report = world.phone.report()
        phone = {"sent": report["sent"], "opened": report["opened"]}
        result = {**result_of(session, time.monotonic() - started), "phone": phone}
    if session.status is Status.WAITING:
        result["message"] = session.question.text if session.question else session.message
    return result, session
