"""Reminders, escalation, and the further cards of a question."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision: str | None = "0003"
branch_labels: str | None = None
depends_on: str | None = None

TIME = sa.DateTime(timezone=True)
JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    op.add_column("questions", sa.Column("remind_at", TIME))
    op.add_column("questions", sa.Column("remind_seconds", sa.Float(), nullable=False, server_default="0"))
    op.add_column("questions", sa.Column("reminders", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("questions", sa.Column("escalate_at", TIME))
    op.create_table(
        "question_copies",
        sa.Column("question_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("chat", JSON, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["question_id"], ["questions.id"], name=op.f("fk_question_copies_question_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("question_id", "name", name=op.f("pk_question_copies")),
    )


def downgrade() -> None:
    op.drop_table("question_copies")
    for name in ("escalate_at", "reminders", "remind_seconds", "remind_at"):
        op.drop_column("questions", name)
