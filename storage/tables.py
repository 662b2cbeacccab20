"""The tables, once for both engines. Times are UTC and aware; JSON is plain data; states are short words.

Enumerations of the product (statuses, question kinds, provenance) are stored as their text, so that this package needs
to know nobody.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

if TYPE_CHECKING:
    from sqlalchemy.engine.interfaces import Dialect

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class UtcTime(sa.types.TypeDecorator[datetime]):
    """An aware time, stored as UTC. A naive one is a mistake and raises ValueError."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"A time without a time zone: {value!r}")
        utc = value.astimezone(UTC)
        return utc.replace(tzinfo=None) if dialect.name == "sqlite" else utc

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


Json = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
# SQLite counts up only in a column that is INTEGER by name.
BigId = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _no() -> sa.sql.elements.ColumnElement[bool]:
    return sa.false()


runs = sa.Table(
    "runs",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("task", sa.Text, nullable=False),
    sa.Column("serial", sa.Text, nullable=False, server_default=""),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("priority", sa.Integer, nullable=False, server_default="0"),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("started_at", UtcTime),
    sa.Column("ended_at", UtcTime),
    sa.Column("message", sa.Text, nullable=False, server_default=""),
    sa.Column("session", sa.Text),
    sa.Column("options", Json, nullable=False),
    sa.Column("requested_by", sa.Text, nullable=False, server_default=""),
    sa.Column("chat", Json),
    # No foreign key: a run outlives the schedule that started it.
    sa.Column("schedule_id", sa.Integer),
    sa.Column("planned_at", UtcTime),
    sa.Column("leg", sa.Integer, nullable=False, server_default="1"),
    sa.Column("leg_due_at", UtcTime),
    sa.Column("stop_requested", sa.Boolean, nullable=False, server_default=_no()),
    sa.Column("stopped_by", sa.Text, nullable=False, server_default=""),  # who asked for it first, by name
    sa.Column("hold", sa.Boolean, nullable=False, server_default=_no()),
    # Which host took which leg; another may take the run once that leg is not the current one, or the host is gone.
    sa.Column("host", sa.Text, nullable=False, server_default=""),
    sa.Column("host_leg", sa.Integer, nullable=False, server_default="0"),
    sa.Column("any_phone", sa.Boolean, nullable=False, server_default=_no()),  # it asked for none; serial is a choice
    sa.Column("parent_id", sa.Text, nullable=False, server_default=""),  # the sweep that it belongs to
    sa.UniqueConstraint("schedule_id", "planned_at"),
    sa.Index(None, "status", "leg_due_at"),
    sa.Index(None, "parent_id"),
    sa.Index(None, "created_at"),
)

