"""What was learnt of apps on phones."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from storage.tables.columns import Json

revision = "0019"
down_revision: str | None = "0018"
branch_labels: str | None = None
depends_on: str | None = None


def upgrade() -> None:
    op.create_table(
        "learnt_apps",
        sa.Column("serial", sa.Text(), nullable=False),
        sa.Column("app", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("data", Json, nullable=False),
        sa.Column("learnt_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("serial", "app", "version", name=op.f("pk_learnt_apps")),
    )


def downgrade() -> None:
    op.drop_table("learnt_apps")
