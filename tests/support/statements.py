"""SQL statements that are compiled once for all databases of a process.

SQLAlchemy keeps what it compiled for each engine, and every test opens engines of its own: half of the statements that
a test executed were compiled again, which took a third of the processor time of the desk's tests.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

_DRIVERS = frozenset({"aiosqlite", "asyncpg"})  # those of storage.engine, which sets all its engines up alike


class _Compiled(dict[tuple[Any, ...], Any]):
    """A ``compiled_cache`` whose keys name a kind of dialect instead of one engine's dialect."""

    def get(self, key: tuple[Any, ...], default: Any = None) -> Any:
        return super().get((type(key[0]), *key[1:]), default)

    def __setitem__(self, key: tuple[Any, ...], compiled: Any) -> None:
        super().__setitem__((type(key[0]), *key[1:]), compiled)


_compiled = _Compiled()


def _use_it(connection: sa.Connection) -> None:
    if connection.dialect.driver in _DRIVERS:
        connection.execution_options(compiled_cache=_compiled)


def share_compiled() -> None:
    """Let every engine of this process use one cache, from the next connection on."""
    if not sa.event.contains(sa.Engine, "engine_connect", _use_it):
        sa.event.listen(sa.Engine, "engine_connect", _use_it)


def count() -> int:
    """Return how many statements are there."""
    return len(_compiled)
