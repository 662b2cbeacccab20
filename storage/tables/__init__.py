"""The tables, once for both engines. Times are UTC and aware; JSON is plain data; states are short words.

Enumerations of the product (statuses, question kinds, provenance) are stored as text, so that this package imports no
other.
"""

from storage.tables.asking import question_answers, question_copies, questions
from storage.tables.columns import BigId, Json, UtcTime, metadata
from storage.tables.customers import (
    answers,
    chosen_rows,
    contact_marks,
    contacts,
    knowledge_entries,
    knowledge_revision,
    replies,
    sweep_lists,
    sweeps,
)
from storage.tables.devices import (
    app_labels,
    clocks,
    host_phones,
    hosts,
    learnt_apps,
    leases,
    phone_addresses,
    phone_requests,
    phones,
    watched,
)
from storage.tables.messages import cards, digest_chats, digests, inbox, outbox, requests, topics
from storage.tables.team import api_keys, audit, console_sessions, pairing_codes, people
from storage.tables.webhooks import incoming_webhooks, webhook_deliveries, webhooks
from storage.tables.work import (
    consumers,
    events,
    model_days,
    model_minutes,
    pictures,
    planner_items,
    planner_sessions,
    plans,
    runs,
    schedules,
    trajectories,
    trajectory_pictures,
)

__all__ = [
    "BigId",
    "Json",
    "UtcTime",
    "answers",
    "api_keys",
    "app_labels",
    "audit",
    "cards",
    "chosen_rows",
    "clocks",
    "console_sessions",
    "consumers",
    "contact_marks",
    "contacts",
    "digest_chats",
    "digests",
    "events",
    "host_phones",
    "hosts",
    "inbox",
    "incoming_webhooks",
    "knowledge_entries",
    "knowledge_revision",
    "learnt_apps",
    "leases",
    "metadata",
    "model_days",
    "model_minutes",
    "outbox",
    "pairing_codes",
    "people",
    "phone_addresses",
    "phone_requests",
    "phones",
    "pictures",
    "planner_items",
    "planner_sessions",
    "plans",
    "question_answers",
    "question_copies",
    "questions",
    "replies",
    "requests",
    "runs",
    "schedules",
    "sweep_lists",
    "sweeps",
    "topics",
    "trajectories",
    "trajectory_pictures",
    "watched",
    "webhook_deliveries",
    "webhooks",
]
