"""Plans, and the conversations that they are part of."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0017"
down_revision: str | None = "0016"
branch_labels: str | None = None
depends_on: str | None = None

TIME = sa.DateTime(timezone=True)
JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "plans",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("session_key", sa.Text(), nullable=False),
        sa.Column("heartbeat_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_plans")),
    )
    op.create_table(
        "planner_sessions",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("gate", JSON),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_planner_sessions")),
    )
    op.create_index(op.f("ix_planner_sessions_updated_at"), "planner_sessions", ["updated_at"])
    op.create_table(
        "planner_items",
        sa.Column("id", BIG_ID, nullable=False, autoincrement=True),
        sa.Column("session_key", sa.Text(), nullable=False),
        sa.Column("item", JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_planner_items")),
    )
    op.create_index(op.f("ix_planner_items_session_key_id"), "planner_items", ["session_key", "id"])


def downgrade() -> None:
    op.drop_table("planner_items")
    op.drop_table("planner_sessions")
    op.drop_table("plans")
