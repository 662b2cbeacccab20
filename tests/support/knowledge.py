"""The embedded knowledge base in a database of its own."""

from __future__ import annotations

from pathlib import Path

from knowledge.embedded import EmbeddedKnowledge
from storage.engine import Database
from tests.support.database import empty_sqlite


class OwnKnowledge(EmbeddedKnowledge):
    """The entries in a database that is closed with them."""

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self.db = db

    async def close(self) -> None:
        await self.db.close()


async def open_knowledge(path: Path) -> OwnKnowledge:
    """The entries in the SQLite database at ``path``, which is made if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    url = f"sqlite:///{path}" if path.exists() else await empty_sqlite(path)
    return OwnKnowledge(Database(url))
