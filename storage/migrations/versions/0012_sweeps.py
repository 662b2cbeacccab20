"""Sweeps: runs that have runs of their own, what their looks remember, and who has been waiting since when."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0012"
down_revision: str | None = "0011"
branch_labels: str | None = None
depends_on: str | None = None

TIME = sa.DateTime(timezone=True)
JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    op.add_column("runs", sa.Column("parent_id", sa.Text(), nullable=False, server_default=""))
    op.create_index(op.f("ix_runs_parent_id"), "runs", ["parent_id"])
    op.create_table(
        "sweeps",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("serial", sa.Text(), nullable=False),
        sa.Column("app", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("contacts", sa.Integer(), nullable=False),
        sa.Column("started", sa.Integer(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("details", JSON, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_sweeps")),
    )
    op.create_index(op.f("ix_sweeps_created_at"), "sweeps", ["created_at"])
    op.create_table(
        "sweep_lists",
        sa.Column("serial", sa.Text(), nullable=False),
        sa.Column("app", sa.Text(), nullable=False),
        sa.Column("memory", JSON, nullable=False),
        sa.Column("looked_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("serial", "app", name=op.f("pk_sweep_lists")),
    )
    op.create_table(
        "contact_marks",
        sa.Column("serial", sa.Text(), nullable=False),
        sa.Column("app", sa.Text(), nullable=False),
        sa.Column("contact", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False, server_default=""),
        sa.Column("waiting_since", TIME),
        sa.Column("run_id", sa.Text(), nullable=False, server_default=""),
        sa.Column("tries", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("swept_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("serial", "app", "contact", name=op.f("pk_contact_marks")),
    )


def downgrade() -> None:
    for name in ("contact_marks", "sweep_lists", "sweeps"):
        op.drop_table(name)
    op.drop_index(op.f("ix_runs_parent_id"), "runs")
    op.drop_column("runs", "parent_id")
