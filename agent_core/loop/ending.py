"""The end of a run by an error or a limit. At the step limit, the message includes the result of the last action."""

from __future__ import annotations

import structlog

from agent_core.errors import DeviceError, ModelLimit, PhonedeskError
from agent_core.loop.result import Ending
from agent_core.model.history import app_name, cut
from agent_core.perception.observer import Observer
from agent_core.ports import LedgerConflict
from agent_core.session import Session, Status
from agent_core.texts import is_said, say, told

log = structlog.get_logger(__name__)


def cut_short(session: Session, why: str) -> Ending:
    """Return the end by a limit: a success if at least one reply was delivered, else a failure.

    why: the reason in the run's language.
    """
    sent = sum(reply.delivered for reply in session.replies)
    if not sent:
        return Ending(Status.FAILED, why)
    if owes_answers(session):
        session.error_kind = ModelLimit.kind  # so that a sweep tries again later
    return Ending(Status.SUCCEEDED, say(session.lang, "run.cut_short", count=sent, why=why))


def owes_answers(session: Session) -> bool:
    """Tell whether a question of the customer is neither answered nor skipped."""
    return session.cluster is not None and bool(session.cluster.left)


def end_by(session: Session, error: PhonedeskError | LedgerConflict, fate: str = "") -> None:
    """End the run with ``error`` as its outcome. ``fate``: what the customer got, for the message of a failure."""
    kind = error.kind if isinstance(error, PhonedeskError) else "ledger"
    why = told(error, session.lang) if isinstance(error, PhonedeskError) else str(error)
    ending = cut_short(session, why) if isinstance(error, ModelLimit) else Ending(Status.FAILED, why)
    failed = ending.status is Status.FAILED
    if failed:
        session.error_kind = kind
    log.warning("run_cut_short", run_id=session.run_id, status=ending.status.value, kind=kind, error=str(error))
    session.end(ending.status, f"{ending.message}\n{fate}" if failed and fate else ending.message)


def said_at_stop(session: Session) -> str:
    """Return the message of a run that was stopped. A reply may be sent before the first step is over."""
    begun = session.steps or session.replies
    return say(session.lang, "run.stopped" if begun else "run.stopped_first")


MOST_SEEN = 400  # characters
BETWEEN = " · "


async def end_at_limit(session: Session, observer: Observer) -> Ending:
    """Return the end at the step limit, with a new observation: the last thought was written before the last action."""
    said = said_at_limit(session, await _on_screen(observer))
    return Ending(Status.FAILED, said) if owes_answers(session) else cut_short(session, said)


def said_at_limit(session: Session, seen: str = "") -> str:
    """Return the message of the step limit. Without a text of the screen (``seen``) it quotes the last thought."""
    last = session.steps[-1] if session.steps else None
    seen = seen or ((last.thinking or last.result) if last else "")
    return say(session.lang, "run.max_steps", steps=session.max_steps, seen=seen)


def ended_at_limit(session: Session) -> bool:
    """Tell whether the run ended at its step limit."""
    return is_said(session.message, session.lang, "run.max_steps", "seen", steps=session.max_steps)


async def _on_screen(observer: Observer) -> str:
    """Return the app in front and the texts there from the top, without secrets; "" if the screen cannot be read."""
    try:
        seen = await observer.observe(None)
    except DeviceError as error:
        log.warning("not_seen_at_limit", error=str(error))
        return ""
    covered = await observer.redaction.boxes(seen.frame)
    shown = [one for one in seen.readings if not any(one.box.intersects(box) for box in covered)]
    texts = dict.fromkeys(" ".join(one.text.split()) for one in sorted(shown, key=lambda one: one.box.top))
    words = cut(BETWEEN.join(filter(None, texts)), MOST_SEEN)
    return ": ".join(filter(None, (app_name(seen.window.package), words)))
