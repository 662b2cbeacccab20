"""How a delivery can end, and the checks of the chat in front that it rests on.

What follows is told to the loop: the model goes on, a person is asked, the run ends, or it is put off until the
knowledge base can be asked again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from agent_core.devices.base import Frame
from agent_core.errors import KnowledgeError
from agent_core.loop.result import ActResult, Ending
from agent_core.perception.compare import Likeness, name, tells_status
from agent_core.perception.readings import ChatScreen
from agent_core.policies.right_chat import is_named_group, title_likeness
from agent_core.ports import KnowledgeBase
from agent_core.reply.match import same_cluster
from agent_core.session import OF_THE_RUN, WAITS_ELSEWHERE, Elsewhere, GateState, Planned, Question, Session, Status
from agent_core.texts import Listed, say, told


class DeliveryResult(StrEnum):
    SENT = "sent"
    CHANGED = "changed"  # something new stands in the chat; nothing was sent
    NOT_IN_CHAT = "not_in_chat"
    WRONG_CHAT = "wrong_chat"
    UNSURE_CHAT = "unsure_chat"
    FOREIGN_DRAFT = "foreign_draft"
    KEYBOARD = "keyboard"  # the text did not get into the input
    NOT_SENT = "not_sent"  # neither the button nor Enter had an effect; the input is empty again
    NO_SEND = "no_send"  # nothing is seen that sends, or it had no effect; the text stands typed
    VOICE_BAR = "voice_bar"  # the input is a bar to hold and talk, and stays one
    RED_MARK = "red_mark"
    UNKNOWN = "unknown"
    TOUCHED = "touched"  # a person touched the phone; nothing was sent


@dataclass(frozen=True, slots=True)
class Outcome:
    """``detail`` is data for the message: a draft, a doubt. ``title`` is that of the chat in front, ``chat`` what was
    read of it where that is not sure."""

    result: DeliveryResult
    detail: str = ""
    title: str = ""
    frame: Frame | None = None
    chat: ChatScreen | None = None


def check_chat(chat: ChatScreen | None, gate: GateState, *, bound: bool = False) -> Outcome | None:
    """None where the chat in front surely is the contact's, by its whole name; else why not.

    ``bound``: the messages are going to be compared with those that were read before, so that it does no harm when the
    upper ones are out of sight now.
    """
    if chat is None:
        return Outcome(DeliveryResult.NOT_IN_CHAT)
    read = chat.sure or (bound and chat.partial)
    if gate.confirmed(chat.title, chat.title_print, group=chat.group):
        # Their word holds for what they were shown; another doubt is asked about anew, and so are messages that nobody
        # has read: they may be other ones by now.
        known = read or (not chat.torn and {doubt.key for doubt in chat.doubts} <= set(gate.doubts_confirmed))
        return None if known else _unsure(chat, chat.title)
    # What is in doubt of the messages makes another customer's chat no less another one.
    named = chat.title_sure and bool(chat.title.strip()) and bool(gate.contact)
    if named and not is_named_group(chat, gate.contact) and title_likeness(chat, gate.contact) is Likeness.OTHER:
        return Outcome(DeliveryResult.WRONG_CHAT, chat.title, chat.title, chat=chat)
    if not gate.contact or not read:
        return _unsure(chat, chat.title)
    if is_named_group(chat, gate.contact):  # a person may have such a name; a group is not answered by itself
        return _unsure(chat, f"group? {gate.contact}")
    like = title_likeness(chat, gate.contact)
    if like is Likeness.ALIKE:
        return _unsure(chat, chat.title)
    if like is Likeness.OTHER:  # by a title that is not sure
        return Outcome(DeliveryResult.WRONG_CHAT, chat.title, chat.title, chat=chat)
    # Once a person has said that what follows the name is a status, another status is none but that.
    status_known = bool(gate.chat_confirmed) and tells_status(gate.chat_confirmed)
    if tells_status(chat.title) and name(chat.title) != name(gate.contact) and not status_known:
        return _unsure(chat, chat.title)
    return None


def _unsure(chat: ChatScreen, doubt: str) -> Outcome:
    return Outcome(DeliveryResult.UNSURE_CHAT, doubt, chat.title, chat=chat)


def check_planned(chat: ChatScreen | None, gate: GateState, planned: Planned) -> Outcome | None:
    """None where ``planned`` may go into the chat in front: the contact's, its newest messages those it answers."""
    refusal = check_chat(chat, gate, bound=True)
    if refusal is None and chat is not None and not same_cluster(planned.cluster, planned.read_by, chat, planned.ours):
        return Outcome(DeliveryResult.CHANGED, title=chat.title)
    return refusal


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
