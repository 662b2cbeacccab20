"""The measured server, built as ``phonedesk serve`` builds it, from its environment: ``python -m`` this module.

Each line on standard input is a ``BenchRun``, each line on standard output its result; the first line is written when
every phone is there.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from bot.app import logs
from bot.app.memory import pictures_given_back
from bot.app.server import Server, server
from bot.app.settings.loading import load
from bot.channels.cli.terminal.console import print_json
from bot.desk.actors import Actor, Role
from bot.desk.context import CONSOLE
from bot.tools.bench.usage import usage
from storage.runs import RunRow

LOOK_SECONDS = 0.05


class BenchRun(BaseModel):
    """An order to the measured server.

    tasks: submit these (serial and task), one every ``every`` seconds, and wait until all are over.
    options: the options of each run, such as those of a sweep.
    idle: without tasks, do nothing for this many seconds.
    live: meanwhile show the phone's screen this often a second, as the console does for whoever looks.
    """

    model_config = ConfigDict(extra="forbid")

    tasks: list[tuple[str, str]] = []
    options: dict[str, Any] = {}
    every: float = 0.0
    idle: float = 0.0
    live: float = 0.0
    patience: float = 600.0


class RunSeen(BaseModel):
    """A run's result. ``delay``: seconds from its submission until its first attempt began; None if none did."""

    serial: str
    task: str
    phone: str
    status: str
    message: str
    delay: float | None


class Seen(BaseModel):
    """The result of an order.

    seconds: from the first submission to the end of the last run.
    cpu: seconds of a core meanwhile.
    reads, writes: transactions with the database, without those that look whether the runs are over.
    """

    seconds: float
    cpu: float
    resident: float
    peak: float
    descriptors: int
    threads: int
    reads: int
    writes: int
    runs: list[RunSeen]


async def _do(running: Server, order: BenchRun) -> Seen:
    loop, before = asyncio.get_running_loop(), usage()
    begun, db = loop.time(), running.desk.context.db
    reads, writes = db.reads, db.writes
    seen: list[RunSeen] = []
    looks = 0
    if order.tasks:
        ids = []
        for number, (serial, task) in enumerate(order.tasks):
            await asyncio.sleep(max(0.0, begun + number * order.every - loop.time()))
            ids.append(await running.desk.context.runs.submit(task, serial=serial, options=order.options))
        async with asyncio.timeout(order.patience):
            rows, looks = await _over(running, ids)
        seen = [_run(row, *asked) for row, asked in zip(rows, order.tasks, strict=True)]
    elif order.live:
        await _look(running, order.idle, order.live)
    else:
        await asyncio.sleep(order.idle)
    seconds, after = loop.time() - begun, usage()
    return Seen(
        seconds=seconds,
        cpu=after.cpu - before.cpu,
        resident=after.resident,
        peak=after.peak,
        descriptors=after.descriptors,
        threads=after.threads,
        reads=db.reads - reads - looks,
        writes=db.writes - writes,
        runs=seen,
    )


async def _look(running: Server, seconds: float, rate: float) -> None:
    """Look at the phone's screen through the desk, ``rate`` times a second."""
    loop, viewer = asyncio.get_running_loop(), Actor("1", CONSOLE, "1", "bench", "en", Role.OWNER, looks=True)
    begun = loop.time()
    for number in range(round(seconds * rate)):
        await asyncio.sleep(max(0.0, begun + number / rate - loop.time()))
        await running.desk.phones.screenshot(viewer)


async def _over(running: Server, ids: Sequence[str]) -> tuple[list[RunRow], int]:
    """Return the runs once every one is over, or waits for a person, and how many reads it took to know."""
    context, looks = running.desk.context, 0
    while True:
        waiter = context.db.signal("runs").waiter()
        rows = [await context.runs.get(run_id) for run_id in ids]
        looks += len(ids)
        if all(row is not None and (row.final or (row.status == "waiting" and not row.attempt_due_at)) for row in rows):
            return [row for row in rows if row is not None], looks
        await waiter.wait(1.0)
        await asyncio.sleep(LOOK_SECONDS)


def _run(row: RunRow, serial: str, task: str) -> RunSeen:
    return RunSeen(
        serial=serial,
        task=task,
        phone=row.serial,
        status=row.status,
        message=row.message,
        delay=(row.started_at - row.created_at).total_seconds() if row.started_at is not None else None,
    )


async def _until_there(running: Server, phones: int) -> None:
    while running.work is not None and len(await running.work.host.look()) < phones:  # noqa: ASYNC110 - adb tells no event
        await asyncio.sleep(LOOK_SECONDS)


async def _lines() -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=2**24)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


async def main() -> None:
    settings = load()
    logs.configure(settings.log_level)  # to standard error, because standard output is read by the parent
    orders = await _lines()
    async with pictures_given_back(), server(settings, load) as running:
        await _until_there(running, len(settings.device.connect))
        print_json({"up": True}, indent=None)
        async for line in orders:
            seen = await _do(running, BenchRun.model_validate_json(line))
            print_json(seen.model_dump(mode="json"), indent=None)


if __name__ == "__main__":
    asyncio.run(main())
