"""Questions of runs over HTTP: see what is asked, and answer."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import AliasPath, Field

from agent_core.texts import NameIn
from bot.channels.chat.questions import answer_label
from bot.channels.chat.texts import texts
from bot.channels.web.api.operations import ApiCall, JpegPicture, Line, Operations, Shown, Text, Wish
from bot.desk.actors import BadRequest, Conflict, NotFound, Role
from bot.desk.questions import no_question
from bot.desk.views import QuestionView

operations = Operations("questions")


class ApiQuestionChoice(Shown):
    value: str
    label: str


class ApiQuestion(Shown):
    """Something that a run asks a person. ``then``: what happens at the deadline. ``answer``: a choice, or words."""

    id: str
    run: str = Field(validation_alias="run_id")
    device: str = Field(validation_alias="serial")
    kind: str = Field(validation_alias=AliasPath("question", "kind"))
    text: str = Field(validation_alias=AliasPath("question", "text"))
    choices: list[ApiQuestionChoice] = Field(validation_alias=AliasPath("question", "choices"))
    free_text: bool = Field(validation_alias=AliasPath("question", "free_text"))
    data: dict[str, Any] = Field(validation_alias=AliasPath("question", "data"))
    open: bool
    answer: str
    by: str
    then: str
    deadline: datetime | None
    asked_at: datetime | None
    answered_at: datetime | None


class ApiQuestions(Shown):
    items: list[ApiQuestion]


class ApiNewAnswer(Wish):
    """One of the choices by its value, or words if the question takes them."""

    choice: Line = ""
    text: Text = ""


class ApiOutcome(Shown):
    """An answer that was taken."""

    answer: str
    by: str


@operations.get("/questions")
async def list_questions(call: ApiCall) -> ApiQuestions:
    """List the open questions, the oldest first."""
    return ApiQuestions(items=[ApiQuestion.of(each) for each in await call.desk.questions.all_open(call.actor)])


@operations.get("/questions/{question_id}")
async def get_question(call: ApiCall, question_id: str) -> ApiQuestion:
    """Show a question, open or answered."""
    return ApiQuestion.of(await call.desk.questions.look(call.actor, question_id))


@operations.get("/questions/{question_id}/picture")
async def get_question_picture(call: ApiCall, question_id: str) -> JpegPicture:
    """Show the screen at the time of a question."""
    await call.desk.questions.look(call.actor, question_id)
    jpeg = await call.desk.questions.picture(question_id)
    if jpeg is None:
        raise NotFound(f"The question {question_id} has no picture.", key="no_question_picture", name=question_id)
    return JpegPicture(jpeg)


@operations.post("/questions/{question_id}/answer", Role.OPERATOR)
async def answer_question(call: ApiCall, question_id: str, body: ApiNewAnswer) -> ApiOutcome:
    """Answer a question. The first answer wins; the same one again is accepted."""
    if bool(body.choice) == bool(body.text.strip()):
        said = "An answer is either a choice or words."
        raise BadRequest(said, advice="Give `choice` or `text`.", key="choice_or_words")
    outcome = await call.desk.questions.answer(call.actor, question_id, choice=body.choice, text=body.text)
    if outcome.state == "unknown":
        raise no_question(question_id)
    if outcome.state == "late":
        if not outcome.by:
            raise Conflict("The question is closed.", key="question_is_closed")
        answer = _in_words(await call.desk.questions.get(question_id), outcome.answer)
        said = f"It was answered by {outcome.by} before: {answer}"
        raise Conflict(said, key="answered_before", by=outcome.by, answer=answer)
    return ApiOutcome(answer=outcome.answer, by=outcome.by)


def _in_words(view: QuestionView | None, answer: str) -> NameIn:
    """Return an answer as people read it, in either language."""
    en, zh = (answer_label(view, answer, texts(lang)) if view is not None else answer for lang in ("en", "zh"))
    return NameIn(en, zh)
