"""Messages from and to channels, and webhooks: the addresses that receive events, and what is sent to them."""

from __future__ import annotations

import sqlalchemy as sa

from storage.tables.columns import BigId, Json, UtcTime, metadata

inbox = sa.Table(
    "inbox",
    metadata,
    sa.Column("update_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("raw", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
    sa.Column("error", sa.Text, nullable=False, server_default=""),
    sa.Column("received_at", UtcTime, nullable=False),
    sa.Index(None, "state"),
)

outbox = sa.Table(
    "outbox",
    metadata,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    sa.Column("chat_key", sa.Text, nullable=False),
    sa.Column("ref", sa.Text, nullable=False, server_default=""),
    sa.Column("payload", Json, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
    sa.Column("next_at", UtcTime, nullable=False),
    sa.Column("result", Json),
    sa.Column("error", sa.Text, nullable=False, server_default=""),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("updated_at", UtcTime, nullable=False),
    sa.Index(None, "state", "chat_key", "id"),
    sa.Index(None, "ref"),
    sqlite_autoincrement=True,
)

# The message that shows a run or a question, so that the same message is edited after a restart.
cards = sa.Table(
    "cards",
    metadata,
    sa.Column("subject", sa.Text, primary_key=True),  # run or question
    sa.Column("subject_id", sa.Text, primary_key=True),
    sa.Column("chat", Json, nullable=False),  # channel, chat_id, thread_id, kind
    sa.Column("chat_id", sa.Text, nullable=False),
    sa.Column("message_id", sa.Text, nullable=False),
    sa.Column("picture", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Index(None, "chat_id", "message_id"),
)

# The messages of the console's chats: Telegram keeps its own.
chat_messages = sa.Table(
    "chat_messages",
    metadata,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    sa.Column("chat_id", sa.Text, nullable=False),
    sa.Column("own", sa.Boolean, nullable=False),  # the person's, otherwise the desk's
    sa.Column("ref", sa.Text, nullable=False, server_default=""),
    sa.Column("once", sa.Text),
    sa.Column("reply_to", sa.BigInteger),
    sa.Column("card", Json, nullable=False),
    sa.Column("files", Json, nullable=False),  # base64
    sa.Column("version", sa.Integer, nullable=False, server_default="0"),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Index(None, "chat_id", "id"),
    sa.UniqueConstraint("chat_id", "once"),
    sqlite_autoincrement=True,
)

# The topic of a phone in a chat that is a forum.
topics = sa.Table(
    "topics",
    metadata,
    sa.Column("chat_id", sa.Text, primary_key=True),
    sa.Column("serial", sa.Text, primary_key=True),
    sa.Column("thread_id", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),  # as we last set it
    sa.Column("closed", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Index(None, "chat_id", "thread_id"),
)

# The result of a channel's request with an idempotency key: a repeated request gets the same.
requests = sa.Table(
    "requests",
    metadata,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("subject_id", sa.Text, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Index(None, "created_at"),
)

# The chats that get digests. An owner's own chat without a row gets both; any other chat gets what its row says.
digest_chats = sa.Table(
    "digest_chats",
    metadata,
    sa.Column("chat_key", sa.Text, primary_key=True),  # channel:chat_id
    sa.Column("chat", Json, nullable=False),  # channel, chat_id, thread_id, kind
    sa.Column("daily", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("weekly", sa.Boolean, nullable=False, server_default=sa.false()),
    # The person who turned it on: the chat is shown the phones and runs that this person may see.
    sa.Column("person_id", sa.Integer, nullable=False),
    sa.Column("changed_at", UtcTime, nullable=False),
)

# One row per chat and period: a digest that has one is not sent again.
digests = sa.Table(
    "digests",
    metadata,
    sa.Column("chat_key", sa.Text, primary_key=True),
    sa.Column("kind", sa.Text, primary_key=True),  # daily or weekly
    sa.Column("planned_at", UtcTime, primary_key=True),
    sa.Column("state", sa.Text, nullable=False),  # sent, empty, missed
    sa.Column("created_at", UtcTime, nullable=False),
)


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
