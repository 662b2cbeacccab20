"""``phonedesk replay``: a run that was, step by step, and as a moving picture or a sheet."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bot.chat.cards import describe_action
from bot.chat.history import film_lines, past_lines, shots_of, took_words
from bot.chat.texts import Texts, texts
from bot.commands.at_desk import with_desk
from bot.commands.common import err, fail, print_json
from bot.desk.actors import Actor, BadRequest
from bot.desk.history_port import FilmKind, FilmView, HistoryAsked, HistoryPage, PastRun, ReplayView
from bot.terminal.render import harmless

if TYPE_CHECKING:
    from bot.desk.desk import HouseDesk

LISTED = 20


def replay(
    run: Annotated[
        str, typer.Argument(metavar="[RUN]", help="The run's number or id. Without one: the newest runs.")
    ] = "",
    gif: Annotated[Path | None, typer.Option("--gif", help="Write a moving picture of it to this file.")] = None,
    sheet: Annotated[Path | None, typer.Option("--sheet", help="Write all its pictures as one JPEG.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show a run again, step by step. Example: phonedesk replay 12 --gif run-12.gif"""
    if not run:
        if gif or sheet:
            fail(BadRequest("Which run is to be written?", advice="Give its number, see: phonedesk replay"))
        _show_list(as_json)
        return
    wanted: list[tuple[FilmKind, Path]] = []
    if gif is not None:
        wanted.append(("gif", gif))
    if sheet is not None:
        wanted.append(("sheet", sheet))

    async def looked(desk: HouseDesk, me: Actor) -> tuple[ReplayView, FilmView | None]:
        from bot.replay.film import MOST_FRAMES

        view = await desk.history.replay(me, run)
        return view, await desk.history.film(view.run.id, most=MOST_FRAMES) if wanted else None

    (view, film), lang = with_desk(looked)
    words = texts(lang)
    if as_json:
        print_json(_plain(view))
    else:
        _show(view, words)
    for kind, file in wanted if film is not None else ():
        _write(film, kind, file, words)


def _show_list(as_json: bool) -> None:
    async def listed(desk: HouseDesk, me: Actor) -> HistoryPage:
        return await desk.history.runs(me, HistoryAsked(), limit=LISTED)

    page, lang = with_desk(listed)
    words = texts(lang)
    if as_json:
        print_json([_plain_past(past) for past in page.runs])
        return
    console = Console()
    table = Table(show_header=False, box=None, padding=(0, 1))
    for past in page.runs:
        head, said = past_lines(past, words)
        table.add_row(Text(f"#{past.number}"), Text(harmless(f"{head.text}\n{said.text}")))
    console.print(table if page.runs else Text(words.get("history.empty")))


def _plain_past(past: PastRun) -> dict[str, Any]:
    return asdict(past) | {
        "status": past.status.value,
        "at": past.at.isoformat(timespec="seconds"),
        "sent": [{"contact": contact, "text": text} for contact, text in past.sent],
    }


def _plain(view: ReplayView) -> dict[str, Any]:
    """The run as plain data, with its steps."""
    run = view.run
    return {
        "number": view.number,
        "id": run.id,
        "task": run.task,
        "status": run.status.value,
        "serial": run.serial,
        "by": run.by,
        "message": run.message,
        "created_at": run.created_at.isoformat(timespec="seconds") if run.created_at else None,
        "pictures": view.pictures,
        "steps": [step.model_dump(mode="json", exclude={"reply"}) for step in view.steps],
    }


def _show(view: ReplayView, words: Texts) -> None:
    """The steps, one below the other: what it did, what it thought, and what came of it."""
    run, console = view.run, Console()
    seconds = (run.ended_at - run.started_at).total_seconds() if run.ended_at and run.started_at else None
    facts = (words.get(f"card.{run.status.value}"), run.serial, run.by, took_words(seconds, words))
    console.print(Text(harmless(f"#{view.number} · {run.task}"), style="bold"))
    console.print(Text(harmless(" · ".join(fact for fact in facts if fact))))
    table = Table(show_header=False, box=None, padding=(0, 1))
    for step in view.steps:
        said = Text(harmless(describe_action(words, step)), style="" if step.ok else "red")
        for more in (step.thinking, step.result):
            if more.strip():
                said.append(f"\n{harmless(more.strip())}", style="dim")
        table.add_row(Text(str(step.index)), said)
    console.print(table if view.steps else Text(words.get("replay.steps_gone")))
    if run.message:
        console.print(Text(harmless(run.message)))


def _write(film: FilmView | None, kind: FilmKind, file: Path, words: Texts) -> None:
    """What was wanted, as a file of exactly that kind; exit code 2 where it cannot be made or written."""
    from bot.replay.film import make_film

    made = make_film(shots_of(film, words), kind) if film is not None else None
    if film is None or made is None:
        fail(BadRequest("This run has no pictures.", advice="They are kept for PHONEDESK_KEEP_DAYS."))
    if kind == "gif" and made.kind != "gif":
        fail(BadRequest("No GIF can be made of this run.", advice="Take --sheet: one picture, or too large a film."))
    try:
        file.write_bytes(made.files[0])
    except OSError as error:
        fail(BadRequest(f"{file} cannot be written: {error.strerror}.", advice="Give another place."))
    written = words.get("replay.written", file=str(file), frames=made.frames, size=made.total / 1e6)
    lines = film_lines(film, made, kind, words)[2:]
    err.print("\n".join([written, *(line.text for line in lines)]), markup=False, highlight=False)
