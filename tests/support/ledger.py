"""A ledger that holds the code to its drawing: ``docs/development/architecture.md``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from agent_core.loop.defaults import MemoryLedger
from agent_core.ports import LedgerRow, ReplyState
from agent_core.reply.outcome import ReplyStage, stage_of
from agent_core.session import Session

PAGE = Path(__file__).parent.parent.parent / "docs" / "development" / "architecture.md"
_ARROW = re.compile(r"^ *(\w+) --> (\w+)", re.MULTILINE)


@cache
def drawn() -> frozenset[tuple[str, str]]:
    """Return the arrows of the drawings, from one state to another and from one stage to another."""
    return frozenset(_ARROW.findall(PAGE.read_text(encoding="utf-8")))


class DrawnLedger(MemoryLedger):
    """Fails if a row goes from one state to another without an arrow between them, or a run from one stage to another.

    To stay is always allowed.
    """

    def __init__(self) -> None:
        super().__init__()
        self._stages: dict[str, ReplyStage] = {}  # by run, as it was saved last

    def note_stage(self, session: Session) -> None:
        """Hold the stage of a run that is saved against the drawing."""
        row = self._rows[session.planned.ledger_id] if session.planned is not None else None
        before, after = self._stages.get(session.run_id, ReplyStage.UNREAD), stage_of(session, row)
        self._stages[session.run_id] = after
        _check(before, after)

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


def _check(before: ReplyState | ReplyStage, after: ReplyState | ReplyStage) -> None:
    assert before is after or (before.value, after.value) in drawn(), f"{before} --> {after} is not in {PAGE.name}"
