"""What the reply flow tells: the model goes on, a person is asked, or the run ends."""

from __future__ import annotations

from agent_core.devices.base import Frame
from agent_core.result import ActResult, Ending
from agent_core.session import Question, Session, Status
from agent_core.texts import say


def ask(session: Session, question: Question, key: str, frame: Frame | None = None) -> ActResult:
    return ActResult(say(session.lang, key), ok=False, question=question, frame=frame)


def fail(session: Session, key: str, **values: object) -> ActResult:
    return ActResult(say(session.lang, key, **values), ok=False)


def end(session: Session, status: Status, key: str, **values: object) -> ActResult:
    message = say(session.lang, key, **values)
    return ActResult(message, ok=status is Status.SUCCEEDED, ending=Ending(status, message))
