"""The first line of the demo, printed before the product is loaded, because that takes longer than people wait."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from itertools import pairwise

from agent_core.texts import Lang, language_of, system_language
from bot.channels.cli.terminal.texts import catalogue

SILENT = {"--headless", "--json", "--help"}


def greet(arguments: Sequence[str]) -> None:
    """Say that the demo starts, if these are its ``arguments`` and a person looks."""
    if arguments[:1] == ["demo"] and not SILENT.intersection(arguments) and sys.stdout.isatty():
        sys.stdout.write(catalogue(_language(arguments))["usage.demo_starts"] + "\n")
        sys.stdout.flush()


def _language(arguments: Sequence[str]) -> Lang:
    """Return the language by option, environment or locale: reading the settings would be too slow."""
    given = next((after for name, after in pairwise(arguments) if name == "--lang"), "")
    given = given or os.environ.get("PHONEDESK_LANG", "")
    return language_of(given) if given else system_language()
