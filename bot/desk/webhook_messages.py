"""The messages of webhooks by the Standard Webhooks scheme, version 1: their form, and their signatures in both
directions.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md: the header
``webhook-signature`` holds signatures separated by spaces, each ``v1,`` and the base64 of an HMAC-SHA256 over
``id.timestamp.body``. A secret is ``whsec_`` and the base64 of the key, 24 to 64 random bytes.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from pydantic import BaseModel

from storage.events import EventRow
from storage.webhooks import Message

TEST = "test"  # the type of a test message, which is about no event
MOST_DETAILS = 64 * 1024  # bytes; Standard Webhooks asks for small messages
ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"  # headers
PREFIX = "whsec_"  # of a secret
VERSION = "v1"
RANDOM_BYTES = 32


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


# Signatures -----------------------------------------------------------------------------------------------------------


def new_secret() -> str:
    """Return a new random secret."""
    return PREFIX + base64.b64encode(secrets.token_bytes(RANDOM_BYTES)).decode()


def signature(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return one signature of a message. ``timestamp``: seconds since 1970."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = f"{message_id}.{timestamp}.".encode() + body
    return f"{VERSION},{base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()}"


def headers(keys: Iterable[str], message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the headers of a message that is signed with each of the secrets."""
    signed = " ".join(signature(secret, message_id, timestamp, body) for secret in keys)
    return {ID: message_id, TIMESTAMP: str(timestamp), SIGNATURE: signed}


def is_signed(keys: Iterable[str], message_id: str, timestamp: int, body: bytes, header: str) -> bool:
    """Tell whether a ``webhook-signature`` header holds a signature by one of the secrets."""
    given = [each.encode() for each in header.split()]
    right = [signature(secret, message_id, timestamp, body).encode() for secret in keys]
    # All are compared, so that the time that it takes tells nothing.
    return any([hmac.compare_digest(one, other) for one in given for other in right])  # noqa: C419
