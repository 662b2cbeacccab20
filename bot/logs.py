"""Logs: structured, to standard error, without secrets."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_SECRETS = re.compile(
    r"(?P<bot>\b\d{6,12}:[A-Za-z0-9_-]{30,}\b)"  # a bot token
    r"|(?P<bearer>(?i:bearer)\s+[A-Za-z0-9._~+/=-]{8,})"
    r"|(?P<key>\b(?:sk|dataset|app)-[A-Za-z0-9_-]{12,})"
    r"|(?P<phone>(?<!\d)1[3-9]\d{9}(?!\d))"  # a full mobile number of mainland China
)


def mask(text: str) -> str:
    """``text`` without tokens, keys and full phone numbers."""
    return _SECRETS.sub(lambda found: f"<{found.lastgroup}>", text)


def _mask_event(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    return {key: mask(value) if isinstance(value, str) else value for key, value in event.items()}


def configure(level: str = "info", *, json: bool = False) -> None:
    """Set up logging for this process; libraries speak from warning on."""
    # The pretty tracebacks show local variables, and with them what must not be logged.
    plain = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback)
    last: list[Any] = [plain]
    if json:
        last = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(ensure_ascii=False)]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _mask_event,
            *last,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(level=max(LEVELS[level], logging.WARNING), stream=sys.stderr, force=True)
