"""A cancelled write leaves no lock behind."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy.exc import DBAPIError

from storage.engine import Database
from storage.events import Events
from storage.messages import InboxTable
from storage.repository import shielded
from storage.runs import Runs


async def test_a_cancelled_write_does_not_block_the_next_one(tmp_path: Path) -> None:
    db = Database(f"sqlite:///{tmp_path / 'desk.db'}")
    await db.migrate()
    inbox = InboxTable(db)
    for n in range(150):
        cut = asyncio.create_task(inbox.store(n, "{}"))
        await asyncio.sleep(0.00002 * n)
        cut.cancel()
        with suppress(asyncio.CancelledError):
            await cut
        async with asyncio.timeout(5):
            await inbox.store(10_000 + n, "{}")
    await db.close()


async def test_what_was_begun_is_done_and_the_cancellation_comes_after_it(tmp_path: Path) -> None:
    db = Database(f"sqlite:///{tmp_path / 'desk.db'}")
    await db.migrate()
    inbox = InboxTable(db)
    writing = asyncio.create_task(inbox.store(1, "{}"))
    await asyncio.sleep(0)
    writing.cancel()
    with suppress(asyncio.CancelledError):
        await writing
    assert writing.cancelled()
    assert await inbox.get(1) is not None
    await db.close()


def test_no_public_method_of_a_repository_may_be_cut() -> None:
    cut = {
        name
        for repository in (Events, InboxTable, Runs)
        for name, method in vars(repository).items()
        if inspect.iscoroutinefunction(method) and not name.startswith("_") and not hasattr(method, "__wrapped__")
    }
    assert cut == set()


class Lost(Exception):
    """As PostgreSQL's driver tells of it."""

    sqlstate = "40P01"


@shielded
class Unlucky:
    def __init__(self, *, times: int) -> None:
        self.left = times

    async def write(self) -> str:
        if self.left:
            self.left -= 1
            raise DBAPIError("UPDATE", None, Lost("deadlock detected"))
        return "written"


async def test_who_was_chosen_to_end_a_deadlock_tries_once_more() -> None:
    assert await Unlucky(times=1).write() == "written"
    with pytest.raises(DBAPIError):
        await Unlucky(times=2).write()
