"""The command line. Each command is a module of ``bot.commands``; what it needs is imported when it is called."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from bot.commands.answers import answers
from bot.commands.apps import apps
from bot.commands.backup import backup, restore
from bot.commands.bench import bench
from bot.commands.config import config
from bot.commands.contacts import contacts
from bot.commands.demo import demo
from bot.commands.doctor import doctor
from bot.commands.eval import evaluate
from bot.commands.init import init
from bot.commands.kb import kb
from bot.commands.keys import keys
from bot.commands.mcp import mcp
from bot.commands.pair import pair
from bot.commands.people import people
from bot.commands.questions import questions
from bot.commands.read import read
from bot.commands.replay import replay
from bot.commands.run import run
from bot.commands.schedule import schedule
from bot.commands.serve import serve
from bot.commands.servers import demo_model, devices, virtual_phone
from bot.commands.sweep import sweep
from bot.commands.worker import worker
from bot.escapes import escaped
from bot.release import release
from bot.terminal.console import Console


def say_release(wanted: bool) -> None:
    """Print the release and end, where that is what was wanted."""
    if wanted:
        Console().print(f"phonedesk {release() or '(not installed)'}")
        raise typer.Exit


class Commands(TyperGroup):
    """Says what is wrong with a command line as everything else is said: the name of a file may be from outside."""

    def make_context(self, *args: Any, **options: Any) -> Any:
        with _message_escaped():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        with _message_escaped():
            return super().invoke(ctx)


@contextmanager
def _message_escaped() -> Iterator[None]:
    try:
        yield
    except TyperException as error:
        error.message = escaped(error.message)
        raise


app = typer.Typer(
    name="phonedesk",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)


@app.callback()
def phonedesk(
    version: Annotated[
        bool, typer.Option("--version", callback=say_release, is_eager=True, help="Print which release this is.")
    ] = False,
) -> None:
    """A customer-service desk that runs on a real phone and is operated from Telegram."""


app.command()(run)
app.command()(sweep)
app.command()(demo)
app.command()(init)
app.command()(doctor)
app.command()(serve)
app.command()(worker)
app.command()(pair)
app.add_typer(schedule, name="schedule")
app.add_typer(questions, name="questions")
app.add_typer(kb, name="kb")
app.add_typer(answers, name="answers")
app.command()(read)
app.add_typer(apps, name="apps")
app.command()(replay)
app.add_typer(contacts, name="contacts")
app.add_typer(people, name="people")
app.add_typer(keys, name="keys")
app.command()(mcp)
app.add_typer(config, name="config")
app.command()(backup)
app.command()(restore)
app.command("devices")(devices)
app.command("eval")(evaluate)
app.add_typer(bench, name="bench")
app.command("virtual-phone")(virtual_phone)
app.command("demo-model")(demo_model)
