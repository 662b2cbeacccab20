"""What a person's answer means for a run: the questions that do not belong to the reply flow."""

from __future__ import annotations

from agent_core.actions.types import Tap
from agent_core.cut_short import cut_short
from agent_core.questions import allow_more
from agent_core.result import ActResult, Ending
from agent_core.session import NOBODY, Answer, Question, QuestionKind, Session, Status
from agent_core.texts import say


def take_answer(session: Session, question: Question, answer: Answer) -> ActResult:
    """The result that the run goes on with."""
    lang = session.lang
    match question.kind:
        case QuestionKind.SENSITIVE_TAP:
            if answer.choice != "allow":
                return ActResult(say(lang, "run.tap_denied"), ok=False)
            session.approved = Tap.model_validate(question.data["tap"])
            return ActResult(say(lang, "run.tap_allowed"))
        case QuestionKind.TAKE_OVER if answer.choice == "done":
            return ActResult(say(lang, "run.taken_over"))
        case QuestionKind.STUCK if answer.choice == "go_on" or answer.text:
            session.trail, session.repeats = [], 0
            return ActResult(say(lang, "run.continue_hint", text=answer.text))
        case QuestionKind.BUDGET if answer.choice == "go_on":
            allow_more(session)
            return ActResult(session.observation)
        case QuestionKind.BUDGET:
            tokens = session.max_tokens and session.spent.tokens >= session.max_tokens * session.allowance
            message = say(lang, "run.budget_stopped_tokens" if tokens else "run.budget_stopped")
            return ActResult(message, ok=False, ending=cut_short(session, message))
        case QuestionKind.PERSON_ON_PHONE if answer.choice == "go_on":
            return ActResult(say(lang, "run.person_left"))
        case (
            QuestionKind.TAKE_OVER | QuestionKind.STUCK | QuestionKind.PERSON_ON_PHONE
        ):  # to be stopped, or nobody answered in time
            why = "stuck_stopped" if question.kind is QuestionKind.STUCK else "person_stopped"
            message = say(lang, "run.nobody_stopped" if answer.by == NOBODY else f"run.{why}")
            return ActResult(message, ok=False, ending=Ending(Status.FAILED, message))
        case _ if answer.by == NOBODY:
            return ActResult(say(lang, "run.nobody_answered"), ok=False)
        case _:
            return ActResult(say(lang, "run.answered", text=answer.text or answer.choice))
