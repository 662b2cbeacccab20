"""People with access, and the log of their actions."""

from __future__ import annotations

import sqlalchemy as sa

from storage.tables.columns import BigId, Json, UtcTime, metadata

people = sa.Table(
    "people",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("telegram_id", sa.BigInteger, unique=True),  # NULL for people who only use the console
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False, server_default=""),
    sa.Column("lang", sa.Text, nullable=False, server_default="zh"),
    sa.Column("chats", Json),
    sa.Column("serials", Json),
    sa.Column("paired_at", UtcTime, nullable=False),
    sa.Column("streams", sa.Boolean, nullable=False, server_default=sa.true()),  # show the model's thoughts live
    sqlite_autoincrement=True,
)

pairing_codes = sa.Table(
    "pairing_codes",
    metadata,
    sa.Column("code_hash", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, server_default=""),  # of the person who joins by the console
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("created_by", sa.Text, nullable=False, server_default=""),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("expires_at", UtcTime, nullable=False),
    sa.Column("used_at", UtcTime),
    sa.Column("chats", Json),  # as in people, for the person who uses the code
    sa.Column("serials", Json),
)

# API keys, by which programs prove who they are. Numbers are never reused, because the audit log names them.
api_keys = sa.Table(
    "api_keys",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("key_hash", sa.Text, nullable=False, unique=True),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("lang", sa.Text, nullable=False, server_default="zh"),
    sa.Column("serials", Json),
    sa.Column("created_by", sa.Text, nullable=False, server_default=""),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("last_used_at", UtcTime),
    sqlite_autoincrement=True,
)

# Log-in links of the console and the sessions that they begin.
console_sessions = sa.Table(
    "console_sessions",
    metadata,
    sa.Column("secret_hash", sa.Text, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("actor", sa.Text, nullable=False),
    sa.Column("lang", sa.Text, nullable=False, server_default="zh"),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("expires_at", UtcTime, nullable=False),
)

audit = sa.Table(
    "audit",
    metadata,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    sa.Column("at", UtcTime, nullable=False),
    sa.Column("actor", sa.Text, nullable=False),
    sa.Column("channel", sa.Text, nullable=False),
    sa.Column("command", sa.Text, nullable=False),
    sa.Column("detail", Json, nullable=False),
    sa.Column("allowed", sa.Boolean, nullable=False),
    sa.Index(None, "at"),
)
