"""A reply that the knowledge base cannot be asked for: the question stays open, and the run goes on once it can."""

from __future__ import annotations

from agent_core.errors import KnowledgeError
from agent_core.loop.result import ActResult
from agent_core.ports import KnowledgeBase
from agent_core.reply.results import end
from agent_core.session import Session, Status
from agent_core.texts import told

KNOWLEDGE_TRIES = 2  # failed actions; each has the provider's own retries behind it
FIRST_PAUSE = 30.0  # seconds; twice as long after each further failure
LONGEST_PAUSE = 300.0


def put_off(session: Session, error: KnowledgeError, query: str) -> ActResult:
    """Leave the question waiting: the run rests, with nobody asked, until ``query`` can be put to the base again."""
    session.put_off = query
    session.error_kind = error.kind
    return end(session, Status.WAITING, "run.knowledge_away", error=told(error, session.lang))


def pause(session: Session) -> float:
    """Return the seconds for which a run that was put off rests."""
    further = max(0, session.knowledge_failures - KNOWLEDGE_TRIES)
    return float(min(FIRST_PAUSE * 2 ** min(further, 10), LONGEST_PAUSE))


async def still_away(session: Session, knowledge: KnowledgeBase) -> bool:
    """Ask the base for a run that was put off, before the phone or a model is used for it.

    Return True if it still fails: the run is put off again, for longer.
    """
    try:
        await knowledge.retrieve(session.put_off)
    except KnowledgeError as error:
        session.knowledge_failures += 1
        session.end(Status.WAITING, put_off(session, error, session.put_off).message)
        return True
    session.put_off = session.error_kind = session.message = ""
    session.cluster = None  # another run may have taken the question up: it is read anew
    return False
