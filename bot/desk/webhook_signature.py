"""Signatures of webhooks by the Standard Webhooks scheme, version 1, sent and received.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md: the header
``webhook-signature`` holds signatures separated by spaces, each ``v1,`` and the base64 of an HMAC-SHA256 over
``id.timestamp.body``. A secret is ``whsec_`` and the base64 of the key, 24 to 64 random bytes.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterable

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
PREFIX = "whsec_"
VERSION = "v1"
RANDOM_BYTES = 32


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
