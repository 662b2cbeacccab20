"""Hosts, what they see of phones, what is asked of them; which host took a run."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from storage.tables import BigId, UtcTime

revision = "0011"
down_revision: str | None = "0010"
branch_labels: str | None = None
depends_on: str | None = None


def upgrade() -> None:
    op.add_column("runs", sa.Column("host", sa.Text(), nullable=False, server_default=""))
    op.add_column("runs", sa.Column("host_leg", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("runs", sa.Column("any_phone", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_table(
        "hosts",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("release", sa.Text(), nullable=False, server_default=""),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("started_at", UtcTime(), nullable=False),
        sa.Column("heartbeat_at", UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_hosts")),
    )
    op.create_table(
        "host_phones",
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("serial", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("since", UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("host", "serial", name=op.f("pk_host_phones")),
    )
    op.create_index(op.f("ix_host_phones_serial"), "host_phones", ["serial"])
    op.create_table(
        "phone_requests",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("serial", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("jpeg", sa.LargeBinary()),
        sa.Column("error", sa.Text(), nullable=False, server_default=""),
        sa.Column("error_kind", sa.Text(), nullable=False, server_default=""),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_phone_requests")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_phone_requests_host_state"), "phone_requests", ["host", "state"])


def downgrade() -> None:
    op.drop_table("phone_requests")
    op.drop_table("host_phones")
    op.drop_table("hosts")
    for name in ("any_phone", "host_leg", "host"):
        op.drop_column("runs", name)
