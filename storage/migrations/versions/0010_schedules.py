"""Schedules: their own words, what became of the newest tick, a tick that waits, and one that was removed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision: str | None = "0009"
branch_labels: str | None = None
depends_on: str | None = None

TEXTS = {"said": "", "overlap": "skip", "last_what": "", "last_run_id": ""}
TIMES = ("queued_for", "last_at", "removed_at")


def upgrade() -> None:
    for name, value in TEXTS.items():
        op.add_column("schedules", sa.Column(name, sa.Text(), nullable=False, server_default=value))
    for name in TIMES:
        op.add_column("schedules", sa.Column(name, sa.DateTime(timezone=True)))


def downgrade() -> None:
    for name in (*TEXTS, *TIMES):
        op.drop_column("schedules", name)
