"""Commands of the chat, said by the names that the terminal and programs have for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from bot.channels.chat.command_names import SUBCOMMANDS, TERMINAL_COMMANDS, for_programs, in_terminal
from bot.channels.cli.main import app


def test_in_the_terminal_its_own_commands_are_named() -> None:
    assert in_terminal("用 /devices 查看已连接的手机。") == "用 phonedesk devices 查看已连接的手机。"
    assert (
        in_terminal("要改它：/kb 修改 7；用 /schedule 列表 查看")
        == "要改它：phonedesk kb edit 7；用 phonedesk schedule list 查看"
    )
    assert (
        in_terminal("/srv/run/devices, http://h/devices and 1/run stay")
        == "/srv/run/devices, http://h/devices and 1/run stay"
    )
    assert for_programs("See /devices. See /history.", devices="list_it") == "See list_it. See phonedesk replay."


def test_paths_and_what_the_terminal_has_not_stay() -> None:
    for said in ("The log file /run/x.log cannot be written.", "/history.db /kb-2 /run_1 /devices/", "/kb 列表"):
        assert in_terminal(said) == said
    assert for_programs("/devices/x is no phone; /devices.", devices="list_it") == "/devices/x is no phone; list_it."


def test_every_command_it_names_is_there() -> None:
    there = set(_commands(get_command(app)))
    named = {*TERMINAL_COMMANDS.values(), *(f"{one} {part}" for one, has in SUBCOMMANDS.items() for part in has)}
    assert named - there == set()


def _commands(group: Any, before: str = "") -> Iterator[str]:
    for name, command in group.commands.items():
        yield before + name
        yield from _commands(command, f"{before}{name} ") if hasattr(command, "commands") else ()
