"""``phonedesk init``: sets up a desk from nothing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from agent_core.errors import ConfigInvalid
from bot.app.settings.files import ENV_FILE
from bot.channels.cli.commands.common import Exit, fail
from bot.channels.cli.terminal.console import Console, Text
from bot.channels.cli.terminal.language import speak, spoken_language

if TYPE_CHECKING:
    from bot.app.setup.interview import Interview


def init(lang: Literal["zh", "en"] | None = None) -> None:
    """Ask for the needed settings, write ``.env``, and check everything."""
    from bot.app.setup.interview import OLD_ENV_FILE, Interview, write_env
    from bot.app.setup.texts import SetupTexts
    from bot.channels.cli.commands.doctor import check_all
    from bot.channels.cli.terminal.input import TerminalForm

    console = Console()
    spoken = lang or spoken_language()
    words = SetupTexts(spoken)
    if not (sys.stdin.isatty() and console.is_terminal):
        speak(lang)
        fail(ConfigInvalid("It asks questions, so it needs a terminal.", key="init_no_terminal"))
    folder = Path.cwd()
    talk = Interview(TerminalForm(console), spoken)
    console.print(Text(words.get("output.begin", folder=folder)))
    try:
        values = talk.run()
        wanted = _confirmed(talk, folder)
    except (EOFError, KeyboardInterrupt):
        wanted = False
    words = talk.words
    speak(talk.lang)
    if not wanted:
        console.print(Text("\n" + words.get("output.nothing")))
        raise typer.Exit(Exit.STOPPED)
    try:
        was_there = write_env(values, folder)
    except ConfigInvalid as error:
        fail(error)
    console.print(Text(words.get("output.written", file=folder / ENV_FILE), "green"))
    if was_there:
        console.print(Text(words.get("output.old", file=OLD_ENV_FILE)))
    over = talk.over()
    for name, place in over.items():
        console.print(
            Text(words.get(f"output.over_{place.layer}", name=name, place=place.where), "yellow"), soft_wrap=True
        )
    if not talk.may_ask_servers(over):
        console.print(Text(words.get("output.not_checked"), "yellow"), soft_wrap=True)
        raise typer.Exit(Exit.FAILED)
    console.print(Text("\n" + words.get("output.checking"), "bold"))
    failed = check_all(talk.lang, console)
    console.print(Text("\n" + words.get("next.title"), "bold"))
    for step in talk.next_steps(failed=failed):
        console.print(Text(f"  {words.get(f'next.{step}', port=talk.phone_port)}"), soft_wrap=True)
    raise typer.Exit(Exit.FAILED if failed else Exit.OK)


def _confirmed(talk: Interview, folder: Path) -> bool:
    """Show the values to write, and ask whether to write them."""
    words = talk.words
    talk.form.say("\n" + words.get("output.summary", file=folder / ENV_FILE))
    for line in talk.summary():
        talk.form.say(f"  {line}")
    options = [words.get("output.yes"), words.get("output.no")]
    wrong = words.get("output.no_option", most=len(options))
    return talk.form.choose(words.get("output.write"), options, usual=0, wrong=wrong) == 0
