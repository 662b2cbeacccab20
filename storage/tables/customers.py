"""Customers, their questions and answers, the sweeps' state of them, and the knowledge entries."""

from __future__ import annotations

import sqlalchemy as sa

from storage.tables.columns import BigId, Json, UtcTime, metadata

replies = sa.Table(
    "replies",
    metadata,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    sa.Column("serial", sa.Text, nullable=False),
    sa.Column("app", sa.Text, nullable=False),
    sa.Column("contact", sa.Text, nullable=False),
    sa.Column("fingerprint", sa.Text, nullable=False),
    sa.Column("run_id", sa.Text, nullable=False),
    sa.Column("question", sa.Text, nullable=False),
    sa.Column("text", sa.Text, nullable=False, server_default=""),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("provenance", sa.Text),
    sa.Column("record_id", sa.Text, nullable=False, server_default=""),
    sa.Column("record_source", sa.Text, nullable=False, server_default=""),
    sa.Column("score", sa.Float),
    sa.Column("person", sa.Text, nullable=False, server_default=""),
    sa.Column("cluster", Json),
    sa.Column("parts", Json),
    sa.Column("part", sa.Integer, nullable=False, server_default="0"),
    sa.Column("app_version", sa.Text, nullable=False, server_default=""),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("updated_at", UtcTime, nullable=False),
    sa.UniqueConstraint("serial", "app", "contact", "fingerprint"),
    sa.Index(None, "serial", "state"),
    sa.Index(None, "run_id"),
)

answers = sa.Table(
    "answers",
    metadata,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    sa.Column("run_id", sa.Text, nullable=False),
    sa.Column("serial", sa.Text, nullable=False),
    sa.Column("app", sa.Text, nullable=False),
    sa.Column("contact", sa.Text, nullable=False),
    sa.Column("question", sa.Text, nullable=False),
    sa.Column("query", sa.Text, nullable=False, server_default=""),
    sa.Column("records", Json, nullable=False),
    sa.Column("sent", sa.Text, nullable=False, server_default=""),
    sa.Column("provenance", sa.Text, nullable=False, server_default=""),
    sa.Column("record_id", sa.Text, nullable=False, server_default=""),
    sa.Column("record_source", sa.Text, nullable=False, server_default=""),
    sa.Column("score", sa.Float),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("person", sa.Text, nullable=False, server_default=""),
    sa.Column("rating", sa.Integer, nullable=False, server_default="0"),
    sa.Column("rated_by", sa.Text, nullable=False, server_default=""),
    sa.Column("rated_at", UtcTime),
    # The row of the ledger that this entry is about.
    sa.Column("ledger_id", sa.BigInteger),
    # No foreign keys: SQLite cannot add one to an existing table. A picture may be deleted before its row.
    sa.Column("before_picture_id", sa.BigInteger),
    sa.Column("after_picture_id", sa.BigInteger),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("updated_at", UtcTime, nullable=False),
    sa.Index(None, "ledger_id", unique=True),
    sa.Index(None, "created_at"),
    sa.Index(None, "run_id"),
    sa.Index(None, "contact"),
)

# Saved contacts. ``serial`` "" is any phone.
contacts = sa.Table(
    "contacts",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("serial", sa.Text, nullable=False, server_default=""),
    sa.Column("app", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("number", sa.Text, nullable=False, server_default=""),
    sa.Column("tags", Json, nullable=False),
    sa.Column("note", sa.Text, nullable=False, server_default=""),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("updated_at", UtcTime, nullable=False),
    sa.UniqueConstraint("serial", "app", "name"),
    sqlite_autoincrement=True,
)

# Which of several chat list rows with the same name is the contact's, as chosen by a person.
chosen_rows = sa.Table(
    "chosen_rows",
    metadata,
    sa.Column("serial", sa.Text, primary_key=True),
    sa.Column("app", sa.Text, primary_key=True),
    sa.Column("contact", sa.Text, primary_key=True),
    sa.Column("data", Json, nullable=False),
    sa.Column("chosen_at", UtcTime, nullable=False),
)

# The findings of a sweep. Its contacts have their own runs.
sweeps = sa.Table(
    "sweeps",
    metadata,
    sa.Column("run_id", sa.Text, primary_key=True),
    sa.Column("serial", sa.Text, nullable=False),
    sa.Column("app", sa.Text, nullable=False),
    sa.Column("outcome", sa.Text, nullable=False),
    sa.Column("contacts", sa.Integer, nullable=False),  # checked
    sa.Column("started", sa.Integer, nullable=False),
    sa.Column("calls", sa.Integer, nullable=False),  # round trips to the phone
    sa.Column("details", Json, nullable=False),  # who was left out, and why
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Index(None, "created_at"),
)

# Data about a chat list that the last sweep stored for the next one.
sweep_lists = sa.Table(
    "sweep_lists",
    metadata,
    sa.Column("serial", sa.Text, primary_key=True),
    sa.Column("app", sa.Text, primary_key=True),
    sa.Column("memory", Json, nullable=False),
    sa.Column("looked_at", UtcTime, nullable=False),
)

# The sweeps' state of a contact. ``state``: what was unread when the run was started, "" if nothing is any more.
contact_marks = sa.Table(
    "contact_marks",
    metadata,
    sa.Column("serial", sa.Text, primary_key=True),
    sa.Column("app", sa.Text, primary_key=True),
    sa.Column("contact", sa.Text, primary_key=True),
    sa.Column("state", sa.Text, nullable=False, server_default=""),
    sa.Column("waiting_since", UtcTime),  # None: they are not waiting
    sa.Column("run_id", sa.Text, nullable=False, server_default=""),
    sa.Column("tries", sa.Integer, nullable=False, server_default="0"),
    sa.Column("swept_at", UtcTime, nullable=False),
)

# The shop's knowledge entries. ``words`` is the search data of each, see storage/knowledge_index.py.
knowledge_entries = sa.Table(
    "knowledge_entries",
    metadata,
    sa.Column("number", BigId, primary_key=True, autoincrement=True),  # the order in which entries were added
    sa.Column("id", sa.Text, nullable=False, unique=True),
    sa.Column("question", sa.Text, nullable=False),
    sa.Column("answer", sa.Text, nullable=False),
    sa.Column("aliases", Json, nullable=False),
    sa.Column("tags", Json, nullable=False),
    sa.Column("live", sa.Boolean, nullable=False),
    sa.Column("origin", sa.Text, nullable=False),
    sa.Column("alias_of", sa.Text, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("updated_at", UtcTime, nullable=False),
    sa.Column("revision", sa.BigInteger, nullable=False),  # of the write that last changed it
    sa.Column("words", sa.LargeBinary, nullable=False),
    sa.Index(None, "revision"),
)

# One row, which a writer of entries locks: how many writes there were. An index of another number is out of date.
knowledge_revision = sa.Table(
    "knowledge_revision",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("revision", sa.BigInteger, nullable=False),
)
