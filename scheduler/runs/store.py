"""The agent's run store over our tables: sessions, the event log, the answer log."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import structlog

from agent_core import ports
from agent_core.session import Session
from storage.answers import Answers
from storage.engine import Database
from storage.events import Events, NewEvent
from storage.questions import ANSWERED, Questions
from storage.runs import Runs

log = structlog.get_logger(__name__)

Learn = Callable[[ports.AnswerEvent], Awaitable[str]]  # returns the id of the new entry that waits for approval, or ""

HAS_LEFT = (ports.ReplyState.SENT, ports.ReplyState.UNKNOWN)


class StoredRuns:
    """``agent_core.ports.RunStore`` over runs, events and the answer log.

    attempt: the attempt that writes; None if no attempt does. Once its turn is over (another attempt has the run, or
        the run is over) its writes change nothing and raise LeaseLost. The exception is a text that has already left
        the
        phone: the attempt that sent it still records it.
    learn: is called with each sent answer that a person had a hand in (their own text, or the record that they chose)
        after the answer is stored, and again if the event is repeated after a restart. Its errors are logged. The new
        entry is recorded in an event ``learnt``, with the ``question`` that the person answered and the ``entry``, so
        that the question's card can offer to approve it.
    """

    def __init__(self, db: Database, *, learn: Learn | None = None, attempt: int | None = None) -> None:
        self._attempt = attempt
        self._runs = Runs(db)
        self._events = Events(db)
        self._answers = Answers(db)
        self._questions = Questions(db)
        self._learn = learn
        self._saved = ("", "")  # the run's id and its session as last stored

    async def save(self, session: Session) -> None:
        saved = (session.run_id, session.model_dump_json())
        if saved != self._saved:  # the agent saves whenever something may have changed
            await self._runs.save_session(*saved, attempt=self._attempt)
            self._saved = saved

    async def event(
        self, run_id: str, event: ports.Event, *, picture: bytes | None = None, session: Session | None = None
    ) -> None:
        if session is not None:
            saved = (run_id, session.model_dump_json())
            new = NewEvent(event.kind, dict(event.data), picture)
            await self._runs.save_session(*saved, event=new, attempt=self._attempt)
            self._saved = saved
            return
        if event.kind != "answer":
            attempt = None if event.kind == "reply" else self._attempt
            await self._events.append(run_id, event.kind, dict(event.data), picture=picture, attempt=attempt)
            return
        answer = _answer_event(event.data)
        attempt = None if answer.state in HAS_LEFT else self._attempt
        await self._answers.tell(run_id, answer, picture=picture, attempt=attempt)
        if self._learn is not None and _teaches(answer):
            try:
                if entry := await self._learn(answer):
                    await self._tell_learnt(run_id, answer.ledger_id, entry)
            except Exception as error:  # the answer is sent; failing to learn from it must not end the run
                log.exception("answer_not_learnt", run=run_id, ledger_id=answer.ledger_id, error=repr(error))

    async def _tell_learnt(self, run_id: str, ledger_id: int, entry: str) -> None:
        """Write the event ``learnt``. Without it the entry still waits for approval in the list of such entries."""
        asked = await self._questions.find(run_id=run_id, state=ANSWERED)
        of = [question.id for question in asked if question.payload["data"].get("ledger_id") == ledger_id]
        if of:
            await self._events.append(run_id, "learnt", {"question": of[-1], "entry": entry})


def _answer_event(data: Mapping[str, Any]) -> ports.AnswerEvent:
    """Build the event from its ``data()``."""
    values: dict[str, Any] = {**data, "state": ports.ReplyState(data["state"])}
    if values.get("records") is not None:
        values["records"] = [ports.Record(**record) for record in values["records"]]
    return ports.AnswerEvent(**values)


def _teaches(answer: ports.AnswerEvent) -> bool:
    by_person = answer.provenance == ports.Provenance.PERSON.value or (answer.person and answer.record_id)
    return answer.state is ports.ReplyState.SENT and bool(by_person)
