"""The effect of a person's answer on a run, for the questions that do not belong to the reply flow."""

from __future__ import annotations

from agent_core.loop.ending import cut_short
from agent_core.loop.questions import allow_more
from agent_core.loop.result import ActResult, Ending
from agent_core.model.history import app_name
from agent_core.policies import approval
from agent_core.session import NO_REPLY, NOBODY, Answer, Question, QuestionKind, Session, Status
from agent_core.texts import say


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
        case (
            QuestionKind.TAKE_OVER | QuestionKind.STUCK | QuestionKind.PERSON_ON_PHONE
        ):  # the run is to be stopped, or nobody answered in time
            why = "stuck_stopped" if question.kind is QuestionKind.STUCK else "person_stopped"
            message = say(lang, "run.nobody_stopped" if answer.by == NOBODY else answer.key(f"run.{why}"), by=answer.by)
            return ActResult(message, ok=False, ending=Ending(Status.FAILED, message))
        case _ if answer.by == NOBODY:
            return ActResult(say(lang, "run.nobody_answered"), ok=False)
        case _:
            return ActResult(say(lang, answer.key("run.answered"), text=answer.text or answer.choice, by=answer.by))


def keep(session: Session, question: Question, result: ActResult) -> None:
    """Store the result of an answered question in the step that asked it, so that the run's history contains it."""
    step = session.steps[-1] if session.steps else None
    if step is not None and question.kind is not QuestionKind.BUDGET and result.ending is None:
        step.followed = " ".join(filter(None, (step.followed, result.message)))
