"""Logs: structured, to standard error, without secrets, whoever speaks: our loggers, or a library's."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any

import structlog

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
SHORTEST_SECRET = 8  # what is shorter is no secret, and would be found in every other word
_SECRETS = re.compile(
    r"(?P<bot>(?<!\d)\d{6,12}:[A-Za-z0-9_-]{30,})"  # a bot token; in a URL it follows "bot" without a gap
    r"|(?P<bearer>(?i:bearer)\s+[A-Za-z0-9._~+/=-]{8,})"
    r"|(?P<key>\b(?:sk|dataset|app)-[A-Za-z0-9_-]{12,})"
    r"|(?P<login>(?<=://)[^\s/@:]*:[^\s/@]+(?=@))"  # user and password in a URL
    r"|(?P<phone>(?<!\d)1[3-9]\d{9}(?!\d))"  # a full mobile number of mainland China
)
_known: set[str] = set()  # this process's own secrets, word for word


def mask(text: str) -> str:
    """``text`` without tokens, keys, passwords in URLs and full phone numbers."""
    for secret in _known:
        text = text.replace(secret, "<secret>")
    return _SECRETS.sub(lambda found: f"<{found.lastgroup}>", text)


def _masked(value: Any) -> Any:
    """``value`` masked at any depth; what is neither plain data nor a number becomes its text."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, Mapping):
        return {mask(str(key)): _masked(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_masked(item) for item in value]
    return mask(repr(value))


def _mask_event(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    return {key: _masked(value) for key, value in event.items()}


class _MaskedFormatter(logging.Formatter):
    """For the loggers of libraries: message and traceback."""

    def format(self, record: logging.LogRecord) -> str:
        return mask(super().format(record))


def configure(level: str = "info", *, json: bool = False, secrets: Iterable[str] = ()) -> None:
    """Set up logging for this process; libraries speak from warning on. ``secrets`` are masked word for word."""
    _known.update(secret for secret in secrets if len(secret) >= SHORTEST_SECRET)
    # Tracebacks become text before the masking: what an error says may hold a secret too. They show no local variables.
    last: structlog.typing.Processor = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    if json:
        last = structlog.processors.JSONRenderer(ensure_ascii=False)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _mask_event,
            last,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_MaskedFormatter(logging.BASIC_FORMAT))
    logging.basicConfig(level=max(LEVELS[level], logging.WARNING), handlers=[handler], force=True)
