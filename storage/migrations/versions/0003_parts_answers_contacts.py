"""Replies in parts and by question, what the answer log shows, and contacts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision: str | None = "0002"
branch_labels: str | None = None
depends_on: str | None = None

TIME = sa.DateTime(timezone=True)
JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    op.add_column("replies", sa.Column("cluster", JSON))
    op.add_column("replies", sa.Column("parts", JSON))
    op.add_column("replies", sa.Column("part", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("replies", sa.Column("app_version", sa.Text(), nullable=False, server_default=""))
    op.add_column("answers", sa.Column("rated_by", sa.Text(), nullable=False, server_default=""))
    op.add_column("answers", sa.Column("rated_at", TIME))
    op.add_column("answers", sa.Column("ledger_id", sa.BigInteger()))
    op.add_column("answers", sa.Column("before_picture_id", sa.BigInteger()))
    op.add_column("answers", sa.Column("after_picture_id", sa.BigInteger()))
    op.create_index(op.f("ix_answers_ledger_id"), "answers", ["ledger_id"], unique=True)
    op.create_table(
        "contacts",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("serial", sa.Text(), server_default="", nullable=False),
        sa.Column("app", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("number", sa.Text(), server_default="", nullable=False),
        sa.Column("tags", JSON, nullable=False),
        sa.Column("note", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_contacts")),
        sa.UniqueConstraint("serial", "app", "name", name=op.f("uq_contacts_serial_app_name")),
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    op.drop_table("contacts")
    op.drop_index(op.f("ix_answers_ledger_id"), table_name="answers")
    for name in ("after_picture_id", "before_picture_id", "ledger_id", "rated_at", "rated_by"):
        op.drop_column("answers", name)
    for name in ("app_version", "part", "parts", "cluster"):
        op.drop_column("replies", name)
