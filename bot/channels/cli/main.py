"""The command line. Each command is a module of ``bot.channels.cli.commands``, imported when it is called.

The list of commands needs none of them, so that ``phonedesk --help`` and shell completion answer at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any, cast

import typer
from typer._click.shell_completion import CompletionItem
from typer.core import TyperGroup
from typer.main import get_command_from_info, get_group_from_info
from typer.models import CommandInfo, TyperInfo

from bot.app.release import NAME
from bot.channels.cli.terminal.console import Console
from bot.channels.cli.terminal.help import Group, HelpedCommand, Root
from bot.channels.cli.terminal.language import spoken_language
from bot.channels.cli.terminal.texts import catalogue

# Each command's module, followed by a colon and the attribute if its name differs; in order of use, under the headings
# of the help (``groups`` in its texts).
COMMANDS: dict[str, dict[str, str]] = {
    "start": {
        "demo": "demo",
        "init": "init",
        "doctor": "doctor",
        "devices": "devices",
        "serve": "serve",
        "console": "console",
        "pair": "pair",
    },
    "work": {"run": "run", "sweep": "sweep", "schedule": "schedule", "questions": "questions", "replay": "replay"},
    "knowledge": {"kb": "kb", "answers": "answers", "contacts": "contacts"},
    "access": {"people": "people", "keys": "keys", "webhooks": "webhooks", "alerts": "alerts", "mcp": "mcp"},
    "operate": {"config": "config", "backup": "backup", "restore": "backup", "worker": "worker"},
    "screens": {"apps": "apps", "read": "read"},
    "develop": {"virtual-phone": "servers", "demo-model": "servers", "eval": "eval:evaluate", "bench": "bench"},
}
_PLACES = {name: module for commands in COMMANDS.values() for name, module in commands.items()}


class _Commands(Mapping[str, Any]):
    """Every command by name, imported when it is accessed."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = _load(name, _PLACES[name])
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_PLACES)

    def __len__(self) -> int:
        return len(_PLACES)

    def __contains__(self, name: object) -> bool:
        return name in _PLACES


def _load(name: str, place: str) -> Any:
    """Import a command, and wrap it in the object that Typer runs."""
    module, _, attribute = place.partition(":")
    found = getattr(import_module(f"bot.channels.cli.commands.{module}"), attribute or name.replace("-", "_"))
    if isinstance(found, typer.Typer):
        _with_help(found)
        group = TyperInfo(found, name=name, cls=Group)
        return get_group_from_info(group, pretty_exceptions_short=True, rich_markup_mode=None, suggest_commands=True)
    command = CommandInfo(name, cls=HelpedCommand, callback=found)
    return get_command_from_info(command, pretty_exceptions_short=True, rich_markup_mode=None)


def _with_help(group: typer.Typer) -> None:
    """Have the commands of a group, and of the groups inside, give our help."""
    for part in group.registered_commands:
        part.cls = HelpedCommand
    for inside in group.registered_groups:
        inside.cls = Group
        if inside.typer_instance is not None:
            _with_help(inside.typer_instance)


class Phonedesk(Root):
    """The group of all commands."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = cast("Any", _Commands())  # Typer expects a dict, but only reads it

    def headings(self, ctx: Any) -> dict[str, list[str]]:
        return {heading: list(commands) for heading, commands in COMMANDS.items()}

    def list_commands(self, ctx: object) -> list[str]:
        return list(_PLACES)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[CompletionItem]:
        """Complete a command's name, or an option. Typer's own method would import every command for its summary."""
        words = catalogue(spoken_language())
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        options = super(TyperGroup, self).shell_complete(ctx, incomplete)
        return [*(CompletionItem(name, help=words[f"{name}.summary"]) for name in names), *options]


def say_release(wanted: bool) -> None:
    """Print the release and exit, if that is wanted."""
    if wanted:
        from bot.app.release import release

        Console().print(f"phonedesk {release() or catalogue(spoken_language())['usage.not_installed']}")
        raise typer.Exit


def phonedesk(version: Annotated[bool, typer.Option("--version", callback=say_release, is_eager=True)] = False) -> None:
    """Take the options of ``phonedesk`` itself."""


app = typer.Typer(
    name=NAME,
    cls=Phonedesk,
    callback=phonedesk,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
