"""The messages of webhooks: their form, by the Standard Webhooks scheme."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import BaseModel

from storage.events import EventRow
from storage.webhooks import Message

TEST = "test"  # the type of a test message, which is about no event
MOST_DETAILS = 64 * 1024  # bytes; Standard Webhooks asks for small messages


class WebhookEvent(BaseModel):
    """An event, as in ``GET /api/v1/events``.

    details: depend on the type. cut: they are left out because they are larger than 64 KB; the event log has them.
    picture: there is one, at ``GET /api/v1/events/{id}/picture``.
    """

    id: int
    run: str
    details: Mapping[str, Any]
    picture: bool = False
    cut: bool = False


class WebhookPayload(BaseModel):
    """The body of a message. type: the kind of the event, or ``test``. timestamp: when it happened."""

    type: str
    timestamp: datetime
    data: WebhookEvent


def message_of(event: EventRow) -> Message:
    """Return the message of an event for a webhook.

    The id is the event's, so that a receiver recognises a repetition.
    """
    details = dict(event.data)
    cut = len(json.dumps(details, ensure_ascii=False).encode()) > MOST_DETAILS
    data = WebhookEvent(
        id=event.id,
        run=event.run_id,
        details={} if cut else details,
        picture=event.picture_id is not None,
        cut=cut,
    )
    payload = WebhookPayload(type=event.kind, timestamp=event.created_at, data=data)
    return Message(f"evt_{event.id}", event.kind, payload.model_dump_json())


def test_message(message_id: str, now: datetime) -> Message:
    """Return a message by which a receiver can be tested."""
    payload = WebhookPayload(type=TEST, timestamp=now, data=WebhookEvent(id=0, run="", details={}))
    return Message(message_id, TEST, payload.model_dump_json())
