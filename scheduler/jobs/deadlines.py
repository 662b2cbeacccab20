"""Questions over time: default answers at a deadline, reminders, and escalation to a second person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

import structlog

from agent_core.loop.questions import NONE, SKIP
from agent_core.session import NOBODY, Answer, QuestionKind
from scheduler.jobs.periodic import Periodic
from storage.engine import Database
from storage.questions import Questions

LOOK_SECONDS = 5.0  # how soon questions of other processes are seen

log = structlog.get_logger(__name__)

Then = Literal["skip", "leave", "deny", "no", "stop", "told", "wait"]


@dataclass(frozen=True, slots=True)
class AtDeadline:
    """The rule for a question that nobody has answered in time.

    then: the key, under ``then``, of the text that announces it.
    choice: the answer, one that the kind accepts; "" if the kind takes free text, or if the question waits.
    why: the reason, for developers.
    """

    then: Then
    choice: str
    why: str


WAITS = "wait"

AT_DEADLINE: Mapping[QuestionKind, AtDeadline] = {
    QuestionKind.NO_SURE_ANSWER: AtDeadline("skip", SKIP, "No text leaves without a person; the rest is answered."),
    QuestionKind.UNREADABLE: AtDeadline("skip", SKIP, "As above."),
    QuestionKind.FOREIGN_DRAFT: AtDeadline(
        "leave", SKIP, "Somebody's draft is theirs: it stays, and nothing is typed."
    ),
    QuestionKind.CHAT_CHANGED: AtDeadline("leave", SKIP, "The customer writes on; the next run reads all of it."),
    QuestionKind.STILL_SEND: AtDeadline("skip", SKIP, "The chat has moved on since the answer was chosen."),
    QuestionKind.NO_SEND: AtDeadline("skip", SKIP, "Nothing is sent by guessing: the text leaves the input."),
    QuestionKind.SENSITIVE_TAP: AtDeadline("deny", "deny", "What costs something is done with consent only."),
    QuestionKind.RIGHT_CHAT: AtDeadline("no", "no", "An answer in the wrong chat cannot be taken back."),
    QuestionKind.WHICH_ROW: AtDeadline("no", NONE, "As above."),
    QuestionKind.TAKE_OVER: AtDeadline("stop", "stop", "Without what the person was to do the task cannot go on."),
    QuestionKind.STUCK: AtDeadline("stop", "stop", "Going on as before would be the same loop."),
    QuestionKind.BUDGET: AtDeadline("stop", "stop", "More is spent with consent only."),
    QuestionKind.PERSON_ON_PHONE: AtDeadline("stop", "stop", "Nobody said that they have put it down."),
    QuestionKind.INTERACT: AtDeadline("told", "", "Which choice is right is not ours to guess: the agent is told so."),
    # Never decided by a deadline: each choice could send something twice, or leave a customer with half an answer.
    QuestionKind.DELIVERY_UNKNOWN: AtDeadline("wait", "", "'Not arrived' may send twice, 'arrived' may send nothing."),
    QuestionKind.ANSWERED_BEFORE: AtDeadline("wait", "", "Again may be a second answer, skipping may lose a question."),
    QuestionKind.REST_UNSENT: AtDeadline("wait", "", "The customer has half an answer: a person says what follows."),
    QuestionKind.FIRST_DELIVERY: AtDeadline("wait", "", "A chosen answer is ready; one look at it releases them all."),
}


@dataclass(frozen=True, slots=True)
class QuestionTimes:
    """The times of a question in minutes; 0 is never.

    ``remind``: the time to the first reminder, at most half the deadline.
    """

    deadline: float = 0.0
    remind: float = 0.0
    escalate: float = 0.0

    def deadline_of(self, kind: QuestionKind, now: datetime) -> datetime | None:
        """Return the deadline of a question that is asked ``now``, or None if it waits for ever."""
        if not self.deadline or AT_DEADLINE[kind].then == WAITS:
            return None
        return now + timedelta(minutes=self.deadline)

    def remind_after(self, deadline: datetime | None, now: datetime) -> timedelta | None:
        if not self.remind:
            return None
        after = timedelta(minutes=self.remind)
        return after if deadline is None else min(after, (deadline - now) / 2)

    @property
    def escalate_after(self) -> timedelta | None:
        return timedelta(minutes=self.escalate) if self.escalate else None


NO_TIMES = QuestionTimes()
NO_WORDS = "—"  # a free-text answer that nobody wrote; the agent tells its model so


def answer_at_deadline(kind: QuestionKind) -> Answer | None:
    """Return the answer that counts if nobody gave one, or None if the question waits."""
    rule = AT_DEADLINE[kind]
    if rule.then == WAITS:
        return None
    return Answer(choice=rule.choice, text="" if rule.choice else NO_WORDS, by=NOBODY)


class QuestionWatch(Periodic):
    """The watch that closes questions past their deadline, reminds and escalates, from ``start`` to ``stop``.

    All state is in the rows. Several processes may watch: each thing is done by one of them.
    """

    def __init__(self, db: Database, *, look_seconds: float = LOOK_SECONDS) -> None:
        super().__init__("question-watch", self._turn, look_seconds, waiter=lambda: db.signal("questions").waiter())
        self._db = db
        self._questions = Questions(db)
        self._look_seconds = look_seconds

    async def once(self) -> None:
        """Do everything that is due now.

        Deadlines come first, so that nobody is reminded of a question that is over.
        """
        closed = await self._questions.expire()
        reminded = await self._questions.remind()
        escalated = await self._questions.escalate()
        for what, rows in (("expired", closed), ("reminded", reminded), ("escalated", escalated)):
            for row in rows:
                log.info(f"question_{what}", question=row.id, run=row.run_id, kind=row.kind)

    async def _turn(self) -> float | None:
        next_at = await self._questions.next_time()
        if next_at is not None and next_at <= self._db.now():
            await self.once()
            next_at = await self._questions.next_time()
        if next_at is None:
            return None
        return min(self._look_seconds, max(0.01, (next_at - self._db.now()).total_seconds()))
