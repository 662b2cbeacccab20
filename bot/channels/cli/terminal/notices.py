"""Shows a person at a terminal the log's warnings, in their language: the log itself is written to a file.

A warning is shown if it has a text (``log.<event>``), an error always.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Collection, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from agent_core.lru import keep_newest
from agent_core.texts import Listed
from bot.channels.chat.texts import Texts
from bot.channels.cli.terminal.console import Console, Text

AGAIN_SECONDS = 600.0  # the same notice is repeated only after this
REMEMBERED = 100


class Notices:
    """The printer of notices; implements ``bot.app.logs.Notice``.

    file: the path of the log.
    without: events that are not shown, because whoever follows is told of them in another way.
    """

    def __init__(
        self, console: Console, words: Texts, zone: ZoneInfo, file: Path, *, without: Collection[str] = ()
    ) -> None:
        self._console = console
        self._words = words
        self._zone = zone
        self._file = file
        self._without = without
        self._told: OrderedDict[str, float] = OrderedDict()  # the text, and when it was shown (monotonic)

    def __call__(self, event: Mapping[str, Any]) -> None:
        is_error = event["level"] not in {"debug", "info", "warning"}
        key = f"log.{event['event']}"
        said = self._words.find(key, self._words.find("log.error", "") if is_error else "")
        if not said or event["event"] in self._without:
            return
        values = {name: self._value(value) for name, value in event.items()}
        said = " ".join(said.format_map(_Values({**values, "file": self._file})).split())
        now = time.monotonic()
        if now - self._told.get(said, float("-inf")) < AGAIN_SECONDS:
            return
        keep_newest(self._told, said, now, REMEMBERED)
        at = datetime.now(self._zone)
        self._console.print(Text(f"{at:%H:%M:%S}  {said}", "red" if is_error else "yellow"), soft_wrap=True)

    def _value(self, value: object) -> object:
        return Listed(map(str, value)).joined(self._words.lang) if isinstance(value, list | tuple) else value


class _Values(dict[str, Any]):
    """The fields of an event; a missing one reads as a dash, because the problem must be shown anyway."""

    def __missing__(self, key: str) -> str:
        return "—"
