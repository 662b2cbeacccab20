"""Which of several rows of one name is the contact's."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from storage.tables.columns import Json

revision = "0020"
down_revision: str | None = "0019"
branch_labels: str | None = None
depends_on: str | None = None


def upgrade() -> None:
    op.create_table(
        "chosen_rows",
        sa.Column("serial", sa.Text(), nullable=False),
        sa.Column("app", sa.Text(), nullable=False),
        sa.Column("contact", sa.Text(), nullable=False),
        sa.Column("data", Json, nullable=False),
        sa.Column("chosen_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("serial", "app", "contact", name=op.f("pk_chosen_rows")),
    )


def downgrade() -> None:
    op.drop_table("chosen_rows")
