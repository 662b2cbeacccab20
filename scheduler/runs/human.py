"""Questions to people: each is a row that any channel may answer.

While a run waits for a person or is held, its phone is parked on a screen where nothing can go wrong.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import structlog

from agent_core.devices.base import Device, Key
from agent_core.errors import LeaseLost, PhonedeskError
from agent_core.model.base import Completion, Message, Model, ModelWrapper, OnThinking
from agent_core.ports import Lease
from agent_core.session import Answer, Question, QuestionKind, Session
from scheduler.jobs.deadlines import NO_TIMES, QuestionTimes, answer_at_deadline
from scheduler.runs.stop import StopSignal
from storage.engine import MISSED_SECONDS, Database
from storage.events import Events
from storage.questions import ANSWERED, EXPIRED, OPEN, QuestionRow, Questions
from storage.signals import Waiter

log = structlog.get_logger(__name__)


class StoredHuman:
    """``agent_core.ports.Human`` over the questions table.

    Any channel may answer; the phone is kept for a while meanwhile.

    hold_seconds: how long the phone is kept for an answer.
    stop: Hold and the end of the process end this wait.
    attempt: the attempt that asks. Raises LeaseLost if its turn is over.
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
        """Wait for an answer, Stop, Hold or the end of the process, at most ``seconds``."""
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
    """Store a question's row, then the event that makes the channels show it.

    times: see ``scheduler.jobs.deadlines``.
    attempt: the attempt that asks. Raises LeaseLost if its turn is over.
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
    """Return the answer that won, or None if there is none. An expired question has the default answer of its kind."""
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


# While one of these questions is open the screen is left as it is: a person is using the phone, is to act on this very
# screen, or has an unsent text that leaving might send. This does not apply to a sensitive tap: a payment page is not
# left open, and a person's yes is bound to its app and page (agent_core.policies.approval), which the run opens again.
LEFT_ALONE = frozenset(
    {QuestionKind.TAKE_OVER, QuestionKind.PERSON_ON_PHONE, QuestionKind.FOREIGN_DRAFT, QuestionKind.NO_SEND}
)


def may_go_home(session: Session) -> bool:
    """Tell whether the phone may be brought to its home screen while this run rests."""
    return session.question is None or session.question.kind not in LEFT_ALONE


async def park(device: Device, lease: Lease, session: Session) -> bool:
    """Bring the phone to its home screen if that is allowed.

    Return whether it was. Errors are logged, and the run rests anyway.

    The session forgets that it opened a chat by its number, so that the next attempt may do so again. The caller saves
    the session.
    """
    if not may_go_home(session) or not await go_home(device, lease, session.run_id):
        return False
    session.number_tried = session.gate.row_entered = False
    return True


async def go_home(device: Device, lease: Lease, run_id: str) -> bool:
    """Bring the phone to its home screen. Return False if that failed, which is logged. Raises LeaseLost."""
    try:
        await lease.check()
        await device.key(Key.HOME)
    except LeaseLost:
        raise
    except PhonedeskError as error:
        log.warning("phone_not_parked", serial=device.serial, run=run_id, error=str(error))
        return False
    return True


class ParkingModel(ModelWrapper):
    """A model whose calls Hold may cancel, because nothing is done on the phone while the model thinks.

    Vision readings are not cancelled, because they may happen in the middle of a delivery.
    """

    def __init__(self, model: Model, stop: StopSignal) -> None:
        super().__init__(model)
        self._stop = stop

    async def complete(self, messages: Sequence[Message], *, on_thinking: OnThinking | None = None) -> Completion:
        with self._stop.may_park():
            return await super().complete(messages, on_thinking=on_thinking)

    async def ask(self, messages: Sequence[Message]) -> Completion:
        with self._stop.may_park():
            return await super().ask(messages)