pictures = sa.Table(
    "pictures",
    metadata,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    sa.Column("jpeg", sa.LargeBinary, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
)

events = sa.Table(
    "events",
    metadata,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    sa.Column("run_id", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("data", Json, nullable=False),
    sa.Column("picture_id", BigId, sa.ForeignKey("pictures.id", ondelete="SET NULL")),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Index(None, "run_id", "id"),
    sa.Index(None, "created_at"),
    sa.Index(None, "picture_id"),
    sqlite_autoincrement=True,  # a number is never given twice, or a consumer would miss an event
)

# What the model was asked at a step, as compressed JSON, and what it was shown; a picture once a run.
trajectories = sa.Table(
    "trajectories",
    metadata,
    sa.Column("run_id", sa.Text, primary_key=True),
    sa.Column("step", sa.Integer, primary_key=True),
    sa.Column("data", sa.LargeBinary, nullable=False),
    sa.Column("picture", sa.Text, nullable=False, server_default=""),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Index(None, "created_at"),
)

trajectory_pictures = sa.Table(
    "trajectory_pictures",
    metadata,
    sa.Column("run_id", sa.Text, primary_key=True),
    sa.Column("digest", sa.Text, primary_key=True),
    sa.Column("jpeg", sa.LargeBinary, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Index(None, "created_at"),
)

consumers = sa.Table(
    "consumers",
    metadata,
    sa.Column("consumer", sa.Text, primary_key=True),
    sa.Column("position", sa.BigInteger, nullable=False),
)

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
    # The row of the ledger that it tells of; rows of older releases have none.
    sa.Column("ledger_id", sa.BigInteger),
    # No foreign keys: SQLite cannot add one to a table that is there. A picture may be gone before its row.
    sa.Column("before_picture_id", sa.BigInteger),
    sa.Column("after_picture_id", sa.BigInteger),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("updated_at", UtcTime, nullable=False),
    sa.Index(None, "ledger_id", unique=True),
    sa.Index(None, "created_at"),
    sa.Index(None, "run_id"),
    sa.Index(None, "contact"),
)

questions = sa.Table(
    "questions",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("run_id", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("payload", Json, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("answer", Json),
    sa.Column("answered_by", sa.Text, nullable=False, server_default=""),
    sa.Column("answered_at", UtcTime),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("deadline", UtcTime),
    # The next reminder (None: no more), how long after the question the first one is due, how many there were.
    sa.Column("remind_at", UtcTime),
    sa.Column("remind_seconds", sa.Float, nullable=False, server_default="0"),
    sa.Column("reminders", sa.Integer, nullable=False, server_default="0"),
    sa.Column("escalate_at", UtcTime),  # None: never, or done
    sa.Index(None, "run_id"),
    sa.Index(None, "state", "deadline"),
)

# Where a question is shown besides its run's chat: an escalation, a card that was asked for again.
question_copies = sa.Table(
    "question_copies",
    metadata,
    sa.Column("question_id", sa.Text, sa.ForeignKey("questions.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("chat", Json, nullable=False),  # channel, chat_id, thread_id, kind
    sa.Column("created_at", UtcTime, nullable=False),
)

question_answers = sa.Table(
    "question_answers",
    metadata,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    sa.Column("question_id", sa.Text, sa.ForeignKey("questions.id", ondelete="CASCADE"), nullable=False),
    sa.Column("answer", Json, nullable=False),
    sa.Column("answered_by", sa.Text, nullable=False),
    sa.Column("late", sa.Boolean, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Index(None, "question_id"),
)

leases = sa.Table(
    "leases",
    metadata,
    sa.Column("serial", sa.Text, primary_key=True),
    sa.Column("owner", sa.Text, nullable=False, server_default=""),
    sa.Column("run_id", sa.Text, nullable=False, server_default=""),
    sa.Column("fencing", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("acquired_at", UtcTime),
    sa.Column("heartbeat_at", UtcTime),
    sa.Index(None, "run_id"),
)

schedules = sa.Table(
    "schedules",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("kind", sa.Text, nullable=False, server_default="run"),
    sa.Column("expression", sa.Text, nullable=False),
    sa.Column("timezone", sa.Text, nullable=False),
    sa.Column("task", sa.Text, nullable=False),
    sa.Column("serial", sa.Text, nullable=False, server_default=""),
    sa.Column("chat", Json),
    sa.Column("options", Json, nullable=False),
    sa.Column("missed", sa.Text, nullable=False, server_default="skip"),
    sa.Column("jitter_seconds", sa.Integer, nullable=False, server_default="0"),
    sa.Column("quiet", sa.Text, nullable=False, server_default=""),
    sa.Column("paused", sa.Boolean, nullable=False, server_default=_no()),
    sa.Column("created_by", sa.Text, nullable=False, server_default=""),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("last_planned_at", UtcTime),
    sa.Column("started", sa.Integer, nullable=False, server_default="0"),
    sa.Column("skipped_busy", sa.Integer, nullable=False, server_default="0"),
    sa.Column("skipped_missed", sa.Integer, nullable=False, server_default="0"),
    sa.Column("skipped_quiet", sa.Integer, nullable=False, server_default="0"),
    sa.Column("said", sa.Text, nullable=False, server_default=""),  # the expression as a person wrote it
    sa.Column("overlap", sa.Text, nullable=False, server_default="skip"),
    sa.Column("queued_for", UtcTime),  # the tick that starts its run when the one before it is over
    sa.Column("last_what", sa.Text, nullable=False, server_default=""),  # what became of the newest tick
    sa.Column("last_at", UtcTime),
    sa.Column("last_run_id", sa.Text, nullable=False, server_default=""),
    sa.Column("removed_at", UtcTime),  # kept for a while, to be put back
    sqlite_autoincrement=True,  # runs keep the number of a schedule that was deleted
)

# Customers that are known beforehand. ``serial`` "" is any phone.
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

people = sa.Table(
    "people",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("telegram_id", sa.BigInteger, nullable=False, unique=True),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False, server_default=""),
    sa.Column("lang", sa.Text, nullable=False, server_default="zh"),
    sa.Column("chats", Json),
    sa.Column("serials", Json),
    sa.Column("paired_at", UtcTime, nullable=False),
    sa.Column("streams", sa.Boolean, nullable=False, server_default=sa.true()),  # thoughts, while they are thought
    sqlite_autoincrement=True,
)

pairing_codes = sa.Table(
    "pairing_codes",
    metadata,
    sa.Column("code_hash", sa.Text, primary_key=True),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("created_by", sa.Text, nullable=False, server_default=""),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("expires_at", UtcTime, nullable=False),
    sa.Column("used_at", UtcTime),
    sa.Column("chats", Json),  # as in people, for whoever uses the code
    sa.Column("serials", Json),
)

# What programs prove with who they are. Numbers are not given twice: the audit log names them.
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

# Where a run or a question is shown, so that a restart goes on editing the same message.
cards = sa.Table(
    "cards",
    metadata,
    sa.Column("subject", sa.Text, primary_key=True),  # run or question
    sa.Column("subject_id", sa.Text, primary_key=True),
    sa.Column("chat", Json, nullable=False),  # channel, chat_id, thread_id, kind
    sa.Column("chat_id", sa.Text, nullable=False),
    sa.Column("message_id", sa.Text, nullable=False),
    sa.Column("picture", sa.Boolean, nullable=False, server_default=_no()),
    sa.Index(None, "chat_id", "message_id"),
)

# The topic of a phone in a chat that is a forum.
topics = sa.Table(
    "topics",
    metadata,
    sa.Column("chat_id", sa.Text, primary_key=True),
    sa.Column("serial", sa.Text, primary_key=True),
    sa.Column("thread_id", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),  # as it was last set
    sa.Column("closed", sa.Boolean, nullable=False, server_default=_no()),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Index(None, "chat_id", "thread_id"),
)

# What a channel asked for under a key of its own: asked again, it gets what it got.
requests = sa.Table(
    "requests",
    metadata,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("subject_id", sa.Text, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Index(None, "created_at"),
)

# Where digests go. An owner's own chat without a row gets both; any other chat gets what its row says.
digest_chats = sa.Table(
    "digest_chats",
    metadata,
    sa.Column("chat_key", sa.Text, primary_key=True),  # channel:chat_id
    sa.Column("chat", Json, nullable=False),  # channel, chat_id, thread_id, kind
    sa.Column("daily", sa.Boolean, nullable=False, server_default=_no()),
    sa.Column("weekly", sa.Boolean, nullable=False, server_default=_no()),
    # Who turned it on: the chat is shown what this person may see.
    sa.Column("person_id", sa.Integer, nullable=False),
    sa.Column("changed_at", UtcTime, nullable=False),
)

# One row a chat and period: what is here is not sent again.
digests = sa.Table(
    "digests",
    metadata,
    sa.Column("chat_key", sa.Text, primary_key=True),
    sa.Column("kind", sa.Text, primary_key=True),  # daily or weekly
    sa.Column("planned_at", UtcTime, primary_key=True),
    sa.Column("state", sa.Text, nullable=False),  # sent, empty, missed
    sa.Column("created_at", UtcTime, nullable=False),
)

# What alerts are about: a phone that has been seen, the model, the knowledge base.
watched = sa.Table(
    "watched",
    metadata,
    sa.Column("subject", sa.Text, primary_key=True),  # phone:<serial>, model, knowledge
    sa.Column("down_since", UtcTime),  # None: it is up
    sa.Column("seen_down_at", UtcTime),
    sa.Column("told_at", UtcTime),  # None: nobody was told of this time
    sa.Column("why", sa.Text, nullable=False, server_default=""),
    sa.Column("looked_at", UtcTime, nullable=False),
)

# The phones that were seen, so that one that is away keeps its name.
phones = sa.Table(
    "phones",
    metadata,
    sa.Column("serial", sa.Text, primary_key=True),
    sa.Column("model", sa.Text, nullable=False, server_default=""),  # as adb writes it, with underscores
    sa.Column("seen_at", UtcTime, nullable=False),
)

# The processes that work phones, by name: one process a name at a time.
hosts = sa.Table(
    "hosts",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("token", sa.Text, nullable=False),  # of the process that has the name
    sa.Column("release", sa.Text, nullable=False, server_default=""),
    sa.Column("state", sa.Text, nullable=False),  # up, draining, ended
    sa.Column("started_at", UtcTime, nullable=False),
    sa.Column("heartbeat_at", UtcTime, nullable=False),
)

# What each host sees of the phones; a phone may be seen by several. It counts as long as its host's heartbeat is fresh.
host_phones = sa.Table(
    "host_phones",
    metadata,
    sa.Column("host", sa.Text, primary_key=True),
    sa.Column("serial", sa.Text, primary_key=True),
    sa.Column("state", sa.Text, nullable=False),  # as adb writes it: device, offline, unauthorized; gone: not listed
    sa.Column("since", UtcTime, nullable=False),
    sa.Index(None, "serial"),
)

# What one process wants of a phone that another one reaches.
phone_requests = sa.Table(
    "phone_requests",
    metadata,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("serial", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),  # screenshot
    sa.Column("state", sa.Text, nullable=False),  # open, done, failed
    sa.Column("jpeg", sa.LargeBinary),
    sa.Column("error", sa.Text, nullable=False, server_default=""),
    sa.Column("error_kind", sa.Text, nullable=False, server_default=""),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Index(None, "host", "state"),
    sqlite_autoincrement=True,
)

# What the look of a sweep found; its contacts are runs of their own.
sweeps = sa.Table(
    "sweeps",
    metadata,
    sa.Column("run_id", sa.Text, primary_key=True),
    sa.Column("serial", sa.Text, nullable=False),
    sa.Column("app", sa.Text, nullable=False),
    sa.Column("outcome", sa.Text, nullable=False),
    sa.Column("contacts", sa.Integer, nullable=False),  # looked at
    sa.Column("started", sa.Integer, nullable=False),
    sa.Column("calls", sa.Integer, nullable=False),  # round trips to the phone
    sa.Column("details", Json, nullable=False),  # who was left out, and why
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Index(None, "created_at"),
)

# The list of chats as it was at the last look.
sweep_lists = sa.Table(
    "sweep_lists",
    metadata,
    sa.Column("serial", sa.Text, primary_key=True),
    sa.Column("app", sa.Text, primary_key=True),
    sa.Column("memory", Json, nullable=False),
    sa.Column("looked_at", UtcTime, nullable=False),
)

# What sweeps know of a contact. ``state``: of what was unread as the run was started; "" once nothing was.
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

# The shop's own knowledge entries where several machines share them (PostgreSQL); each has a mirror of these rows.
knowledge_entries = sa.Table(
    "knowledge_entries",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("place", sa.Integer, nullable=False),  # the order in which entries were added
    sa.Column("live", sa.Boolean, nullable=False),
    sa.Column("entry", Json),  # its other columns; None: it was deleted
    sa.Column("revision", sa.BigInteger, nullable=False),  # of the write that changed it last
    sa.Index(None, "revision"),
)

# One row, which who writes entries holds: how many writes there were, and the marks of the newest, the last one again
# in ``mark``. By its mark a mirror knows its database again.
knowledge_revision = sa.Table(
    "knowledge_revision",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("revision", sa.BigInteger, nullable=False),
    sa.Column("mark", sa.Text, nullable=False),
    sa.Column("marks", Json, nullable=False),
)

# A run that is a plan: which process makes it, and that it lives. Its executor calls are runs of their own.
plans = sa.Table(
    "plans",
    metadata,
    sa.Column("run_id", sa.Text, primary_key=True),
    sa.Column("session_key", sa.Text, nullable=False),
    sa.Column("heartbeat_at", UtcTime, nullable=False),
)

# A conversation with the planner. ``gate``: the state of a customer reply that it is about, None for none.
planner_sessions = sa.Table(
    "planner_sessions",
    metadata,
    sa.Column("key", sa.Text, primary_key=True),  # whose it is, and their name for it
    sa.Column("gate", Json),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("updated_at", UtcTime, nullable=False),
    sa.Index(None, "updated_at"),
)

planner_items = sa.Table(
    "planner_items",
    metadata,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    sa.Column("session_key", sa.Text, nullable=False),
    sa.Column("item", Json, nullable=False),
    sa.Index(None, "session_key", "id"),
)

# What models used, by the owner's day, over all processes.
model_days = sa.Table(
    "model_days",
    metadata,
    sa.Column("day", sa.Date, primary_key=True),
    sa.Column("model", sa.Text, primary_key=True),
    sa.Column("calls", sa.Integer, nullable=False),
    sa.Column("tokens_in", sa.BigInteger, nullable=False),
    sa.Column("tokens_out", sa.BigInteger, nullable=False),
    sa.Column("tokens_cached", sa.BigInteger, nullable=False),  # of tokens_in
    sa.Column("cost", sa.Float, nullable=False),
)

# The calls of this minute, where they are limited.
model_minutes = sa.Table(
    "model_minutes",
    metadata,
    sa.Column("minute", UtcTime, primary_key=True),
    sa.Column("calls", sa.Integer, nullable=False),
    sa.Column("cost", sa.Float, nullable=False),
)
