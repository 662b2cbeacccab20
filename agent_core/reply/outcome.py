"""The possible results of a delivery, the stage of a reply, and the checks of the chat in front that they rely on.

The loop decides what follows: the model continues, a person is asked, the run ends, or it is put off until the
knowledge base can be asked again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from agent_core.devices.base import Frame
from agent_core.errors import KnowledgeError
from agent_core.loop.outcome import ActResult, Ending
from agent_core.perception.compare import Likeness, name, tells_status
from agent_core.perception.readings import ChatScreen
from agent_core.policies.right_chat import is_named_group, title_likeness
from agent_core.ports import KnowledgeBase, LedgerRow, ReplyState
from agent_core.reply.match import same_cluster
from agent_core.session import OF_THE_RUN, WAITS_ELSEWHERE, Elsewhere, GateState, Planned, Question, Session, Status
from agent_core.texts import Listed, say, told


class DeliveryResult(StrEnum):
    """The result of a delivery."""

    SENT = "sent"
    CHANGED = "changed"  # the chat has new messages; nothing was sent
    NOT_IN_CHAT = "not_in_chat"
    WRONG_CHAT = "wrong_chat"
    UNSURE_CHAT = "unsure_chat"
    FOREIGN_DRAFT = "foreign_draft"
    KEYBOARD = "keyboard"  # the text did not reach the input
    NOT_SENT = "not_sent"  # neither the button nor Enter had an effect; the input is empty again
    NO_SEND = "no_send"  # no control that sends was found, or it had no effect; the text is still in the input
    VOICE_BAR = "voice_bar"  # the input is a hold-to-talk bar, and stays one
    RED_MARK = "red_mark"
    UNKNOWN = "unknown"
    TOUCHED = "touched"  # a person touched the phone; nothing was sent


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a delivery, with details.

    detail: data for the message, such as a draft or a doubt.
    title: of the chat in front.
    chat: the reading of it, if that is not sure.
    """

    result: DeliveryResult
    detail: str = ""
    title: str = ""
    frame: Frame | None = None
    chat: ChatScreen | None = None


def check_chat(chat: ChatScreen | None, gate: GateState, *, bound: bool = False) -> Outcome | None:
    """Return None if the chat in front is certainly the contact's, by its whole name; else the reason why not.

    bound: the messages will be compared with those read before, so it does no harm if the upper ones are out of sight.
    """
    if chat is None:
        return Outcome(DeliveryResult.NOT_IN_CHAT)
    read = chat.sure or (bound and chat.partial)
    if gate.confirmed(chat.title, chat.title_print, group=chat.group):
        # A person's yes holds for what they were shown. They are asked again about another doubt, and about messages
        # that nobody has read, because these may be different by now.
        known = read or (not chat.torn and {doubt.key for doubt in chat.doubts} <= set(gate.doubts_confirmed))
        return None if known else _unsure(chat, chat.title)
    # Doubtful messages do not make another customer's chat the contact's.
    named = chat.title_sure and bool(chat.title.strip()) and bool(gate.contact)
    if named and not is_named_group(chat, gate.contact) and title_likeness(chat, gate.contact) is Likeness.OTHER:
        return Outcome(DeliveryResult.WRONG_CHAT, chat.title, chat.title, chat=chat)
    if not gate.contact or not read:
        return _unsure(chat, chat.title)
    if is_named_group(chat, gate.contact):  # a person may have such a name; a group is not answered unasked
        return _unsure(chat, f"group? {gate.contact}")
    like = title_likeness(chat, gate.contact)
    if like is Likeness.ALIKE:
        return _unsure(chat, chat.title)
    if like is Likeness.OTHER:  # by a title that is not sure
        return Outcome(DeliveryResult.WRONG_CHAT, chat.title, chat.title, chat=chat)
    # If a person confirmed that the words after the name are a status, so is any other status.
    status_known = bool(gate.chat_confirmed) and tells_status(gate.chat_confirmed)
    if tells_status(chat.title) and name(chat.title) != name(gate.contact) and not status_known:
        return _unsure(chat, chat.title)
    return None


def _unsure(chat: ChatScreen, doubt: str) -> Outcome:
    return Outcome(DeliveryResult.UNSURE_CHAT, doubt, chat.title, chat=chat)


def check_planned(chat: ChatScreen | None, gate: GateState, planned: Planned) -> Outcome | None:
    """Return None if ``planned`` may go into the chat in front, else the reason.

    It must be the contact's chat, still with the messages that the reply answers.
    """
    refusal = check_chat(chat, gate, bound=True)
    if refusal is None and chat is not None and not same_cluster(planned.cluster, planned.read_by, chat, planned.ours):
        return Outcome(DeliveryResult.CHANGED, title=chat.title)
    return refusal


def ask(session: Session, question: Question, key: str, frame: Frame | None = None) -> ActResult:
    """Return a result that asks a person ``question``; ``key`` is the text that the model is told."""
    return ActResult(say(session.lang, key), ok=False, question=question, frame=frame)


