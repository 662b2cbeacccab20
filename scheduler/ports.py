"""The agent's ports over our tables: ledger, run store, and people who answer when they can."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import structlog
from pydantic import TypeAdapter

from agent_core import ports
from agent_core.apps.learnt import LearntApp
from agent_core.session import Answer, Question, QuestionKind, Session
from scheduler.deadlines import NO_TIMES, QuestionTimes, answer_at_deadline
from scheduler.signals import StopSignal
from storage.answers import Answers
from storage.engine import MISSED_SECONDS, Database, Waiter
from storage.events import Events
from storage.questions import ANSWERED, EXPIRED, OPEN, QuestionRow, Questions
from storage.runs import Runs

_LEARNT = TypeAdapter(LearntApp)

log = structlog.get_logger(__name__)


Learn = Callable[[ports.AnswerEvent], Awaitable[str]]  # gives the id of the waiting entry that came of it, or ""


HAS_LEFT = (ports.ReplyState.SENT, ports.ReplyState.UNKNOWN)


class StoredRuns:
    """``agent_core.ports.RunStore`` over runs, events and the answer log.

    ``leg``: whose writes they are. Once its turn is over (another leg has the run, or it is over) they raise LeaseLost
    and change nothing, but for what has left the phone: that is told by whoever did it. None: written by no leg.

    ``learn`` is called with each answer that a person had a hand in, once it is sent: their own text, or the record
    that they chose. It is called after the answer is stored, and again where the event is told again after a restart;
    its errors are logged. The entry that came of it is told in an event ``learnt``, with the ``question`` that the
    person answered and the ``entry``, so that the question's card can offer to approve it.
    """

    def __init__(self, db: Database, *, learn: Learn | None = None, leg: int | None = None) -> None:
        self._leg = leg
        self._runs = Runs(db)
        self._events = Events(db)
        self._answers = Answers(db)
        self._questions = Questions(db)
        self._learn = learn
        self._saved = ("", "")  # the run, and its session as it was stored last

    async def save(self, session: Session) -> None:
        saved = (session.run_id, session.model_dump_json())
        if saved != self._saved:  # the agent saves wherever something may have changed
            await self._runs.save_session(*saved, leg=self._leg)
            self._saved = saved

    async def event(self, run_id: str, event: ports.Event, *, picture: bytes | None = None) -> None:
        if event.kind != "answer":
            leg = None if event.kind == "reply" else self._leg
            await self._events.append(run_id, event.kind, dict(event.data), picture=picture, leg=leg)
            return
        answer = _answer_event(event.data)
        leg = None if answer.state in HAS_LEFT else self._leg
        await self._answers.tell(run_id, answer, picture=picture, leg=leg)
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


class StoredHuman:
    """``agent_core.ports.Human`` by rows: any channel may answer, and the phone is held for a while meanwhile.

    ``stop``: at Hold, and when the process ends, the phone is not held any longer. ``leg``: who asks; LeaseLost once
    its turn is over.
    """

    def __init__(
        self,
        db: Database,
        *,
        hold_seconds: float,
        times: QuestionTimes = NO_TIMES,
        stop: StopSignal | None = None,
        leg: int | None = None,
    ) -> None:
        self._db = db
        self._leg = leg
        self._questions = Questions(db)
        self._events = Events(db)
        self._hold = hold_seconds
        self._times = times
        self._stop = stop

    async def ask(self, session: Session, question: Question, *, picture: bytes | None = None) -> Answer | None:
        await store_question(
            self._questions, self._events, session, question, picture, times=self._times, leg=self._leg
        )
        until = time.monotonic() + self._hold
        while True:
            waiter = self._db.signal("questions").waiter()
            row = await self._questions.get(question.id)
            left = until - time.monotonic()
            over = self._stop is not None and (self._stop.hold_requested or self._stop.closing.is_set())
            if row is None or row.state != OPEN or left <= 0 or over:
                return given_answer(row)
            await self._wait(waiter, min(left, MISSED_SECONDS))

    async def _wait(self, waiter: Waiter, seconds: float) -> None:
        """Wait for an answer, for Stop or Hold, for the end of the process, or for the time to pass."""
        waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(waiter.wait(seconds))]
        if self._stop is not None:
            waits += [asyncio.ensure_future(self._stop.wait()), asyncio.ensure_future(self._stop.closing.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()


async def store_question(
    questions: Questions,
    events: Events,
    session: Session,
    question: Question,
    picture: bytes | None,
    *,
    times: QuestionTimes = NO_TIMES,
    leg: int | None = None,
) -> None:
    """The row first, then the event that makes the channels show it. ``times``: see ``scheduler.deadlines``.

    ``leg``: who asks; LeaseLost once its turn is over.
    """
    payload = question.model_dump(mode="json")
    now = questions.now()
    deadline = times.deadline_of(question.kind, now)
    await questions.ask(
        question.id,
        run_id=session.run_id,
        kind=question.kind.value,
        payload=payload,
        deadline=deadline,
        remind_after=times.remind_after(deadline, now),
        escalate_after=times.escalate_after,
        leg=leg,
    )
    await events.append(session.run_id, "question", payload, picture=picture, leg=leg)


def given_answer(row: QuestionRow | None) -> Answer | None:
    """The answer that won, or None while there is none. One whose time is over has the answer of its kind."""
    if row is None:
        return None
    if row.state == EXPIRED:
        return answer_at_deadline(QuestionKind(row.kind))
    if row.state != ANSWERED or row.answer is None:
        return None
    given = row.answer
    return Answer(
        choice=given.get("choice", ""),
        text=given.get("text", ""),
        by=row.answered_by,
        program=bool(given.get("program")),
    )
