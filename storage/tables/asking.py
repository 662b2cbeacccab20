"""Questions to people, the places that show them, and the answers."""

from __future__ import annotations

import sqlalchemy as sa

from storage.tables.columns import BigId, Json, UtcTime, metadata

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
