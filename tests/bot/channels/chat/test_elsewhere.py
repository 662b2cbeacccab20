"""Errors whose advice names what can be called where they are read."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from agent_core.errors import ConfigInvalid
from agent_core.texts import catalogue as agent_texts
from bot.channels.chat import elsewhere
from bot.channels.chat.elsewhere import for_programs, in_terminal
from bot.channels.chat.texts import LANGUAGES, Lang, catalogue, texts
from bot.channels.cli.main import app

CHAT_ONLY = {"old_button", "old_schedule_button"}  # of buttons
ON_PAGES = {"console_link"}  # of the console, which names both


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
    named = {*elsewhere._SHOWS.values(), *(f"{one} {part}" for one, has in elsewhere._HAS.items() for part in has)}
    assert named - there == set()


def _commands(group: Any, before: str = "") -> Iterator[str]:
    for name, command in group.commands.items():
        yield before + name
        yield from _commands(command, f"{before}{name} ") if hasattr(command, "commands") else ()


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("key", ["run.asked_elsewhere", "run.stuck_elsewhere"])
def test_who_has_no_bot_reads_first_what_they_can_type(lang: Lang, key: str) -> None:
    """The outcome of a run is kept as one text for the terminal and the chat."""
    said = agent_texts(lang)[key]
    assert -1 < said.find("phonedesk questions answer {id}") < said.find("/ask")


@pytest.mark.parametrize("lang", LANGUAGES)
def test_no_error_sends_the_terminal_to_the_chat(lang: str) -> None:
    said = {key: in_terminal(text) for key, text in catalogue(lang).items() if key.startswith("errors.")}  # type: ignore[arg-type]
    left = {key.removeprefix("errors.") for key, text in said.items() if re.search(r"(?<![\w/])/(?!v1\b)[a-z]", text)}
    assert left - CHAT_ONLY - ON_PAGES == set()


def test_what_the_system_says_is_told_in_the_persons_language() -> None:
    for code, why in (
        (errno.EADDRINUSE, "已经被别的程序占用"),
        (errno.ENOENT, "没有这个文件夹或文件"),
        (errno.EMFILE, os.strerror(errno.EMFILE)),
    ):
        error = ConfigInvalid("x", key="port_used", port=80, why=OSError(code, os.strerror(code)))
        assert texts("zh").error(error).startswith(f"端口 80 用不了：{why}。")
    assert "内容不对" in texts("zh").error(ConfigInvalid("x", key="backup_unusable", name="f", why=ValueError("bad")))
