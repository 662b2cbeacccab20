"""Where digests go and which are out, and what alerts watch."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision: str | None = "0004"
branch_labels: str | None = None
depends_on: str | None = None

TIME = sa.DateTime(timezone=True)
JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "digest_chats",
        sa.Column("chat_key", sa.Text(), nullable=False),
        sa.Column("chat", JSON, nullable=False),
        sa.Column("daily", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("weekly", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("person_id", sa.Integer(), nullable=False),
        sa.Column("changed_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("chat_key", name=op.f("pk_digest_chats")),
    )
    op.create_table(
        "digests",
        sa.Column("chat_key", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("planned_at", TIME, nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("chat_key", "kind", "planned_at", name=op.f("pk_digests")),
    )
    op.create_table(
        "watched",
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("down_since", TIME),
        sa.Column("seen_down_at", TIME),
        sa.Column("told_at", TIME),
        sa.Column("why", sa.Text(), nullable=False, server_default=""),
        sa.Column("looked_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("subject", name=op.f("pk_watched")),
    )


def downgrade() -> None:
    for name in ("watched", "digests", "digest_chats"):
        op.drop_table(name)
