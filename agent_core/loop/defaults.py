"""Defaults of the agent: one process, nobody to ask, nothing stored on disk."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from agent_core.apps.learnt import LearntApp
from agent_core.errors import KnowledgeNotFound
from agent_core.ports import (
    Event,
    LedgerConflict,
    LedgerRow,
    MessageKey,
    Provenance,
    Record,
    ReplyState,
)
from agent_core.session import Answer, Elsewhere, Question, RowMark, Session


class NoKnowledge:
    """A knowledge base that answers nothing, because none is configured."""

    name = "none"

    async def retrieve(self, query: str) -> Sequence[Record]:
        raise KnowledgeNotFound(
            "No knowledge base is configured.", advice="Set PHONEDESK_KNOWLEDGE__PROVIDER.", key="no_knowledge"
        )

    async def close(self) -> None:
        return None


class NobodyThere:
    """A Human who never answers, so that the run waits."""

    async def ask(self, session: Session, question: Question, *, picture: bytes | None = None) -> Answer | None:
        return None


class NoStore:
    """A store that stores nothing."""

    async def save(self, session: Session) -> None:
        return None

    async def event(
        self, run_id: str, event: Event, *, picture: bytes | None = None, session: Session | None = None
    ) -> None:
        return None


class FreeLease:
    """A lease that always holds, because there is one process and one run."""

    async def check(self) -> None:
        return None


class Unguarded:
    """A guard without stop requests: only cancelling its task stops the run."""

    @asynccontextmanager
    async def shielded(self) -> AsyncIterator[None]:
        yield


class MemoryLedger:
    """A ledger that lives as long as the process."""

    def __init__(self) -> None:
        self._rows: dict[int, LedgerRow] = {}
        self._learnt: dict[tuple[str, str, str], LearntApp] = {}
        self._chosen: dict[tuple[str, str, str], RowMark] = {}
        self._labels: dict[tuple[str, str], str] = {}
        self.waiting: dict[tuple[str, str, str], str] = {}

    async def find(self, key: MessageKey) -> LedgerRow | None:
        return next((row for row in self._rows.values() if row.key == key), None)

    async def open(
        self, key: MessageKey, *, run_id: str, question: str, cluster: Sequence[str] = (), app_version: str = ""
    ) -> LedgerRow:
        found = await self.find(key)
        if found is None:
            found = LedgerRow(
                id=len(self._rows) + 1,
                key=key,
                run_id=run_id,
                question=question,
                cluster=tuple(cluster),
                app_version=app_version,
            )
            self._rows[found.id] = found
        return found

    async def plan(
        self,
        row_id: int,
        *,
        run_id: str,
        text: str,
        provenance: Provenance,
        record_id: str = "",
        record_source: str = "",
        score: float | None = None,
        person: str = "",
        parts: Sequence[str] = (),
    ) -> LedgerRow:
        row = self._rows[row_id]
        if row.state in (ReplyState.SENDING, ReplyState.SENT, ReplyState.UNKNOWN) or row.part:
            raise LedgerConflict(f"Reply {row_id} is {row.state}.")
        self._rows[row_id] = replace(
            row,
            run_id=run_id,
            text=text,
            provenance=provenance,
            record_id=record_id,
            record_source=record_source,
            score=score,
            person=person,
            parts=tuple(parts),
            state=ReplyState.PLANNED,
        )
        return self._rows[row_id]

    async def advance(self, row_id: int, state: ReplyState, *, expected: Sequence[ReplyState]) -> LedgerRow:
        row = self._rows[row_id]
        if row.state not in expected:
            raise LedgerConflict(f"Reply {row_id} is {row.state}.")
        self._rows[row_id] = replace(row, state=state)
        return self._rows[row_id]

    async def next_part(self, row_id: int, *, part: int) -> LedgerRow:
        if self._rows[row_id].part != part:
            raise LedgerConflict(f"Reply {row_id} is at part {self._rows[row_id].part}.")
        row = await self.advance(row_id, ReplyState.PLANNED, expected=[ReplyState.SENDING])
        self._rows[row_id] = replace(row, part=part + 1)
        return self._rows[row_id]

    async def version_known(self, serial: str, app: str, version: str) -> bool:
        return any(
            (row.key.serial, row.key.app, row.app_version, row.state) == (serial, app, version, ReplyState.SENT)
            for row in self._rows.values()
        )

    async def learnt(self, serial: str, app: str, version: str) -> LearntApp | None:
        return self._learnt.get((serial, app, version))

    async def learn(self, serial: str, learnt: LearntApp) -> None:
        self._learnt[serial, learnt.app, learnt.version] = learnt

    async def chosen_row(self, serial: str, app: str, contact: str) -> RowMark | None:
        return self._chosen.get((serial, app, contact))

    async def choose_row(self, serial: str, app: str, contact: str, row: RowMark) -> None:
        self._chosen[serial, app, contact] = row

    async def labelled(self, serial: str, label: str) -> str | None:
        return self._labels.get((serial, label))

    async def keep_label(self, serial: str, label: str, package: str) -> None:
        self._labels[serial, label] = package

    async def keep_waiting(self, serial: str, app: str, contact: str, state: str) -> None:
        self.waiting[serial, app, contact] = state

    async def waits(self, run_id: str) -> Elsewhere | None:
        return None  # see ``claim``

    async def claim(self, row_id: int, run_id: str) -> bool:
        self._rows[row_id] = replace(self._rows[row_id], run_id=run_id)
        return True  # no other run that waits is known here

    async def unfinished(self, serial: str) -> Sequence[LedgerRow]:
        return [
            row
            for row in self._rows.values()
            if row.key.serial == serial and row.state in (ReplyState.TYPING, ReplyState.SENDING)
        ]

    async def recent(self, serial: str, app: str, contact: str) -> Sequence[LedgerRow]:
        wanted = (serial, app, contact)
        rows = [row for row in self._rows.values() if (row.key.serial, row.key.app, row.key.contact) == wanted]
        return rows[:-51:-1]
