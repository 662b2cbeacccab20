"""The outcome of a step and of an answered question, and the end of a run by an error or a limit."""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from agent_core.actions.types import Action
from agent_core.devices.base import Frame
from agent_core.errors import DeviceError, ModelLimit, PhonedeskError
from agent_core.loop.questions import allow_more
from agent_core.model.base import Completion, Usage
from agent_core.model.history import app_name
from agent_core.perception.observer import Observer
from agent_core.policies import approval
from agent_core.ports import LedgerConflict
from agent_core.session import NO_REPLY, NOBODY, Answer, Question, QuestionKind, Session, Status
from agent_core.texts import cut, is_said, say, told

log = structlog.get_logger(__name__)

MOST_SEEN = 400  # characters of the screen at the step limit


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a run, decided by code and not by the model."""

    status: Status
    message: str


@dataclass(frozen=True, slots=True)
class ActResult:
    """The result of one action.

    message: for the model's next prompt.
    question: stops the run until a person has answered.
    frame: the picture that is shown with the question, if it is not the step's.
    usage: of a model that the action itself has asked.
    acted: something was done on the phone that may change its screen.
    query: the query to the knowledge base, if it was not the model's.
    """

    message: str
    ok: bool = True
    ending: Ending | None = None
    question: Question | None = None
    frame: Frame | None = None
    usage: Usage | None = None
    acted: bool = False
    query: str = ""


@dataclass(frozen=True, slots=True)
class Thought:
    """A model's reply, as read. ``problem`` is set if no action could be read from it."""

    completion: Completion
    seconds: float
    thinking: str = ""
    action: Action | None = None
    ignored: str = ""
    problem: ActResult | None = None


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
    words = cut(" · ".join(filter(None, texts)), MOST_SEEN)
    return ": ".join(filter(None, (app_name(seen.window.package), words)))


def take_answer(session: Session, question: Question, answer: Answer) -> ActResult:
    """Apply a person's answer to the session and return the result that the run continues with."""
    lang = session.lang
    match question.kind:
        case QuestionKind.SENSITIVE_TAP:
            if answer.choice != "allow":
                approval.withdraw(session, question)
                return ActResult(say(lang, answer.key("run.tap_denied"), by=answer.by), ok=False)
            session.approval = approval.given(session, question)
            app = app_name(session.approval.package) or "?"
            return ActResult(say(lang, "run.tap_allowed", app=app))
        case QuestionKind.TAKE_OVER if answer.choice == "done":
            return ActResult(say(lang, answer.key("run.taken_over"), by=answer.by))
        case QuestionKind.STUCK if answer.choice == "go_on" or answer.text:
            session.trail, session.repeats = [], 0
            hint = "run.continue_hint" if answer.text.strip() else "run.go_on"
            return ActResult(say(lang, answer.key(hint), text=answer.text, by=answer.by))
        case QuestionKind.BUDGET if answer.choice == "go_on":
            allow_more(session)
            return ActResult(session.observation)
        case QuestionKind.BUDGET:
            tokens = session.max_tokens and session.spent.tokens >= session.max_tokens * session.allowance
            message = say(lang, "run.budget_stopped_tokens" if tokens else "run.budget_stopped")
            return ActResult(message, ok=False, ending=cut_short(session, message))
        case QuestionKind.TAKE_OVER | QuestionKind.STUCK | QuestionKind.PERSON_ON_PHONE if answer.by == NO_REPLY:
            session.trail, session.repeats = [], 0  # the model is told once, and may try again
            return ActResult(say(lang, "run.nobody_answered"), ok=False)
        case QuestionKind.PERSON_ON_PHONE if answer.choice == "go_on":
            return ActResult(say(lang, answer.key("run.person_left"), by=answer.by))
        case QuestionKind.TAKE_OVER | QuestionKind.STUCK | QuestionKind.PERSON_ON_PHONE:
            # The run is to be stopped, or nobody answered in time.
            why = "stuck_stopped" if question.kind is QuestionKind.STUCK else "person_stopped"
            message = say(lang, "run.nobody_stopped" if answer.by == NOBODY else answer.key(f"run.{why}"), by=answer.by)
            return ActResult(message, ok=False, ending=Ending(Status.FAILED, message))
        case _ if answer.by == NOBODY:
            return ActResult(say(lang, "run.nobody_answered"), ok=False)
        case _:
            return ActResult(say(lang, answer.key("run.answered"), text=answer.text or answer.choice, by=answer.by))
