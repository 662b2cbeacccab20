"""The timings of the steps of one run or many, and their steps as lines of JSON."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from agent_core.loop.trajectory import picture_url
from agent_core.session import StepRecord
from bot.channels.chat.texts import Texts
from bot.channels.cli.commands.at_desk import with_desk
from bot.channels.cli.files import check_new, folder, write, written
from bot.channels.cli.terminal.console import Console, Text, err, print_data, print_json
from bot.channels.cli.terminal.language import texts
from bot.desk.actors import Actor, BadRequest
from bot.desk.history_views import HistoryAsked, RecordedStep
from bot.tools.replay.recording import covered, lines_of
from bot.tools.replay.timings import PARTS, Timings, timings_of

if TYPE_CHECKING:
    from bot.channels.cli.commands.replay import ReplayOptions
    from bot.desk.desk import Desk

MOST = 10_000  # runs
LAST = 20  # runs, if none are named
PAGE = 100
HEADS = ("phase", "count", "mean", "least", "most", "deviation")


async def _runs(desk: Desk, me: Actor, wanted: ReplayOptions) -> AsyncIterator[str]:
    """Yield the ids of the wanted runs, the newest first."""
    if wanted.run:
        yield wanted.run
        return
    left = wanted.last or (MOST if wanted.since else LAST)
    before: int | None = None
    while left > 0:
        asked = HistoryAsked(since=wanted.since)
        page = await desk.history.runs(me, asked, before=before, limit=min(PAGE, left))
        for past in page.runs:
            yield past.id
        left -= len(page.runs)
        if not page.older or not page.runs:
            return
        before = page.runs[-1].number


# Timings --------------------------------------------------------------------------------------------------------------


def show_timings(wanted: ReplayOptions) -> None:
    async def looked(desk: Desk, me: Actor) -> list[Sequence[StepRecord]]:
        found = [(await desk.history.replay(me, name)).steps async for name in _runs(desk, me, wanted)]
        if wanted.run and not any(found):
            raise BadRequest(f"The run {wanted.run} has no steps.", key="no_steps", name=wanted.run)
        return [steps for steps in found if steps]

    found, lang = with_desk(looked)
    timings, words = timings_of(found), texts(lang)
    if wanted.as_json:
        print_json(asdict(timings))
        return
    console = Console()
    counts = asdict(timings)
    del counts["phases"]
    console.print(Text(words.get("timings.of", **counts)))
    if timings.phases:
        console.print(timings_table(timings, words))


def timings_table(timings: Timings, words: Texts) -> Table:
    table = Table(box=None, padding=(0, 1))
    for name in HEADS:
        table.add_column(words.get(f"timings.head_{name}"), justify="left" if name == "phase" else "right")
    for phase in timings.phases:
        seconds = (phase.mean, phase.least, phase.most, phase.deviation)
        name = words.find(f"timings.{phase.name}", phase.name)
        style = "dim" if phase.name in PARTS else ""
        table.add_row(name, str(phase.count), *(f"{value:.3f}" for value in seconds), style=style)
    return table


# Lines ----------------------------------------------------------------------------------------------------------------


def write_lines(wanted: ReplayOptions) -> None:
    file = None if wanted.jsonl == "-" else Path(wanted.jsonl)
    lines = Lines(file, embed=wanted.embed)

    async def told(desk: Desk, me: Actor) -> None:
        check_new([file] if file else [], force=wanted.force)
        with _out(file) as write_bytes:
            async for name in _runs(desk, me, wanted):
                try:
                    view = await desk.history.recording(me, name)
                except BadRequest:
                    if wanted.run:
                        raise
                    continue  # one of many, which left no steps
                for line in lines_of(view if wanted.raw else covered(view), lines.link):
                    write_bytes(f"{line}\n".encode())
                    lines.count += 1

    _, lang = with_desk(told)
    if file is not None:
        said = texts(lang).get("replay.wrote_lines", file=file, lines=lines.count, pictures=len(lines.pictures))
        err.print(said)


@contextmanager
def _out(file: Path | None) -> Iterator[Callable[[bytes], object]]:
    """Give a function that writes to the file, or to standard output."""
    if file is None:
        yield print_data
        return
    with written(file) as out:
        yield out.write


class Lines:
    """The pictures of the lines: inside them, or once each in a folder beside the file."""

    def __init__(self, file: Path | None, *, embed: bool) -> None:
        self.count = 0
        self.pictures: set[str] = set()
        self._folder = file.with_name(f"{file.stem}.pictures") if file is not None else None
        self._embed = embed

    def link(self, step: RecordedStep) -> str:
        """Return the picture's link in its line: a data URL, a path from the file's folder, or "" if there is none."""
        if step.picture is None:
            return ""
        if self._embed:
            return picture_url(step.picture)
        if self._folder is None:
            return ""
        name = f"{sha256(step.picture).hexdigest()[:24]}.jpg"  # of the written bytes: covered, it is another picture
        if name not in self.pictures:
            folder(self._folder)
            write(self._folder / name, step.picture)
            self.pictures.add(name)
        return f"{self._folder.name}/{name}"
