"""``phonedesk console``: a link that logs the owner at this machine in to the console."""

from __future__ import annotations

from typing import Annotated

import typer

from bot.channels.cli.commands.at_desk import with_desk
from bot.channels.cli.terminal.console import Console, Text, print_json
from bot.channels.cli.terminal.language import texts


def console(as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
    """Print a log-in link; it can be used once, within ten minutes."""
    link, lang = with_desk(lambda desk, me: desk.console.link(me))
    if as_json:
        print_json({"link": link})
        return
    Console().print(Text(link), soft_wrap=True)
    Console(stderr=True).print(Text(texts(lang).get("console.hint")))
