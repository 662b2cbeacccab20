"""A ledger that holds the code to its drawing: ``docs/development/architecture.md``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from agent_core.loop.defaults import MemoryLedger
from agent_core.ports import LedgerRow, ReplyState

PAGE = Path(__file__).parent.parent.parent / "docs" / "development" / "architecture.md"
_ARROW = re.compile(r"^ *(\w+) --> (\w+)", re.MULTILINE)


@cache
def drawn() -> frozenset[tuple[str, str]]:
    """Return the arrows of the drawing, from one state to another."""
    return frozenset(_ARROW.findall(PAGE.read_text(encoding="utf-8")))


class DrawnLedger(MemoryLedger):
    """Fails if a row goes from one state to another without an arrow between them. To stay is always allowed."""

    async def plan(self, row_id: int, **values: Any) -> LedgerRow:
        before = self._rows[row_id].state
        row = await super().plan(row_id, **values)
        _check(before, row.state)
        return row

    async def advance(self, row_id: int, state: ReplyState, *, expected: Sequence[ReplyState]) -> LedgerRow:
        before = self._rows[row_id].state
        row = await super().advance(row_id, state, expected=expected)
        _check(before, row.state)
        return row


def _check(before: ReplyState, after: ReplyState) -> None:
    assert before is after or (before.value, after.value) in drawn(), f"{before} --> {after} is not in {PAGE.name}"
