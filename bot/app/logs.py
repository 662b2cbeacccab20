"""Structured logs on standard error, without secrets and control characters, of our loggers and the libraries'. A
command may show a person other words in their place; then the log is only in its file.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from datetime import UTC, datetime
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from textwrap import indent
from types import TracebackType
from typing import Any

import structlog

from agent_core.errors import ConfigInvalid
from bot.app.escapes import escaped, escaped_line, to_json

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
SHORTEST_SECRET = 8  # a shorter text is not a secret, and would be found in many words
_SECRETS = re.compile(
    r"(?P<bot>(?<!\d)\d{6,12}:[A-Za-z0-9_-]{30,})"  # a bot token; in a URL it follows "bot" without a gap
    r"|(?P<bearer>(?i:bearer)\s+[A-Za-z0-9._~+/=-]{8,})"
    r"|(?P<key>\b(?:(?:sk|dataset|app)-|pdk_)[A-Za-z0-9_-]{12,})"
    r"|(?P<login>(?<=://)(?:[^\s/@:]*:[^\s/@]+|[^\s/@:?#]+)(?=@))"  # user and password, or a token, in a URL
    # a full mobile number of mainland China, also as 138-1234-5678, with its country or without
    r"|(?P<phone>(?<!\d)(?:(?:\+|00)?86[ \u00a0-]?)?1[3-9]\d(?:[ \u00a0-]?\d{4}){2}(?!\d))"
)
# A value of a URL's query; the name before it stays. "sign" and its like are a request's signature.
_QUERY = re.compile(
    r"""(?i)([?&;](?:[\w.\-]*(?:key|token|secret|password|passwd|pwd|signature)|sign|sig|auth)=)[^\s&#"'<>]+"""
)
_known: set[str] = set()  # this process's own secrets, word for word


def mask(text: str) -> str:
    """Return ``text`` without tokens, keys, passwords in URLs (also in their queries) and full phone numbers."""
    for secret in sorted(_known, key=len, reverse=True):  # one may begin with another
        text = text.replace(secret, "<secret>")
    text = _SECRETS.sub(lambda found: f"<{found.lastgroup}>", text)
    return _QUERY.sub(r"\1<secret>", text)


def _masked(value: Any) -> Any:
    """Return ``value`` masked at any depth. An object that is not plain data becomes its text."""
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


