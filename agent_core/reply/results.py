"""What the reply flow tells: the model goes on, a person is asked, or the run ends."""

from __future__ import annotations

from agent_core.devices.base import Frame
from agent_core.loop.result import ActResult, Ending
from agent_core.session import OF_THE_RUN, WAITS_ELSEWHERE, Elsewhere, Question, Session, Status
from agent_core.texts import Listed, say


def ask(session: Session, question: Question, key: str, frame: Frame | None = None) -> ActResult:
    return ActResult(say(session.lang, key), ok=False, question=question, frame=frame)


def fail(session: Session, key: str, **values: object) -> ActResult:
    return ActResult(say(session.lang, key, **values), ok=False)


def waits_elsewhere(session: Session) -> ActResult:
    """The end of a run that leaves a question of the customer to another one, ``session.elsewhere``.

    It is no failure where something was sent, or where the other run goes on by itself.
    """
    other = session.elsewhere
    if other is None:
        raise ValueError("No other run has the question.")
    session.error_kind = WAITS_ELSEWHERE  # so that a sweep looks again, should the other one come to nothing
    why = _why_elsewhere(session, other)
    sent = sum(reply.delivered for reply in session.replies)
    if sent:
        return end(session, Status.SUCCEEDED, "run.rest_elsewhere", count=sent, why=why)
    return end(session, Status.SUCCEEDED if other.goes_on else Status.FAILED, "run.all_elsewhere", why=why)


def _why_elsewhere(session: Session, other: Elsewhere) -> str:
    run, asked = other.name or other.run_id, other.question
    if asked is not None:
        key = "run.stuck_elsewhere" if asked.kind in OF_THE_RUN else "run.asked_elsewhere"
        return say(session.lang, key, run=run, id=asked.id, since=_since(session, other))
    return say(session.lang, "run.goes_on_elsewhere" if other.goes_on else "run.held_elsewhere", run=run)


def _since(session: Session, other: Elsewhere) -> str:
    """Return when the person was asked, in the owner's time zone, in which the run began."""
    zone = session.started_at.tzinfo if session.started_at else None
    return f"{other.asked_at.astimezone(zone):%m-%d %H:%M}" if other.asked_at else "?"


def told_reply(session: Session, said: str, *, ok: bool) -> str:
    """Say what came of a reply task that the model has ended: what was sent is known without it.

    ``said``: its own words. They stand below, as its note, if it gave up or nothing was sent.
    """
    known = _replied(session) if session.replies else say(session.lang, "run.nothing_sent")
    if not said.strip() or (ok and session.replies):
        return known
    return f"{known}\n{say(session.lang, 'run.model_note', text=said)}"


def nothing_left(session: Session, key: str, **values: object) -> ActResult:
    """End a run that has nothing more to answer; ``key`` says why nothing was sent, if nothing was."""
    message = _replied(session) if session.replies else say(session.lang, key, **values)
    return ActResult(message, ending=Ending(Status.SUCCEEDED, message))


def _replied(session: Session) -> str:
    contacts = Listed(dict.fromkeys(reply.contact for reply in session.replies))
    return say(session.lang, "run.replied", contact=contacts, count=len(session.replies))


def end(session: Session, status: Status, key: str, **values: object) -> ActResult:
    message = say(session.lang, key, **values)
    return ActResult(message, ok=status is Status.SUCCEEDED, ending=Ending(status, message))
