"""The tables of the first release."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "20261124c"
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
        sa.Column("rated_by", sa.Text(), server_default="", nullable=False),
        sa.Column("rated_at", TIME, nullable=True),
        sa.Column("ledger_id", sa.BigInteger(), nullable=True),
        sa.Column("before_picture_id", sa.BigInteger(), nullable=True),
        sa.Column("after_picture_id", sa.BigInteger(), nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_answers")),
    )
    op.create_index(op.f("ix_answers_contact"), "answers", ["contact"])
    op.create_index(op.f("ix_answers_created_at"), "answers", ["created_at"])
    op.create_index(op.f("ix_answers_ledger_id"), "answers", ["ledger_id"], unique=True)
    op.create_index(op.f("ix_answers_run_id"), "answers", ["run_id"])
    op.create_table(
        "api_keys",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("key_hash", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("lang", sa.Text(), server_default="zh", nullable=False),
        sa.Column("serials", JSON, nullable=True),
        sa.Column("created_by", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("last_used_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("key_hash", name=op.f("uq_api_keys_key_hash")),
        sa.UniqueConstraint("name", name=op.f("uq_api_keys_name")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "app_labels",
        sa.Column("serial", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("package", sa.Text(), nullable=False),
        sa.Column("seen_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("serial", "label", name=op.f("pk_app_labels")),
    )
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
    op.create_index(op.f("ix_audit_at"), "audit", ["at"])
    op.create_table(
        "cards",
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("subject_id", sa.Text(), nullable=False),
        sa.Column("chat", JSON, nullable=False),
        sa.Column("chat_id", sa.Text(), nullable=False),
        sa.Column("message_id", sa.Text(), nullable=False),
        sa.Column("picture", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.PrimaryKeyConstraint("subject", "subject_id", name=op.f("pk_cards")),
    )
    op.create_index(op.f("ix_cards_chat_id_message_id"), "cards", ["chat_id", "message_id"])
    op.create_table(
        "chat_messages",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("chat_id", sa.Text(), nullable=False),
        sa.Column("own", sa.Boolean(), nullable=False),
        sa.Column("ref", sa.Text(), server_default="", nullable=False),
        sa.Column("once", sa.Text(), nullable=True),
        sa.Column("reply_to", sa.BigInteger(), nullable=True),
        sa.Column("card", JSON, nullable=False),
        sa.Column("files", JSON, nullable=False),
        sa.Column("version", sa.Integer(), server_default="0", nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_chat_messages")),
        sa.UniqueConstraint("chat_id", "once", name=op.f("uq_chat_messages_chat_id_once")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_chat_messages_chat_id_id"), "chat_messages", ["chat_id", "id"])
    op.create_table(
        "chosen_rows",
        sa.Column("serial", sa.Text(), nullable=False),
        sa.Column("app", sa.Text(), nullable=False),
        sa.Column("contact", sa.Text(), nullable=False),
        sa.Column("data", JSON, nullable=False),
        sa.Column("chosen_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("serial", "app", "contact", name=op.f("pk_chosen_rows")),
    )
    op.create_table(
        "clocks",
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("heartbeat_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("token", name=op.f("pk_clocks")),
    )
    op.create_table(
        "console_sessions",
        sa.Column("secret_hash", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("lang", sa.Text(), server_default="zh", nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("secret_hash", name=op.f("pk_console_sessions")),
    )
    op.create_table(
        "consumers",
        sa.Column("consumer", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("consumer", name=op.f("pk_consumers")),
    )
    op.create_table(
        "contact_marks",
        sa.Column("serial", sa.Text(), nullable=False),
        sa.Column("app", sa.Text(), nullable=False),
        sa.Column("contact", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), server_default="", nullable=False),
        sa.Column("waiting_since", TIME, nullable=True),
        sa.Column("run_id", sa.Text(), server_default="", nullable=False),
        sa.Column("tries", sa.Integer(), server_default="0", nullable=False),
        sa.Column("swept_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("serial", "app", "contact", name=op.f("pk_contact_marks")),
    )
    op.create_table(
        "contacts",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("serial", sa.Text(), server_default="", nullable=False),
        sa.Column("app", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("number", sa.Text(), server_default="", nullable=False),
        sa.Column("tags", JSON, nullable=False),
        sa.Column("note", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_contacts")),
        sa.UniqueConstraint("serial", "app", "name", name=op.f("uq_contacts_serial_app_name")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "digest_chats",
        sa.Column("chat_key", sa.Text(), nullable=False),
        sa.Column("chat", JSON, nullable=False),
        sa.Column("daily", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("weekly", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=False),
        sa.Column("changed_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("chat_key", name=op.f("pk_digest_chats")),
    )
    op.create_table(
        "digests",
        sa.Column("chat_key", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("planned_at", TIME, nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("chat_key", "kind", "planned_at", name=op.f("pk_digests")),
    )
    op.create_table(
        "host_phones",
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("serial", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("since", TIME, nullable=False),
        sa.PrimaryKeyConstraint("host", "serial", name=op.f("pk_host_phones")),
    )
    op.create_index(op.f("ix_host_phones_serial"), "host_phones", ["serial"])
    op.create_table(
        "hosts",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("release", sa.Text(), server_default="", nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("heartbeat_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_hosts")),
    )
    op.create_table(
        "inbox",
        sa.Column("update_id", sa.BigInteger(), nullable=False),
        sa.Column("raw", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("error", sa.Text(), server_default="", nullable=False),
        sa.Column("received_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("update_id", name=op.f("pk_inbox")),
    )
    op.create_index(op.f("ix_inbox_state"), "inbox", ["state"])
    op.create_table(
        "knowledge_entries",
        sa.Column("number", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.Column("aliases", JSON, nullable=False),
        sa.Column("tags", JSON, nullable=False),
        sa.Column("live", sa.Boolean(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("alias_of", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("words", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_knowledge_entries")),
        sa.UniqueConstraint("id", name=op.f("uq_knowledge_entries_id")),
    )
    op.create_index(op.f("ix_knowledge_entries_revision"), "knowledge_entries", ["revision"])
    op.create_table(
        "knowledge_revision",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_knowledge_revision")),
    )
    op.create_table(
        "learnt_apps",
        sa.Column("serial", sa.Text(), nullable=False),
        sa.Column("app", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("data", JSON, nullable=False),
        sa.Column("learnt_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("serial", "app", "version", name=op.f("pk_learnt_apps")),
    )
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
    op.create_index(op.f("ix_leases_run_id"), "leases", ["run_id"])
    op.create_table(
        "model_days",
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("tokens_in", sa.BigInteger(), nullable=False),
        sa.Column("tokens_out", sa.BigInteger(), nullable=False),
        sa.Column("tokens_cached", sa.BigInteger(), nullable=False),
        sa.Column("cost", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("day", "model", name=op.f("pk_model_days")),
    )
    op.create_table(
        "model_minutes",
        sa.Column("minute", TIME, nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("cost", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("minute", name=op.f("pk_model_minutes")),
    )
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
    op.create_index(op.f("ix_outbox_ref"), "outbox", ["ref"])
    op.create_index(op.f("ix_outbox_state_chat_key_id"), "outbox", ["state", "chat_key", "id"])
    op.create_table(
        "pairing_codes",
        sa.Column("code_hash", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), server_default="", nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("created_by", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("used_at", TIME, nullable=True),
        sa.Column("chats", JSON, nullable=True),
        sa.Column("serials", JSON, nullable=True),
        sa.PrimaryKeyConstraint("code_hash", name=op.f("pk_pairing_codes")),
    )
    op.create_table(
        "people",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("telegram_id", sa.BigInteger(), nullable=True),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), server_default="", nullable=False),
        sa.Column("lang", sa.Text(), server_default="zh", nullable=False),
        sa.Column("chats", JSON, nullable=True),
        sa.Column("serials", JSON, nullable=True),
        sa.Column("paired_at", TIME, nullable=False),
        sa.Column("streams", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_people")),
        sa.UniqueConstraint("telegram_id", name=op.f("uq_people_telegram_id")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "phone_requests",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("serial", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("jpeg", sa.LargeBinary(), nullable=True),
        sa.Column("error", sa.Text(), server_default="", nullable=False),
        sa.Column("error_kind", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_phone_requests")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_phone_requests_host_state"), "phone_requests", ["host", "state"])
    op.create_table(
        "phones",
        sa.Column("serial", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), server_default="", nullable=False),
        sa.Column("hardware", sa.Text(), server_default="", nullable=False),
        sa.Column("seen_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("serial", name=op.f("pk_phones")),
    )
    op.create_table(
        "phone_addresses",
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("serial", sa.Text(), nullable=False),
        sa.Column("seen_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("address", name=op.f("pk_phone_addresses")),
    )
    op.create_table(
        "pictures",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("jpeg", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_pictures")),
    )
    op.create_table(
        "planner_items",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("session_key", sa.Text(), nullable=False),
        sa.Column("item", JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_planner_items")),
    )
    op.create_index(op.f("ix_planner_items_session_key_id"), "planner_items", ["session_key", "id"])
    op.create_table(
        "planner_sessions",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("gate", JSON, nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_planner_sessions")),
    )
    op.create_index(op.f("ix_planner_sessions_updated_at"), "planner_sessions", ["updated_at"])
    op.create_table(
        "plans",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("session_key", sa.Text(), nullable=False),
        sa.Column("heartbeat_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_plans")),
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
        sa.Column("remind_at", TIME, nullable=True),
        sa.Column("remind_seconds", sa.Float(), server_default="0", nullable=False),
        sa.Column("reminders", sa.Integer(), server_default="0", nullable=False),
        sa.Column("escalate_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_questions")),
    )
    op.create_index(op.f("ix_questions_run_id"), "questions", ["run_id"])
    op.create_index(op.f("ix_questions_state_deadline"), "questions", ["state", "deadline"])
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
        sa.Column("cluster", JSON, nullable=True),
        sa.Column("parts", JSON, nullable=True),
        sa.Column("part", sa.Integer(), server_default="0", nullable=False),
        sa.Column("app_version", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_replies")),
        sa.UniqueConstraint(
            "serial", "app", "contact", "fingerprint", name=op.f("uq_replies_serial_app_contact_fingerprint")
        ),
    )
    op.create_index(op.f("ix_replies_run_id"), "replies", ["run_id"])
    op.create_index(op.f("ix_replies_serial_state"), "replies", ["serial", "state"])
    op.create_table(
        "requests",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("subject_id", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_requests")),
    )
    op.create_index(op.f("ix_requests_created_at"), "requests", ["created_at"])
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
        sa.Column("attempt", sa.Integer(), server_default="1", nullable=False),
        sa.Column("attempt_due_at", TIME, nullable=True),
        sa.Column("stop_requested", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("stopped_by", sa.Text(), server_default="", nullable=False),
        sa.Column("hold", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("host", sa.Text(), server_default="", nullable=False),
        sa.Column("host_attempt", sa.Integer(), server_default="0", nullable=False),
        sa.Column("any_phone", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("parent_id", sa.Text(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
        sa.UniqueConstraint("schedule_id", "planned_at", name=op.f("uq_runs_schedule_id_planned_at")),
    )
    op.create_index(op.f("ix_runs_created_at"), "runs", ["created_at"])
    op.create_index(op.f("ix_runs_parent_id"), "runs", ["parent_id"])
    op.create_index(op.f("ix_runs_status_attempt_due_at"), "runs", ["status", "attempt_due_at"])
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
        sa.Column("said", sa.Text(), server_default="", nullable=False),
        sa.Column("overlap", sa.Text(), server_default="skip", nullable=False),
        sa.Column("queued_for", TIME, nullable=True),
        sa.Column("last_what", sa.Text(), server_default="", nullable=False),
        sa.Column("last_at", TIME, nullable=True),
        sa.Column("last_run_id", sa.Text(), server_default="", nullable=False),
        sa.Column("removed_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_schedules")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "sweep_lists",
        sa.Column("serial", sa.Text(), nullable=False),
        sa.Column("app", sa.Text(), nullable=False),
        sa.Column("memory", JSON, nullable=False),
        sa.Column("looked_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("serial", "app", name=op.f("pk_sweep_lists")),
    )
    op.create_table(
        "sweeps",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("serial", sa.Text(), nullable=False),
        sa.Column("app", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("contacts", sa.Integer(), nullable=False),
        sa.Column("started", sa.Integer(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("details", JSON, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_sweeps")),
    )
    op.create_index(op.f("ix_sweeps_created_at"), "sweeps", ["created_at"])
    op.create_table(
        "topics",
        sa.Column("chat_id", sa.Text(), nullable=False),
        sa.Column("serial", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("closed", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("chat_id", "serial", name=op.f("pk_topics")),
    )
    op.create_index(op.f("ix_topics_chat_id_thread_id"), "topics", ["chat_id", "thread_id"])
    op.create_table(
        "trajectories",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.Column("picture", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "step", name=op.f("pk_trajectories")),
    )
    op.create_index(op.f("ix_trajectories_created_at"), "trajectories", ["created_at"])
    op.create_table(
        "trajectory_pictures",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("jpeg", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "digest", name=op.f("pk_trajectory_pictures")),
    )
    op.create_index(op.f("ix_trajectory_pictures_created_at"), "trajectory_pictures", ["created_at"])
    op.create_table(
        "watched",
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("down_since", TIME, nullable=True),
        sa.Column("seen_down_at", TIME, nullable=True),
        sa.Column("told_at", TIME, nullable=True),
        sa.Column("why", sa.Text(), server_default="", nullable=False),
        sa.Column("looked_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("subject", name=op.f("pk_watched")),
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
    op.create_index(op.f("ix_events_created_at"), "events", ["created_at"])
    op.create_index(op.f("ix_events_picture_id"), "events", ["picture_id"])
    op.create_index(op.f("ix_events_run_id_id"), "events", ["run_id", "id"])
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
    op.create_index(op.f("ix_question_answers_question_id"), "question_answers", ["question_id"])
    op.create_table(
        "question_copies",
        sa.Column("question_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("chat", JSON, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["question_id"], ["questions.id"], name=op.f("fk_question_copies_question_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("question_id", "name", name=op.f("pk_question_copies")),
    )
    op.create_table(
        "webhooks",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("kinds", JSON, nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("old_secret", sa.Text(), server_default="", nullable=False),
        sa.Column("old_until", TIME, nullable=True),
        sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("disabled_at", TIME, nullable=True),
        sa.Column("created_by", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhooks")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "webhook_deliveries",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("webhook_id", sa.Integer(), nullable=False),
        sa.Column("message_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("next_at", TIME, nullable=True),
        sa.Column("until", TIME, nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("seconds", sa.Float(), nullable=True),
        sa.Column("error", sa.Text(), server_default="", nullable=False),
        sa.Column("answer", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["webhook_id"], ["webhooks.id"], name=op.f("fk_webhook_deliveries_webhook_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook_deliveries")),
        sa.UniqueConstraint("webhook_id", "message_id", name=op.f("uq_webhook_deliveries_webhook_id_message_id")),
    )
    op.create_index(op.f("ix_webhook_deliveries_updated_at"), "webhook_deliveries", ["updated_at"])
    op.create_index(
        op.f("ix_webhook_deliveries_webhook_id_state_id"), "webhook_deliveries", ["webhook_id", "state", "id"]
    )
    op.create_table(
        "incoming_webhooks",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("may", sa.Text(), nullable=False),
        sa.Column("serials", JSON, nullable=True),
        sa.Column("lang", sa.Text(), server_default="zh", nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("old_secret", sa.Text(), server_default="", nullable=False),
        sa.Column("old_until", TIME, nullable=True),
        sa.Column("created_by", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_incoming_webhooks")),
        sa.UniqueConstraint("name", name=op.f("uq_incoming_webhooks_name")),
        sqlite_autoincrement=True,
    )
