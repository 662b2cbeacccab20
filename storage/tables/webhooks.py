"""Webhooks: the addresses that receive events, and the messages sent to them."""

from __future__ import annotations

import sqlalchemy as sa

from storage.tables.columns import BigId, Json, UtcTime, metadata

# A secret signs messages, so it is stored as it is, like those of the settings file. Numbers are never reused, because
# the audit log and the consumers of the event log name them.
webhooks = sa.Table(
    "webhooks",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("url", sa.Text, nullable=False),
    sa.Column("kinds", Json, nullable=False),  # of the events that it is sent
    sa.Column("secret", sa.Text, nullable=False),
    sa.Column("old_secret", sa.Text, nullable=False, server_default=""),  # signs too, until old_until
    sa.Column("old_until", UtcTime),
    sa.Column("failures", sa.Integer, nullable=False, server_default="0"),  # in a row
    sa.Column("disabled_at", UtcTime),
    sa.Column("created_by", sa.Text, nullable=False, server_default=""),
    sa.Column("created_at", UtcTime, nullable=False),
    sqlite_autoincrement=True,
)

webhook_deliveries = sa.Table(
    "webhook_deliveries",
    metadata,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    sa.Column("webhook_id", sa.Integer, sa.ForeignKey("webhooks.id", ondelete="CASCADE"), nullable=False),
    sa.Column("message_id", sa.Text, nullable=False),  # the same at every attempt
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
    sa.Column("next_at", UtcTime),  # None once it was delivered or given up
    sa.Column("until", UtcTime, nullable=False),  # given up if it fails after this
    # Of the last attempt:
    sa.Column("status", sa.Integer),  # None without an answer
    sa.Column("seconds", sa.Float),
    sa.Column("error", sa.Text, nullable=False, server_default=""),
    sa.Column("answer", sa.Text, nullable=False, server_default=""),  # its beginning
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("updated_at", UtcTime, nullable=False),
    sa.UniqueConstraint("webhook_id", "message_id"),
    sa.Index(None, "webhook_id", "state", "id"),
    sa.Index(None, "updated_at"),
)

# Addresses at which other systems start runs or answer questions. Numbers are never reused, as above.
incoming_webhooks = sa.Table(
    "incoming_webhooks",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("may", sa.Text, nullable=False),  # run or answer
    sa.Column("serials", Json),  # the phones that it may use, None for all
    sa.Column("lang", sa.Text, nullable=False, server_default="zh"),
    sa.Column("secret", sa.Text, nullable=False),
    sa.Column("old_secret", sa.Text, nullable=False, server_default=""),
    sa.Column("old_until", UtcTime),
    sa.Column("created_by", sa.Text, nullable=False, server_default=""),
    sa.Column("created_at", UtcTime, nullable=False),
    sqlite_autoincrement=True,
)
