"""The topic of each phone in a forum, and who stopped a run."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision: str | None = "0006"
branch_labels: str | None = None
depends_on: str | None = None


def upgrade() -> None:
    op.add_column("runs", sa.Column("stopped_by", sa.Text(), nullable=False, server_default=""))
    op.create_table(
        "topics",
        sa.Column("chat_id", sa.Text(), nullable=False),
        sa.Column("serial", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("closed", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("chat_id", "serial", name=op.f("pk_topics")),
    )
    op.create_index(op.f("ix_topics_chat_id_thread_id"), "topics", ["chat_id", "thread_id"])


def downgrade() -> None:
    op.drop_table("topics")
    op.drop_column("runs", "stopped_by")
