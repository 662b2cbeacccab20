"""The first line of a slow command, printed before the product is loaded, because that takes longer than people wait.

It stands without an end until the first output, which takes its place.
"""

from __future__ import annotations

import atexit
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from typing import TextIO

from agent_core.texts import Lang, language_of
from bot.app.settings.files import written_language
from bot.channels.cli.terminal.texts import catalogue

GREETED = {"demo": "demo_starts", "run": "phone_starts", "sweep": "phone_starts", "serve": "server_starts"}
SILENT = {"--headless", "--json", "--help"}

_shown: list[tuple[TextIO, str]] = []  # the line that stands, and the stream that it was written to


def greet(arguments: Sequence[str]) -> None:
    """Say what a command begins with, if these are its ``arguments`` and a person looks."""
    key = GREETED.get(next(iter(arguments), ""))
    if key is None or SILENT.intersection(arguments) or not sys.stdout.isatty():
        return
    line = catalogue(_language(arguments))[f"usage.{key}"]
    sys.stdout.write(line)
    sys.stdout.flush()
    _shown.append((sys.stdout, line))
    atexit.register(withdraw)


def withdraw() -> None:
    """Take the line away, if it still stands: blanks work in every terminal."""
    with suppress(IndexError, OSError, ValueError):  # the terminal may be gone
        stream, line = _shown.pop()
        width = min(2 * len(line), shutil.get_terminal_size().columns - 1)
        stream.write(f"\r{' ' * width}\r")
        stream.flush()


def _language(arguments: Sequence[str]) -> Lang:
    """Return the language by option, or as the settings name it: checking all of them would be too slow."""
    words = [part for argument in arguments for part in argument.split("=", 1)]
    given = next((after for name, after in pairwise(words) if name == "--lang"), "")
    return language_of(given) if given else written_language()
