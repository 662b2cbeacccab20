"""How a run ends that cannot go on: by an error, or by a limit."""

from __future__ import annotations

import structlog

from agent_core.errors import ModelLimit, PhonedeskError
from agent_core.loop.result import Ending
from agent_core.ports import LedgerConflict
from agent_core.session import Session, Status
from agent_core.texts import say, told

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