def _escape_event(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Escape control characters for a person who reads the log; runs after the masking.

    An event is one line, and the traceback below it is indented, so that nothing from outside looks like the next
    event. Only strings are escaped: the text of other values has no control characters.
    """

    def shown(key: str, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return _below(value) if key == "exception" else escaped_line(value)

    return {escaped_line(key): shown(key, value) for key, value in event.items()}


def _below(trace: str) -> str:
    return indent(escaped(trace), "    ")


Notice = Callable[[Mapping[str, Any]], None]  # tells a person of an event; its values may come from outside


def _tell(_logger: object, _method: str, event: MutableMapping[str, Any]) -> str:
    """Tell the person, and drop the event so that nothing is printed. The last processor if there is a notice."""
    if _set.notice is not None:
        _set.notice(event)
    raise structlog.DropEvent


class _LineFormatter(logging.Formatter):
    """A formatter for the libraries' loggers: the message on one line, and the traceback below it."""

    def format(self, record: logging.LogRecord) -> str:
        record.exc_text = None  # another handler's formatting
        return super().format(record)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the library's name
        return escaped_line(mask(super().formatMessage(record)))

    def formatException(self, ei: Any) -> str:  # noqa: N802
        return _below(mask(super().formatException(ei)))

    def formatStack(self, stack_info: str) -> str:  # noqa: N802
        return _below(mask(super().formatStack(stack_info)))


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file of JSON lines. Over ``megabytes`` it is rotated to its name with ``.1``; ``kept`` old files stay."""

    path: Path
    megabytes: float = 10.0
    kept: int = 5


class _Lines(RotatingFileHandler):
    """A handler that writes JSON lines, readable for this user only. One process writes a file.

    Raises OSError if the file cannot be written, or if another process writes it. The lock is a separate file, because
    Windows cannot rename a locked file.
    """

    def __init__(self, file: LogFile) -> None:
        from filelock import FileLock  # few commands log to a file

        self._told = False
        most = max(1, int(file.megabytes * 1_000_000))
        super().__init__(file.path, maxBytes=most, backupCount=file.kept, encoding="utf-8")
        # Two processes would rotate the file while the other one writes it.
        self._lock = FileLock(f"{file.path}.lock", timeout=0, mode=0o600, thread_local=False)
        try:
            self._lock.acquire()
        except OSError:
            self.close()
            raise

    def _open(self) -> TextIOWrapper:
        def private(path: str, flags: int) -> int:
            return os.open(path, flags, 0o600)

        return open(self.baseFilename, "a", encoding="utf-8", opener=private)

    def close(self) -> None:
        super().close()
        self._lock.release()

    def format(self, record: logging.LogRecord) -> str:
        event = getattr(record, "event", None)
        return to_json(event if isinstance(event, Mapping) else _library_event(record))

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the library's name
        """Tell once that the file cannot be written: a full disk must not fill the terminal, too."""
        if not self._told:
            self._told = True
            why = escaped_line(f"The log file {self.baseFilename} cannot be written: {sys.exc_info()[1]}.")
            sys.stderr.write(f"{why}\n")


def _library_event(record: logging.LogRecord) -> Mapping[str, Any]:
    event: dict[str, Any] = {
        **structlog.contextvars.get_contextvars(),
        "event": record.getMessage(),
        "level": record.levelname.lower(),
        "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat().replace("+00:00", "Z"),
        "logger": record.name,
    }
    if record.exc_info:
        event["exception"] = logging.Formatter().formatException(record.exc_info)
    return {key: _masked(value) for key, value in event.items()}


def _to_file(logger: object, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Write an event to the file. This is the last processor but one, so the event is masked and plain data."""
    if _set.file is not None:
        level = LEVELS.get(str(event.get("level")), logging.INFO)
        record = logging.LogRecord("phonedesk", level, "", 0, "", None, None)
        record.event = dict(event)
        _set.file.handle(record)
    return event


@dataclass
class _Set:
    """The settings of this process's log."""

    json: bool = False
    file: _Lines | None = None
    notice: Notice | None = None


_set = _Set()


def know(secrets: Iterable[str]) -> None:
    """Mask these texts from now on, word for word."""
    _known.update(secret for secret in secrets if len(secret) >= SHORTEST_SECRET)


def configure(
    level: str = "info",
    *,
    json: bool = False,
    secrets: Iterable[str] = (),
    file: LogFile | None = None,
    notice: Notice | None = None,
) -> None:
    """Set up logging for this process. Libraries log from warning on.

    secrets: texts to mask, word for word.
    file: gets the same as standard error. Raises ConfigInvalid if it cannot be written.
    notice: gets our loggers' events instead of standard error, which then gets nothing.
    """
    know(secrets)
    close_file()
    _set.json, _set.file, _set.notice = json, _opened(file) if file is not None else None, notice
    set_level(level)


def set_level(level: str) -> None:
    """Set the level from now on; everything else stays as ``configure`` set it."""
    # Tracebacks become text before the masking, because an error's text may contain a secret, too. They show no local
    # variables.
    last: list[structlog.typing.Processor] = [_escape_event, structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]
    if _set.json:
        last = [lambda _logger, _method, event: to_json(event)]
    if _set.notice is not None:
        last = [_tell]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _mask_event,
            _to_file,
            *last,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    handlers: list[logging.Handler] = [logging.NullHandler()]
    if _set.notice is None:
        handlers = [logging.StreamHandler(sys.stderr)]
        handlers[0].setFormatter(_LineFormatter(logging.BASIC_FORMAT))
    if _set.file is not None:
        handlers.append(_set.file)
    logging.getLogger().handlers[:] = []  # basicConfig would close the file
    logging.basicConfig(level=max(LEVELS[level], logging.WARNING), handlers=handlers)


def close_file() -> None:
    """Close the log file, and write nothing more to it."""
    if _set.file is not None:
        logging.getLogger().removeHandler(_set.file)
        _set.file.close()
        _set.file = None


def _opened(file: LogFile) -> _Lines:
    try:
        return _Lines(file)
    except TimeoutError:  # of its lock
        said = f"Another process writes the log file {file.path}."
        raise ConfigInvalid(
            said,
            advice="Put {host} into PHONEDESK_LOG_FILE: each process has a name.",
            key="log_file_busy",
            file=file.path,
        ) from None
    except OSError as error:
        said = f"The log file {file.path} cannot be written: {error.strerror}."
        raise ConfigInvalid(
            said,
            advice="Set PHONEDESK_LOG_FILE, or make its folder and allow us to write.",
            key="no_log_file",
            why=error,
        ) from None


def uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Log the error that ends the process like any other event, without secrets. This is a ``sys.excepthook``."""
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    structlog.get_logger(__name__).critical("ended_by_error", exc_info=(kind, error, trace))
