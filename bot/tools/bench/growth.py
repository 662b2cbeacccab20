"""``phonedesk bench growth``: measures what a run leaves in the files of the data folder, table by table."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from bot.tools.bench.scale import measured, task
from bot.tools.bench.served import BenchRun
from bot.tools.bench.usage import Say, say_nothing

WARM_UP = 3  # runs before the first measurement: afterwards tables and indexes have their first pages
REST_SECONDS = 2.0  # by then everything that follows a run is written
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
    grown = [
        Grown(
            *key,
            (rows - before.tables.get(key, nothing)[0]) / runs,
            (size - before.tables.get(key, nothing)[1]) / runs,
        )
        for key, (rows, size) in after.tables.items()
    ]
    told = sorted((one for one in grown if one.rows or one.bytes), key=lambda one: -one.bytes)
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
