"""The tables of the first release, which a new database gets from ``storage.tables``."""

from __future__ import annotations

revision = "20261124c"
down_revision: str | None = None
branch_labels: str | None = None
depends_on: str | None = None


def upgrade() -> None:
    """Do nothing: ``Database.migrate`` has made the tables."""
