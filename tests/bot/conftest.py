from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import structlog

from bot import logs


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """What a command sets up for its process does not outlive the test: its streams are closed afterwards."""
    root = logging.getLogger()
    handlers, level, known = root.handlers[:], root.level, set(logs._known)
    yield
    logs.close_file()
    root.handlers[:] = handlers
    root.setLevel(level)
    logs._known.clear()
    logs._known.update(known)
    structlog.reset_defaults()
