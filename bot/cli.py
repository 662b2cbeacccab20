"""The command line. Each command is a module of ``bot.commands``; what it needs is imported when it is called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

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
from bot.release import release
from bot.terminal.console import Console
from bot.terminal.help import ROOT, Command, Group, Root
from bot.terminal.language import spoken_language
from bot.terminal.texts import catalogue

# In order of use, under the headings of the help (``groups`` in its texts).
COMMANDS: dict[str, dict[str, Callable[..., object] | typer.Typer]] = {
    "start": {
        "demo": demo,
        "init": init,
        "doctor": doctor,
        "devices": devices,
        "serve": serve,
        "pair": pair,
    },
    "work": {"run": run, "sweep": sweep, "schedule": schedule, "questions": questions, "replay": replay},
    "knowledge": {"kb": kb, "answers": answers, "contacts": contacts},
    "access": {"people": people, "keys": keys, "mcp": mcp},
    "operate": {"config": config, "backup": backup, "restore": restore, "worker": worker},
    "screens": {"apps": apps, "read": read},
    "develop": {"virtual-phone": virtual_phone, "demo-model": demo_model, "eval": evaluate, "bench": bench},
}


class Phonedesk(Root):
    """Every command."""

    def list_commands(self, ctx: object) -> list[str]:
        return [name for commands in COMMANDS.values() for name in commands]


def say_release(wanted: bool) -> None:
    """Print the release and end, if that is what was wanted."""
    if wanted:
        Console().print(f"phonedesk {release() or catalogue(spoken_language())['usage.not_installed']}")
        raise typer.Exit


def phonedesk(version: Annotated[bool, typer.Option("--version", callback=say_release, is_eager=True)] = False) -> None:
    """Take the options of ``phonedesk`` itself."""


def _application() -> typer.Typer:
    made = typer.Typer(
        name=ROOT,
        cls=Phonedesk,
        callback=phonedesk,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    for heading, commands in COMMANDS.items():
        for name, command in commands.items():
            if isinstance(command, typer.Typer):
                for part in command.registered_commands:
                    part.cls = Command
                made.add_typer(command, name=name, cls=Group, rich_help_panel=heading)
            else:
                made.command(name, cls=Command, rich_help_panel=heading)(command)
    return made


app = _application()
