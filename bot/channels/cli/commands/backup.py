"""``phonedesk backup`` and ``phonedesk restore``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bot.channels.cli.commands.common import run_async, settings_from
from bot.channels.cli.commands.output import Json
from bot.channels.cli.terminal.console import Console, Text, print_json
from bot.channels.cli.terminal.language import texts


def backup(
    to: Path,
    as_json: Json = False,
) -> None:
    """Back up the data folder into one file, even while a server runs."""
    from bot.app.backup import DATABASE, back_up

    settings = settings_from()
    made = run_async(lambda: back_up(settings, to))
    words = texts(settings.lang)
    if as_json:
        print_json(
            {"file": str(made.file), "made_at": made.made_at.isoformat(), "parts": [DATABASE], "bytes": made.bytes}
        )
    else:
        Console().print(Text(words.get("backup.made", file=made.file, size=f"{made.bytes / 1e6:.1f}")))


def restore(
    file: Annotated[Path | None, typer.Argument(show_default=False)] = None,
    as_json: Json = False,
) -> None:
    """Replace the data folder by a backup and keep the former one. No server may run meanwhile."""
    from bot.app.backup import DATABASE
    from bot.app.backup import restore as put_back

    settings = settings_from()
    done = run_async(lambda: put_back(settings, file))
    if as_json:
        held = [{"id": run.id, "task": run.task, "serial": run.serial, "status": run.status} for run in done.held]
        before = str(done.before) if done.before else None
        made_at = done.made_at.isoformat() if done.made_at else None
        parts = [DATABASE] if made_at else []
        print_json({"made_at": made_at, "parts": parts, "held": held, "before": before})
        return
    words, console = texts(settings.lang), Console()
    if done.made_at is not None:
        console.print(Text(words.get("backup.restored", at=f"{done.made_at.astimezone():%Y-%m-%d %H:%M}")))
    else:
        console.print(Text(words.get("backup.settled")))
    if done.before is not None:
        console.print(Text(words.get("backup.before", folder=done.before)))
    if done.held:
        console.print(Text(words.get("backup.held", count=len(done.held))))
    for run in done.held:
        console.print(Text(f"  {run.id}  {run.serial}  {run.task}"))
