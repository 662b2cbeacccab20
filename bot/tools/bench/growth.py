"""What runs leave behind: ``phonedesk bench growth`` measures the files of the data folder, table by table, and
``phonedesk bench soak`` the server's memory, descriptors and threads after many runs.
"""

from __future__ import annotations

import math
import sqlite3
import statistics
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from bot.tools.bench.scale import measured, problems, task
from bot.tools.bench.served import BenchRun, RunSeen
from bot.tools.bench.usage import Say, say_nothing

WARM_UP = 3  # runs before the first measurement: afterwards tables and indexes have their first pages
REST_SECONDS = 2.0  # by then everything that follows a run is written
SOAK_WARM_UP = 50  # runs before the first measurement: by then caches and pools have filled
LOOKS = 10  # measurements after the first one
LOOKS_COMPARED = 3  # at the beginning and at the end
SOAK_REST_SECONDS = 12.0  # by then the memory that the runs needed has been given back
MORE_MEMORY, MORE_OTHERS = 0.1, 3  # no leak: a share of the memory; a connection or a thread of a pool
_SIZES = """
SELECT master.tbl_name, sum(stat.pgsize) FROM dbstat AS stat JOIN sqlite_master AS master ON master.name = stat.name
WHERE stat.aggregate = TRUE GROUP BY master.tbl_name
"""
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"


@dataclass(frozen=True, slots=True)
class Grown:
    """A table, with its indexes, in a file of the data folder. ``rows`` and ``bytes`` are per run."""

    file: str
    table: str
    rows: float
    bytes: float


@dataclass(frozen=True, slots=True)
class Growth:
    """The growth of a data folder by runs.

    tables: the largest first.
    others: bytes per run outside databases, such as logs.
    """

    runs: int
    tables: tuple[Grown, ...]
    others: float

    @property
    def bytes(self) -> float:
        return sum(table.bytes for table in self.tables) + self.others


@dataclass(frozen=True, slots=True)
class Kept:
    """Rows and bytes of each table of a data folder, by file and name, and the bytes outside databases."""

    tables: dict[tuple[str, str], tuple[int, int]]
    others: int

    @property
    def bytes(self) -> int:
        return sum(size for _, size in self.tables.values()) + self.others


async def growth(runs: int, *, say: Say = say_nothing) -> Growth:
    """Have one phone give ``runs`` replies, and compare the data folder before and after."""
    say("starting", phones=1)
    async with measured(1, runs + WARM_UP) as made:
        serial = made.phones[0].address

        async def reply(first: int, count: int) -> None:
            tasks = [(serial, task(0, number)) for number in range(first, first + count)]
            await made.order(BenchRun(tasks=tasks, patience=600 + 10 * count))
            await made.order(BenchRun(idle=REST_SECONDS))

        await reply(0, WARM_UP)
        before = looked(made.data)
        say("replying", runs=runs)
        await reply(WARM_UP, runs)
        after = looked(made.data)
    nothing = (0, 0)
    tables = [
        Grown(
            *key,
            (rows - before.tables.get(key, nothing)[0]) / runs,
            (size - before.tables.get(key, nothing)[1]) / runs,
        )
        for key, (rows, size) in after.tables.items()
    ]
    told = sorted((one for one in tables if one.rows or one.bytes), key=lambda one: -one.bytes)
    return Growth(runs, tuple(told), (after.others - before.others) / runs)


def looked(folder: Path) -> Kept:
    """Measure the current contents of a data folder."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for file in sorted(folder.glob("*.sqlite3")):
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            sizes: dict[str, int] = dict(connection.execute(_SIZES))
            for (name,) in connection.execute(_TABLES):
                ((rows,),) = connection.execute(f'SELECT count(*) FROM "{name}"')  # noqa: S608 - a table's own name
                found[file.name, name] = (rows, sizes.get(name, 0))
    others = [file for file in folder.rglob("*") if file.is_file() and ".sqlite3" not in file.name]
    return Kept(found, sum(file.stat().st_size for file in others))


@dataclass(frozen=True, slots=True)
class Level:
    """The server's resources at rest after ``runs`` runs. ``resident``: MiB. ``kept``: bytes of the data folder."""

    runs: int
    resident: float
    descriptors: int
    threads: int
    kept: int


@dataclass(frozen=True, slots=True)
class Soak:
    """The results of a soak.

    problems: runs that did not end as they must.
    grown: what the server holds more of than at first.
    """

    phones: int
    seconds: float
    levels: tuple[Level, ...]
    problems: tuple[str, ...]
    grown: tuple[str, ...]

    @property
    def bytes_a_run(self) -> float:
        first, last = self.levels[0], self.levels[-1]
        return (last.kept - first.kept) / (last.runs - first.runs)


async def soak(
    runs: int,
    phones: int,
    *,
    warm_up: int = SOAK_WARM_UP,
    rest: float = SOAK_REST_SECONDS,
    say: Say = say_nothing,
) -> Soak:
    """Have phones give ``warm_up`` replies, then ``runs`` more; measure after the first ones and ten times later."""
    say("starting", phones=phones)
    turns = [warm_up, *_shares(runs, LOOKS)]
    async with measured(phones, math.ceil(sum(turns) / phones)) as made:
        addresses = [phone.address for phone in made.phones]
        tasks = [(addresses[turn % phones], task(turn % phones, turn // phones)) for turn in range(warm_up + runs)]
        seen: list[RunSeen] = []
        levels: list[Level] = []
        seconds = 0.0
        for count in turns:
            say("soaking", done=len(seen), runs=len(tasks))
            now = tasks[len(seen) : len(seen) + count]
            done = await made.order(BenchRun(tasks=now, patience=600 + 10 * count))
            idle = await made.order(BenchRun(idle=rest))
            seconds += done.seconds
            seen += done.runs
            kept = looked(made.data).bytes
            levels.append(Level(len(seen), idle.resident, idle.descriptors, idle.threads, kept))
        found = problems(seen, made.phones)
    return Soak(phones, seconds, tuple(levels), tuple(found), tuple(leaks(levels)))


def leaks(levels: Sequence[Level]) -> list[str]:
    """Return what the server holds more of in the last measurements than in the first ones.

    One measurement says little: Python gives memory back when it likes, and SQLite keeps a descriptor for each
    connection that was ever open at the same time. So the medians of three measurements are compared, if there are six.
    """
    some = LOOKS_COMPARED if len(levels) >= 2 * LOOKS_COMPARED else 1
    first, last = levels[:some], levels[-some:]
    found = []
    before, after = (statistics.median(level.resident for level in part) for part in (first, last))
    if after > before * (1 + MORE_MEMORY):
        found.append(f"memory: {before:.0f} MiB at first, {after:.0f} MiB at the end")
    for name, count in (("descriptors", lambda level: level.descriptors), ("threads", lambda level: level.threads)):
        before, after = (statistics.median(map(count, part)) for part in (first, last))
        if after > before + MORE_OTHERS:
            found.append(f"{name}: {before:.0f} at first, {after:.0f} at the end")
    return found


def _shares(runs: int, parts: int) -> list[int]:
    """Split ``runs`` into at most ``parts`` parts that differ by one at most."""
    parts = min(runs, parts)
    return [runs * (part + 1) // parts - runs * part // parts for part in range(parts)]
