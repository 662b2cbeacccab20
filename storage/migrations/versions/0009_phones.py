"""The phones that were seen, with their models."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision: str | None = "0008"
branch_labels: str | None = None
depends_on: str | None = None


def upgrade() -> None:
    op.create_table(
        "phones",
        sa.Column("serial", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False, server_default=""),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("serial", name=op.f("pk_phones")),
    )
    # A run whose phone was never there has none of these either.
    op.execute(
        "INSERT INTO phones (serial, model, seen_at) SELECT serial, '', MAX(started_at) FROM runs "
        "WHERE serial <> '' AND started_at IS NOT NULL GROUP BY serial"
    )


def downgrade() -> None:
    op.drop_table("phones")
