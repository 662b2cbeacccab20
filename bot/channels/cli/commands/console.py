"""``phonedesk console``: a link that logs somebody in to the console; the owner at this machine if nobody is named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bot.channels.cli.commands.at_desk import clock_runs, who_of, with_desk
from bot.channels.cli.commands.common import settings_from
from bot.channels.cli.commands.output import Json
from bot.channels.cli.terminal.console import Console, Text, print_json
from bot.channels.cli.terminal.language import texts
from bot.desk.actors import Actor

if TYPE_CHECKING:
    from bot.desk.desk import Desk


def console(
    person: Annotated[str, typer.Option("--for")] = "",
    as_json: Json = False,
) -> None:
    """Print a log-in link; it can be used once, within ten minutes, or within a day if it is for somebody else."""

    async def linked(desk: Desk, me: Actor) -> tuple[str, bool]:
        served = await clock_runs(desk)
        if not person:
            return await desk.console.link(me), served
        return await desk.console.link_for(me, await desk.team.find(me, who_of(person))), served

    (link, served), lang = with_desk(linked)
    if as_json:
        print_json({"link": link, "served": served})
        return
    words, below = texts(lang), Console(stderr=True)
    Console().print(Text(link), soft_wrap=True)
    below.print(Text(words.get("console.hint_for" if person else "console.hint")))
    if not served:
        folder = settings_from().data_dir.absolute()
        below.print(Text(words.get("console.not_served", folder=folder), "yellow"))