def fail(session: Session, key: str, **values: object) -> ActResult:
    """Return a failed result that tells the model the text ``key``."""
    return ActResult(say(session.lang, key, **values), ok=False)


def waits_elsewhere(session: Session) -> ActResult:
    """End a run that leaves a question of the customer to another run, ``session.elsewhere``.

    It is not a failure if something was sent, or if the other run continues by itself. Raises ValueError if there is no
    other run.
    """
    other = session.elsewhere
    if other is None:
        raise ValueError("No other run has the question.")
    session.error_kind = WAITS_ELSEWHERE  # so that a sweep checks again in case the other run achieves nothing
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
    """Return what a reply task that the model ended has achieved, told from what was sent.

    said: the model's own words. They are added as its note if it gave up or nothing was sent.
    """
    known = sent_so_far(session)
    if not said.strip() or (ok and session.replies):
        return known
    return f"{known}\n{say(session.lang, 'run.model_note', text=said)}"


def nothing_left(session: Session, key: str, **values: object) -> ActResult:
    """End a run that has nothing more to answer. ``key`` says why nothing was sent, if nothing was."""
    message = sent_so_far(session, key, **values)
    return ActResult(message, ending=Ending(Status.SUCCEEDED, message))


def sent_so_far(session: Session, key: str = "run.nothing_sent", **values: object) -> str:
    """Return whom the run has answered, and how often. ``key`` says why nothing was sent, if nothing was."""
    if not session.replies:
        return say(session.lang, key, **values)
    contacts = Listed(dict.fromkeys(reply.contact for reply in session.replies))
    return say(session.lang, "run.replied", contact=contacts, count=len(session.replies))


def end(session: Session, status: Status, key: str, **values: object) -> ActResult:
    """Return a result that ends the run with ``status`` and the text ``key``."""
    message = say(session.lang, key, **values)
    return ActResult(message, ok=status is Status.SUCCEEDED, ending=Ending(status, message))


KNOWLEDGE_TRIES = 2  # failed actions, each after the provider's own retries
FIRST_PAUSE = 30.0  # seconds; twice as long after each further failure
LONGEST_PAUSE = 300.0


def put_off(session: Session, error: KnowledgeError, query: str) -> ActResult:
    """Leave the question waiting: the run rests, and nobody is asked, until the base can be asked ``query`` again."""
    session.put_off = query
    session.error_kind = error.kind
    return end(session, Status.WAITING, "run.knowledge_away", error=told(error, session.lang))


def pause(session: Session) -> float:
    """Return how long a run that was put off rests, in seconds."""
    further = max(0, session.knowledge_failures - KNOWLEDGE_TRIES)
    return float(min(FIRST_PAUSE * 2 ** min(further, 10), LONGEST_PAUSE))


async def still_away(session: Session, knowledge: KnowledgeBase) -> bool:
    """Ask the base for a run that was put off, before the phone or a model is used for it.

    Returns True if it still fails: the run is put off again, for longer.
    """
    try:
        await knowledge.retrieve(session.put_off)
    except KnowledgeError as error:
        session.knowledge_failures += 1
        session.end(Status.WAITING, put_off(session, error, session.put_off).message)
        return True
    session.put_off = session.error_kind = session.message = ""
    session.cluster = None  # another run may have taken the question up, so it is read again
    return False


class ReplyStage(StrEnum):
    """The progress of a run with the customer's newest messages.

    Drawn in ``docs/development/architecture.md``; the tests check every run against the drawing.
    """

    UNREAD = "unread"  # they have not been read in the contact's own chat
    READ = "read"  # each question has a row; nothing has been chosen for the next one
    WAITING = "waiting"  # a person is asked what to do about it
    CHOSEN = "chosen"  # its text is stored, and nothing of it typed
    TYPING = "typing"  # it is typed and read back
    SENDING = "sending"  # Send may have been touched
    UNCLEAR = "unclear"  # it has a red mark, or nothing shows whether it arrived
    ANSWERED = "answered"  # nothing is left to be answered


_OF_ROW = {
    ReplyState.TYPING: ReplyStage.TYPING,
    ReplyState.SENDING: ReplyStage.SENDING,
    ReplyState.UNKNOWN: ReplyStage.UNCLEAR,
    ReplyState.FAILED: ReplyStage.UNCLEAR,
}


def stage_of(session: Session, row: LedgerRow | None) -> ReplyStage:
    """Return the stage of a reply task.

    row: the current ledger row of ``session.planned``; None if nothing is planned.
    """
    if row is not None and session.planned is not None:
        if row.state in _OF_ROW:
            return _OF_ROW[row.state]
        if row.state is ReplyState.PLANNED and session.question is not None:
            return ReplyStage.WAITING
        if row.state is ReplyState.PLANNED and session.planned.text:
            return ReplyStage.CHOSEN
    if session.cluster is None:
        return ReplyStage.UNREAD
    return ReplyStage.READ if session.cluster.left else ReplyStage.ANSWERED
