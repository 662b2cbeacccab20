"""The agent's run store over our tables: sessions, the event log, the answer log."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import structlog

from agent_core import ports
from agent_core.session import Session
from storage.answers import Answers
from storage.engine import Database
from storage.events import Events
from storage.questions import ANSWERED, Questions
from storage.runs import Runs

log = structlog.get_logger(__name__)

Learn = Callable[[ports.AnswerEvent], Awaitable[str]]  # gives the id of the waiting entry that came of it, or ""

HAS_LEFT = (ports.ReplyState.SENT, ports.ReplyState.UNKNOWN)


class StoredRuns:
    """``agent_core.ports.RunStore`` over runs, events and the answer log.

    ``attempt``: whose writes they are. Once its turn is over (another attempt has the run, or it is over) they raise
    LeaseLost and change nothing, but for what has left the phone: that is told by whoever did it. None: written by no
    attempt.

    ``learn`` is called with each answer that a person had a hand in, once it is sent: their own text, or the record
    that they chose. It is called after the answer is stored, and again where the event is told again after a restart;
    its errors are logged. The entry that came of it is told in an event ``learnt``, with the ``question`` that the
    person answered and the ``entry``, so that the question's card can offer to approve it.
    """

    def __init__(self, db: Database, *, learn: Learn | None = None, attempt: int | None = None) -> None:
        self._attempt = attempt
        self._runs = Runs(db)
        self._events = Events(db)
        self._answers = Answers(db)
        self._questions = Questions(db)
        self._learn = learn
        self._saved = ("", "")  # the run, and its session as it was stored last

    async def save(self, session: Session) -> None:
        saved = (session.run_id, session.model_dump_json())
        if saved != self._saved:  # the agent saves wherever something may have changed
            await self._runs.save_session(*saved, attempt=self._attempt)
            self._saved = saved

    async def event(self, run_id: str, event: ports.Event, *, picture: bytes | None = None) -> None:
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
            except Exception as error:  # the answer is out; what could be learnt from it must not end the run
                log.exception("answer_not_learnt", run=run_id, ledger_id=answer.ledger_id, error=repr(error))

    async def _tell_learnt(self, run_id: str, ledger_id: int, entry: str) -> None:
        """Without an event the entry waits all the same, for whoever looks at what waits."""
        asked = await self._questions.find(run_id=run_id, state=ANSWERED)
        of = [question.id for question in asked if question.payload["data"].get("ledger_id") == ledger_id]
        if of:
            await self._events.append(run_id, "learnt", {"question": of[-1], "entry": entry})


def _answer_event(data: Mapping[str, Any]) -> ports.AnswerEvent:
    """The event whose ``data()`` this is."""
    values: dict[str, Any] = {**data, "state": ports.ReplyState(data["state"])}
    if values.get("records") is not None:
        values["records"] = [ports.Record(**record) for record in values["records"]]
    return ports.AnswerEvent(**values)


def _teaches(answer: ports.AnswerEvent) -> bool:
    by_person = answer.provenance == ports.Provenance.PERSON.value or (answer.person and answer.record_id)
    return answer.state is ports.ReplyState.SENT and bool(by_person)
