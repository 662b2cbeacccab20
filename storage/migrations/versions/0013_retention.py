"""What is old is found, and deleted, without reading everything."""

from __future__ import annotations

from alembic import op

revision = "0013"
down_revision: str | None = "0012"
branch_labels: str | None = None
depends_on: str | None = None


def upgrade() -> None:
    op.create_index(op.f("ix_events_created_at"), "events", ["created_at"])
    op.create_index(op.f("ix_events_picture_id"), "events", ["picture_id"])  # whoever deletes a picture looks for it
    op.create_index(op.f("ix_requests_created_at"), "requests", ["created_at"])


def downgrade() -> None:
    op.drop_index(op.f("ix_requests_created_at"), "requests")
    op.drop_index(op.f("ix_events_picture_id"), "events")
    op.drop_index(op.f("ix_events_created_at"), "events")
