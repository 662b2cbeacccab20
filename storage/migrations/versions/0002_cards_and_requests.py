"""Where runs and questions are shown, and what was asked for under which key."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision: str | None = "0001"
branch_labels: str | None = None
depends_on: str | None = None

TIME = sa.DateTime(timezone=True)
JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "cards",
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("subject_id", sa.Text(), nullable=False),
        sa.Column("chat", JSON, nullable=False),
        sa.Column("chat_id", sa.Text(), nullable=False),
        sa.Column("message_id", sa.Text(), nullable=False),
        sa.Column("picture", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.PrimaryKeyConstraint("subject", "subject_id", name=op.f("pk_cards")),
    )
    op.create_index(op.f("ix_cards_chat_id_message_id"), "cards", ["chat_id", "message_id"])
    op.create_table(
        "requests",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("subject_id", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_requests")),
    )


def downgrade() -> None:
    op.drop_table("requests")
    op.drop_index(op.f("ix_cards_chat_id_message_id"), table_name="cards")
    op.drop_table("cards")
