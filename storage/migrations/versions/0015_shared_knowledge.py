"""Knowledge entries that several machines share."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from storage.tables import Json

revision = "0015"
down_revision: str | None = "0014"
branch_labels: str | None = None
depends_on: str | None = None


def upgrade() -> None:
    op.create_table(
        "knowledge_entries",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("live", sa.Boolean(), nullable=False),
        sa.Column("entry", Json),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_knowledge_entries")),
    )
    op.create_index(op.f("ix_knowledge_entries_revision"), "knowledge_entries", ["revision"])
    op.create_table(
        "knowledge_revision",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("mark", sa.Text(), nullable=False),
        sa.Column("marks", Json, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_knowledge_revision")),
    )


def downgrade() -> None:
    op.drop_table("knowledge_revision")
    op.drop_table("knowledge_entries")
