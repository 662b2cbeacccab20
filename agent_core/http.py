"""What the HTTP clients for models, knowledge services, webhooks and iPhones have in common."""

from __future__ import annotations

import math
import ssl
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import anyio
import httpx2
from socksio.exceptions import SOCKSError

# What a request raises if it is not answered. The last three come from below httpx2, which passes them on as they are:
# a proxy that does not speak SOCKS, and a server that does not go on with TLS.
REQUEST_ERRORS = (
    httpx2.HTTPError,
    httpx2.InvalidURL,
    httpx2.StreamError,
    SOCKSError,
    ssl.SSLError,
    anyio.EndOfStream,
)


def retry_after(value: str) -> float | None:
    """Return the seconds of the header ``Retry-After``, a number or a date; None if it is neither."""
    try:
        seconds = float(value)
    except ValueError:
        try:
            at = parsedate_to_datetime(value)
            seconds = (at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
        except (ValueError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
