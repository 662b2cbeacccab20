"""The test's own process, in which commands of the product are called."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from bot.app import logs
from bot.channels.cli.terminal.language import speak


@contextmanager
def process_kept() -> Iterator[None]:
    """Undo what a command sets up for its process: its language, and logs into streams that are closed afterwards."""
    root = logging.getLogger()
    handlers, level, known = root.handlers[:], root.level, set(logs._known)
    yield
    speak(None)
    logs.close_file()
    root.handlers[:] = handlers
    root.setLevel(level)
    logs._known.clear()
    logs._known.update(known)
    structlog.reset_defaults()
