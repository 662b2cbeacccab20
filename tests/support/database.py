"""Databases for tests, quicker than by migrating and filling each: migrating takes 40 ms, and has tests of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from storage.engine import Clock, Database, utc_now
from tests.support.statements import share_compiled

Fill = Callable[[Database], Awaitable[None]]
_made: dict[Fill, bytes] = {}  # the files of this process, once there are some


async def empty_sqlite(path: Path) -> str:
    """The URL of an empty SQLite database of this release, made at ``path``."""
    return await filled_sqlite(path, Database.migrate)


async def filled_sqlite(path: Path, fill: Fill, clock: Clock = utc_now) -> str:
    """The URL of a SQLite database, made at ``path``, that holds what ``fill`` puts into it.

    Each ``fill`` is called once in a process, at the time of that ``clock``; its file is copied from then on.
    """
    share_compiled()
    if fill in _made:
        path.write_bytes(_made[fill])
        return f"sqlite:///{path}"
    url = f"sqlite:///{path}" if fill is Database.migrate else await empty_sqlite(path)
    db = Database(url, clock=clock)
    await fill(db)
    await db.close()  # the last one out leaves nothing outside the file
    _made[fill] = path.read_bytes()
    return url
