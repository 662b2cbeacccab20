"""Runs, their events, pictures and questions, the schedules that start them, the use of their models, and plans."""

from __future__ import annotations

import sqlalchemy as sa

from storage.tables.columns import BigId, Json, UtcTime, metadata

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
    sa.Column("attempt", sa.Integer, nullable=False, server_default="1"),
    sa.Column("attempt_due_at", UtcTime),
    sa.Column("stop_requested", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("stopped_by", sa.Text, nullable=False, server_default=""),  # the first person who asked for it, by name
    sa.Column("hold", sa.Boolean, nullable=False, server_default=sa.false()),
    # Which host took which attempt. Another host may take the run once that attempt is not the current one, or the host
    # is gone.
    sa.Column("host", sa.Text, nullable=False, server_default=""),
    sa.Column("host_attempt", sa.Integer, nullable=False, server_default="0"),
    # No phone was asked for; serial was chosen.
    sa.Column("any_phone", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("parent_id", sa.Text, nullable=False, server_default=""),  # the sweep or plan that it belongs to
    sa.UniqueConstraint("schedule_id", "planned_at"),
    sa.Index(None, "status", "attempt_due_at"),
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
    sqlite_autoincrement=True,  # a reused number would make a consumer miss an event
)

consumers = sa.Table(
    "consumers",
    metadata,
    sa.Column("consumer", sa.Text, primary_key=True),
    sa.Column("position", sa.BigInteger, nullable=False),
)

# The request to the model at a step, as compressed JSON, and the pictures it was shown, each once per run.
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
    sa.Column("paused", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("created_by", sa.Text, nullable=False, server_default=""),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("last_planned_at", UtcTime),
    sa.Column("started", sa.Integer, nullable=False, server_default="0"),
    sa.Column("skipped_busy", sa.Integer, nullable=False, server_default="0"),
    sa.Column("skipped_missed", sa.Integer, nullable=False, server_default="0"),
    sa.Column("skipped_quiet", sa.Integer, nullable=False, server_default="0"),
    sa.Column("said", sa.Text, nullable=False, server_default=""),  # the expression as a person wrote it
    sa.Column("overlap", sa.Text, nullable=False, server_default="skip"),
    sa.Column("queued_for", UtcTime),  # the tick whose run starts when the run before it is over
    sa.Column("last_what", sa.Text, nullable=False, server_default=""),  # the outcome of the newest tick
    sa.Column("last_at", UtcTime),
    sa.Column("last_run_id", sa.Text, nullable=False, server_default=""),
    sa.Column("removed_at", UtcTime),  # kept for a while, so that it can be put back
    sqlite_autoincrement=True,  # runs keep the number of a deleted schedule
)

# A run that is a plan: its conversation and its process's heartbeat. Its executor calls are runs of their own.
plans = sa.Table(
    "plans",
    metadata,
    sa.Column("run_id", sa.Text, primary_key=True),
    sa.Column("session_key", sa.Text, nullable=False),
    sa.Column("heartbeat_at", UtcTime, nullable=False),
)

# A conversation with the planner. ``gate``: the state of the customer reply that it is about, None for none.
planner_sessions = sa.Table(
    "planner_sessions",
    metadata,
    sa.Column("key", sa.Text, primary_key=True),  # the owner, and their name for it
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


# The use of models by the owner's day, over all processes.
model_days = sa.Table(
    "model_days",
    metadata,
    sa.Column("day", sa.Date, primary_key=True),
    sa.Column("model", sa.Text, primary_key=True),
    sa.Column("calls", sa.Integer, nullable=False),
    sa.Column("tokens_in", sa.BigInteger, nullable=False),
    sa.Column("tokens_out", sa.BigInteger, nullable=False),
    sa.Column("tokens_cached", sa.BigInteger, nullable=False),  # part of tokens_in
    sa.Column("cost", sa.Float, nullable=False),
)

# The calls of this minute, if they are limited.
model_minutes = sa.Table(
    "model_minutes",
    metadata,
    sa.Column("minute", UtcTime, primary_key=True),
    sa.Column("calls", sa.Integer, nullable=False),
    sa.Column("cost", sa.Float, nullable=False),
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
    sa.Column("escalate_at", UtcTime),  # None: it never escalates, or has done so
    sa.Index(None, "run_id"),
    sa.Index(None, "state", "deadline"),
)

# Other places in which a question is shown, besides its run's chat: an escalation, a card that was requested again.
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
