"""What the model was asked at each step of a run, and what it was shown."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision: str | None = "0015"
branch_labels: str | None = None
depends_on: str | None = None

TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "trajectories",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.Column("picture", sa.Text(), nullable=False, server_default=""),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "step", name=op.f("pk_trajectories")),
    )
    op.create_index(op.f("ix_trajectories_created_at"), "trajectories", ["created_at"])
    op.create_table(
        "trajectory_pictures",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("jpeg", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "digest", name=op.f("pk_trajectory_pictures")),
    )
    op.create_index(op.f("ix_trajectory_pictures_created_at"), "trajectory_pictures", ["created_at"])


def downgrade() -> None:
    op.drop_table("trajectory_pictures")
    op.drop_table("trajectories")
