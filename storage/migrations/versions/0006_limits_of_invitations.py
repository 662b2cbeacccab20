"""The limits to phones and chats that an invitation carries."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision: str | None = "0005"
branch_labels: str | None = None
depends_on: str | None = None

JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    op.add_column("pairing_codes", sa.Column("chats", JSON))
    op.add_column("pairing_codes", sa.Column("serials", JSON))


def downgrade() -> None:
    for name in ("serials", "chats"):
        op.drop_column("pairing_codes", name)
