"""How a run ends that cannot go on: by an error, or by a limit; at its most steps by what its last act showed."""

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
    """The end by a limit: ``why`` in the language of the run. A reply that has arrived is no failure."""
    sent = sum(reply.delivered for reply in session.replies)
    if not sent:
        return Ending(Status.FAILED, why)
    if owes_answers(session):
        session.error_kind = ModelLimit.kind  # so that a sweep looks again later
    return Ending(Status.SUCCEEDED, say(session.lang, "run.cut_short", count=sent, why=why))


def owes_answers(session: Session) -> bool:
    """Whether something that the customer asked is neither answered nor skipped."""
    return session.cluster is not None and bool(session.cluster.left)


def end_by(session: Session, error: PhonedeskError | LedgerConflict) -> None:
    """What went wrong becomes the outcome."""
    kind = error.kind if isinstance(error, PhonedeskError) else "ledger"
    why = told(error, session.lang) if isinstance(error, PhonedeskError) else str(error)
    ending = cut_short(session, why) if isinstance(error, ModelLimit) else Ending(Status.FAILED, why)
    if ending.status is Status.FAILED:
        session.error_kind = kind
    log.warning("run_cut_short", run_id=session.run_id, status=ending.status.value, kind=kind, error=str(error))
    session.end(ending.status, ending.message)


MOST_SEEN = 400  # characters
BETWEEN = " · "


async def end_at_limit(session: Session, observer: Observer) -> Ending:
    """What was thought before the last act tells nothing of what came of it: so it is looked once more."""
    said = said_at_limit(session, await _on_screen(observer))
    return Ending(Status.FAILED, said) if owes_answers(session) else cut_short(session, said)


def said_at_limit(session: Session, seen: str = "") -> str:
    """``seen``: what is on the screen; without it, what was thought last stands there."""
    last = session.steps[-1] if session.steps else None
    seen = seen or ((last.thinking or last.result) if last else "")
    return say(session.lang, "run.max_steps", steps=session.max_steps, seen=seen)


def ended_at_limit(session: Session) -> bool:
    """Whether this is what the run ended by."""
    return is_said(session.message, session.lang, "run.max_steps", "seen", steps=session.max_steps)


async def _on_screen(observer: Observer) -> str:
    """The app in front and the texts there, from the top; "" where it cannot be looked. Secrets are left out."""
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
