"""What the reply flow tells: the model goes on, a person is asked, or the run ends."""

from __future__ import annotations

from agent_core.devices.base import Frame
from agent_core.result import ActResult, Ending
from agent_core.session import OF_THE_RUN, WAITS_ELSEWHERE, Question, Session, Status
from agent_core.texts import say


def ask(session: Session, question: Question, key: str, frame: Frame | None = None) -> ActResult:
    return ActResult(say(session.lang, key), ok=False, question=question, frame=frame)


def fail(session: Session, key: str, **values: object) -> ActResult:
    return ActResult(say(session.lang, key, **values), ok=False)


def waits_elsewhere(session: Session) -> ActResult:
    """The end of a run that leaves the customer to another one, ``session.elsewhere``: nobody has answered them yet."""
    other = session.elsewhere
    if other is None:
        raise ValueError("No other run has the question.")
    asked = other.question
    session.error_kind = WAITS_ELSEWHERE
    if asked is None:
        return end(session, Status.FAILED, "run.held_elsewhere", run=other.name or other.run_id)
    key = "run.stuck_elsewhere" if asked.kind in OF_THE_RUN else "run.asked_elsewhere"
    return end(session, Status.FAILED, key, run=other.name or other.run_id, id=asked.id)


def end(session: Session, status: Status, key: str, **values: object) -> ActResult:
    message = say(session.lang, key, **values)
    return ActResult(message, ok=status is Status.SUCCEEDED, ending=Ending(status, message))
