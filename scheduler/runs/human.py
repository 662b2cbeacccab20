"""People who answer when they can: a question is a row, which any channel may answer."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import structlog
from pydantic import TypeAdapter

from agent_core.apps.learnt import LearntApp
from agent_core.session import Answer, Question, QuestionKind, Session
from scheduler.jobs.deadlines import NO_TIMES, QuestionTimes, answer_at_deadline
from scheduler.runs.stop import StopSignal
from storage.engine import MISSED_SECONDS, Database, Waiter
from storage.events import Events
from storage.questions import ANSWERED, EXPIRED, OPEN, QuestionRow, Questions

_LEARNT = TypeAdapter(LearntApp)

log = structlog.get_logger(__name__)


class StoredHuman:
    """``agent_core.ports.Human`` by rows: any channel may answer, and the phone is held for a while meanwhile.

    ``stop``: at Hold, and when the process ends, the phone is not held any longer. ``attempt``: who asks; LeaseLost
    once its turn is over.
    """

    def __init__(
        self,
        db: Database,
        *,
        hold_seconds: float,
        times: QuestionTimes = NO_TIMES,
        stop: StopSignal | None = None,
        attempt: int | None = None,
    ) -> None:
        self._db = db
        self._attempt = attempt
        self._questions = Questions(db)
        self._events = Events(db)
        self._hold = hold_seconds
        self._times = times
        self._stop = stop

    async def ask(self, session: Session, question: Question, *, picture: bytes | None = None) -> Answer | None:
        await store_question(
            self._questions, self._events, session, question, picture, times=self._times, attempt=self._attempt
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
    attempt: int | None = None,
) -> None:
    """The row first, then the event that makes the channels show it. ``times``: see ``scheduler.jobs.deadlines``.

    ``attempt``: who asks; LeaseLost once its turn is over.
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
        attempt=attempt,
    )
    await events.append(session.run_id, "question", payload, picture=picture, attempt=attempt)


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
