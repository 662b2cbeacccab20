"""What the HTTP clients for models, knowledge services, webhooks and iPhones have in common."""

from __future__ import annotations

import math
import socket
import ssl
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal

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


Cause = Literal["certificate", "tls", "name", "refused"]
_CAUSES: tuple[tuple[type[Exception], Cause], ...] = (
    (ssl.SSLCertVerificationError, "certificate"),
    (ssl.SSLError, "tls"),
    (socket.gaierror, "name"),
    (ConnectionRefusedError, "refused"),
)


def cause_of(error: BaseException) -> Cause | None:
    """Return why no connection was made; None if the error does not tell, or it broke off later.

    certificate: the server's is not trusted. tls: it does not speak TLS. name: nobody knows the host. refused: nothing
    listens there.
    """
    below: BaseException | None = error
    while below is not None:
        for kind, cause in _CAUSES:
            if isinstance(below, kind):
                return cause
        below = below.__cause__ or below.__context__
    return None


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
