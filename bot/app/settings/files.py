"""The files that hold settings: their names, and the content of ``.env``."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from dotenv import dotenv_values
from dotenv.parser import parse_stream

from agent_core.texts import Lang, language_of, system_language

logging.getLogger("dotenv.main").setLevel(logging.ERROR)  # it would report each line at each reading: we report it once

CONFIG_FILE = "phonedesk.toml"
PREFIX = "PHONEDESK_"
CONFIG_NAME = f"{PREFIX}CONFIG"
ENV_FILE = ".env"
_LANGUAGE = re.compile(r"""^[ \t]*lang[ \t]*=[ \t]*["'](zh|en)["']""", re.MULTILINE)

# While something is tried out that is not in its place yet.
_instead: ContextVar[Path | None] = ContextVar("instead", default=None)


def config_file() -> Path:
    """Return the TOML file that is read if it exists."""
    return _instead.get() or Path(os.environ.get(CONFIG_NAME) or CONFIG_FILE).expanduser()


def is_missing(file: Path) -> bool:
    """Return whether the environment names this file as ours, and there is none."""
    return bool(os.environ.get(CONFIG_NAME)) and _instead.get() is None and not file.is_file()


@contextmanager
def reading(file: Path) -> Iterator[None]:
    """Read this TOML file in place of ours."""
    token = _instead.set(file)
    try:
        yield
    finally:
        _instead.reset(token)


def files_there() -> list[Path]:
    """Return the files that settings are read from, as far as they are there."""
    return [file for file in (Path(ENV_FILE), config_file()) if file.is_file()]


def unread_lines() -> list[int]:
    """Return the numbers of the lines of ``.env`` that set nothing. Their content is not shown: it may be a secret."""
    try:
        with Path(ENV_FILE).open(encoding="utf-8") as file:
            bindings = list(parse_stream(file))
            wrong = [one.original for one in bindings if one.error or (one.key is not None and one.value is None)]
            # The blank lines before it belong to a binding.
            return [one.line + one.string[: len(one.string) - len(one.string.lstrip())].count("\n") for one in wrong]
    except (OSError, ValueError):
        return []


def written() -> dict[str, str]:
    """Return the values of ``.env`` in the folder that the process was started from, without empty ones."""
    return {name: value for name, value in dotenv_values(ENV_FILE).items() if value}


def written_language() -> Lang:
    """Return the language that the settings name, or the system's, even if the settings cannot be used.

    The line is found even in a file that is not valid TOML.
    """
    name = f"{PREFIX}LANG"
    try:
        given = os.environ.get(name) or written().get(name) or _language_line()
    except (OSError, ValueError):  # a file that is not text
        given = ""
    return language_of(given) if given else system_language()


def _language_line() -> str:
    file = config_file()
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    found = _LANGUAGE.search(text.partition("\n[")[0])
    return found[1] if found else ""
