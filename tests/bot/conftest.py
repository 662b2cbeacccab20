from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import structlog

from bot import logs
from bot.terminal.language import speak


@pytest.fixture(autouse=True)
def process_as_it_was() -> Iterator[None]:
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
