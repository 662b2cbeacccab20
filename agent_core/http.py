"""Errors and headers that all HTTP clients here share: those for models, knowledge services, webhooks and iPhones."""

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
_NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST"})  # reasons of OpenSSL: the answer is no TLS at all


def cause_of(error: Exception) -> Cause | None:
    """Return why no connection was made; None if the error does not tell, or if it broke off later.

    certificate: the server's is not trusted. tls: it does not speak TLS. name: the host is not known. refused: nothing
    listens there.
    """
    return _cause_below(error) if isinstance(error, httpx2.ConnectError) else None


def _cause_below(error: BaseException | None) -> Cause | None:
    match error:
        case None:
            return None
        case ssl.SSLCertVerificationError():
            return "certificate"
        case ssl.SSLError() if error.reason in _NO_TLS:
            return "tls"
        case socket.gaierror():
            return "name"
        case ConnectionRefusedError():
            return "refused"
        case BaseExceptionGroup():  # one for each address of the host
            causes = {_cause_below(one) for one in error.exceptions}
            return causes.pop() if len(causes) == 1 else None
    return _cause_below(error.__cause__ or error.__context__)


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
