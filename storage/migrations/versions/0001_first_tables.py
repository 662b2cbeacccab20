"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision: str | None = None
branch_labels: str | None = None
depends_on: str | None = None

TIME = sa.DateTime(timezone=True)
JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "answers",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("serial", sa.Text(), nullable=False),
        sa.Column("app", sa.Text(), nullable=False),
        sa.Column("contact", sa.Text(), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("query", sa.Text(), server_default="", nullable=False),
        sa.Column("records", JSON, nullable=False),
        sa.Column("sent", sa.Text(), server_default="", nullable=False),
        sa.Column("provenance", sa.Text(), server_default="", nullable=False),
        sa.Column("record_id", sa.Text(), server_default="", nullable=False),
        sa.Column("record_source", sa.Text(), server_default="", nullable=False),
        sa.Column("score", sa.Float(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("person", sa.Text(), server_default="", nullable=False),
        sa.Column("rating", sa.Integer(), server_default="0", nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_answers")),
    )
    op.create_index(op.f("ix_answers_contact"), "answers", ["contact"], unique=False)
    op.create_index(op.f("ix_answers_created_at"), "answers", ["created_at"], unique=False)
    op.create_index(op.f("ix_answers_run_id"), "answers", ["run_id"], unique=False)
    op.create_table(
        "audit",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("command", sa.Text(), nullable=False),
        sa.Column("detail", JSON, nullable=False),
        sa.Column("allowed", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )
    op.create_index(op.f("ix_audit_at"), "audit", ["at"], unique=False)
    op.create_table(
        "consumers",
        sa.Column("consumer", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("consumer", name=op.f("pk_consumers")),
    )
    op.create_table(
        "inbox",
        sa.Column("update_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("raw", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("error", sa.Text(), server_default="", nullable=False),
        sa.Column("received_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("update_id", name=op.f("pk_inbox")),
    )
    op.create_index(op.f("ix_inbox_state"), "inbox", ["state"], unique=False)
    op.create_table(
        "leases",
        sa.Column("serial", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), server_default="", nullable=False),
        sa.Column("run_id", sa.Text(), server_default="", nullable=False),
        sa.Column("fencing", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("acquired_at", TIME, nullable=True),
        sa.Column("heartbeat_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("serial", name=op.f("pk_leases")),
    )
    op.create_index(op.f("ix_leases_run_id"), "leases", ["run_id"], unique=False)
    op.create_table(
        "outbox",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("chat_key", sa.Text(), nullable=False),
        sa.Column("ref", sa.Text(), server_default="", nullable=False),
        sa.Column("payload", JSON, nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("next_at", TIME, nullable=False),
        sa.Column("result", JSON, nullable=True),
        sa.Column("error", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_outbox_ref"), "outbox", ["ref"], unique=False)
    op.create_index(op.f("ix_outbox_state_chat_key_id"), "outbox", ["state", "chat_key", "id"], unique=False)
    op.create_table(
        "pairing_codes",
        sa.Column("code_hash", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("created_by", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("used_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("code_hash", name=op.f("pk_pairing_codes")),
    )
    op.create_table(
        "people",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("telegram_id", sa.BigInteger(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), server_default="", nullable=False),
        sa.Column("lang", sa.Text(), server_default="zh", nullable=False),
        sa.Column("chats", JSON, nullable=True),
        sa.Column("serials", JSON, nullable=True),
        sa.Column("paired_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_people")),
        sa.UniqueConstraint("telegram_id", name=op.f("uq_people_telegram_id")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "pictures",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("jpeg", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_pictures")),
    )
    op.create_table(
        "questions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("payload", JSON, nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("answer", JSON, nullable=True),
        sa.Column("answered_by", sa.Text(), server_default="", nullable=False),
        sa.Column("answered_at", TIME, nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("deadline", TIME, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_questions")),
    )
    op.create_index(op.f("ix_questions_run_id"), "questions", ["run_id"], unique=False)
    op.create_index(op.f("ix_questions_state_deadline"), "questions", ["state", "deadline"], unique=False)
    op.create_table(
        "replies",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("serial", sa.Text(), nullable=False),
        sa.Column("app", sa.Text(), nullable=False),
        sa.Column("contact", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), server_default="", nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("provenance", sa.Text(), nullable=True),
        sa.Column("record_id", sa.Text(), server_default="", nullable=False),
        sa.Column("record_source", sa.Text(), server_default="", nullable=False),
        sa.Column("score", sa.Float(), nullable=True),
        sa.Column("person", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_replies")),
        sa.UniqueConstraint(
            "serial", "app", "contact", "fingerprint", name=op.f("uq_replies_serial_app_contact_fingerprint")
        ),
    )
    op.create_index(op.f("ix_replies_run_id"), "replies", ["run_id"], unique=False)
    op.create_index(op.f("ix_replies_serial_state"), "replies", ["serial", "state"], unique=False)
    op.create_table(
        "runs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("serial", sa.Text(), server_default="", nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("priority", sa.Integer(), server_default="0", nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("started_at", TIME, nullable=True),
        sa.Column("ended_at", TIME, nullable=True),
        sa.Column("message", sa.Text(), server_default="", nullable=False),
        sa.Column("session", sa.Text(), nullable=True),
        sa.Column("options", JSON, nullable=False),
        sa.Column("requested_by", sa.Text(), server_default="", nullable=False),
        sa.Column("chat", JSON, nullable=True),
        sa.Column("schedule_id", sa.Integer(), nullable=True),
        sa.Column("planned_at", TIME, nullable=True),
        sa.Column("leg", sa.Integer(), server_default="1", nullable=False),
        sa.Column("leg_due_at", TIME, nullable=True),
        sa.Column("stop_requested", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("hold", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
        sa.UniqueConstraint("schedule_id", "planned_at", name=op.f("uq_runs_schedule_id_planned_at")),
    )
    op.create_index(op.f("ix_runs_created_at"), "runs", ["created_at"], unique=False)
    op.create_index(op.f("ix_runs_status_leg_due_at"), "runs", ["status", "leg_due_at"], unique=False)
    op.create_table(
        "schedules",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("kind", sa.Text(), server_default="run", nullable=False),
        sa.Column("expression", sa.Text(), nullable=False),
        sa.Column("timezone", sa.Text(), nullable=False),
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("serial", sa.Text(), server_default="", nullable=False),
        sa.Column("chat", JSON, nullable=True),
        sa.Column("options", JSON, nullable=False),
        sa.Column("missed", sa.Text(), server_default="skip", nullable=False),
        sa.Column("jitter_seconds", sa.Integer(), server_default="0", nullable=False),
        sa.Column("quiet", sa.Text(), server_default="", nullable=False),
        sa.Column("paused", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("created_by", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("last_planned_at", TIME, nullable=True),
        sa.Column("started", sa.Integer(), server_default="0", nullable=False),
        sa.Column("skipped_busy", sa.Integer(), server_default="0", nullable=False),
        sa.Column("skipped_missed", sa.Integer(), server_default="0", nullable=False),
        sa.Column("skipped_quiet", sa.Integer(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_schedules")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "events",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("data", JSON, nullable=False),
        sa.Column("picture_id", BIG_ID, nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["picture_id"], ["pictures.id"], name=op.f("fk_events_picture_id"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_events")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_events_run_id_id"), "events", ["run_id", "id"], unique=False)
    op.create_table(
        "question_answers",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("question_id", sa.Text(), nullable=False),
        sa.Column("answer", JSON, nullable=False),
        sa.Column("answered_by", sa.Text(), nullable=False),
        sa.Column("late", sa.Boolean(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["question_id"], ["questions.id"], name=op.f("fk_question_answers_question_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_question_answers")),
    )
    op.create_index(op.f("ix_question_answers_question_id"), "question_answers", ["question_id"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_question_answers_question_id"), table_name="question_answers")
    op.drop_table("question_answers")
    op.drop_index(op.f("ix_events_run_id_id"), table_name="events")
    op.drop_table("events")
    op.drop_table("schedules")
    op.drop_index(op.f("ix_runs_status_leg_due_at"), table_name="runs")
    op.drop_index(op.f("ix_runs_created_at"), table_name="runs")
    op.drop_table("runs")
    op.drop_index(op.f("ix_replies_serial_state"), table_name="replies")
    op.drop_index(op.f("ix_replies_run_id"), table_name="replies")
    op.drop_table("replies")
    op.drop_index(op.f("ix_questions_state_deadline"), table_name="questions")
    op.drop_index(op.f("ix_questions_run_id"), table_name="questions")
    op.drop_table("questions")
    op.drop_table("pictures")
    op.drop_table("people")
    op.drop_table("pairing_codes")
    op.drop_index(op.f("ix_outbox_state_chat_key_id"), table_name="outbox")
    op.drop_index(op.f("ix_outbox_ref"), table_name="outbox")
    op.drop_table("outbox")
    op.drop_index(op.f("ix_leases_run_id"), table_name="leases")
    op.drop_table("leases")
    op.drop_index(op.f("ix_inbox_state"), table_name="inbox")
    op.drop_table("inbox")
    op.drop_table("consumers")
    op.drop_index(op.f("ix_audit_at"), table_name="audit")
    op.drop_table("audit")
    op.drop_index(op.f("ix_answers_run_id"), table_name="answers")
    op.drop_index(op.f("ix_answers_created_at"), table_name="answers")
    op.drop_index(op.f("ix_answers_contact"), table_name="answers")
    op.drop_table("answers")
