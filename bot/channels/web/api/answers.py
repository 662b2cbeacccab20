"""The answer log over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from bot.channels.web.api.operations import ApiCall, JpegPicture, Line, Operations, Paged, Shown, Wish
from bot.channels.web.api.runs import ApiAnswered
from bot.desk.actors import NotFound, Role
from bot.desk.views import AnswersAsked

operations = Operations("answers")


class ApiAnswersQuery(Paged):
    """``words``: a contact by the whole name, else words of question or answer. ``since``, ``until``: as for runs."""

    words: Line = ""
    contact: Line = ""
    text: Line = ""
    since: Line = ""
    until: Line = ""
    state: Line = ""
    rating: Annotated[int, Field(ge=-1, le=1)] | None = None
    provenance: Line = ""
    unanswered: bool = False
    app: Line = ""
    device: Line = ""
    run: Line = ""


class ApiAnswerPage(Shown):
    """A page of answers, the newest first. ``next``: the cursor of the next page, "" at the end."""

    items: list[ApiAnswered]
    total: int
    next: str


class ApiNewRating(Wish):
    """1, -1, or 0 for none."""

    rating: Annotated[int, Field(ge=-1, le=1)]


class ApiUnanswered(Shown):
    """A question that the knowledge base had no answer to, with those that say the same.

    entry: the knowledge entry that has it by now.
    """

    answer_id: str
    example: str
    count: int
    newest: datetime
    contacts: list[str]
    answer: str
    entry: str
    entry_live: bool


class ApiUnansweredList(Shown):
    items: list[ApiUnanswered]


class ApiSince(Wish):
    since: Line = ""


@operations.get("/answers")
async def list_answers(call: ApiCall, query: ApiAnswersQuery) -> ApiAnswerPage:
    """List customers' questions and what became of them, the newest first."""
    asked = AnswersAsked(
        words=query.words,
        contact=query.contact,
        text=query.text,
        since=query.since,
        until=query.until,
        state=query.state,
        rating=query.rating,
        provenance=query.provenance,
        unanswered=query.unanswered,
        app=query.app,
        serial=query.device,
        run_id=query.run,
    )
    page = await call.desk.answers.find(call.actor, asked, before=query.cursor, limit=query.limit)
    items = [ApiAnswered.of(answer) for answer in page.answers]
    return ApiAnswerPage(items=items, total=page.total, next=items[-1].id if page.older and items else "")


@operations.get("/answers/{answer_id}")
async def get_answer(call: ApiCall, answer_id: str) -> ApiAnswered:
    """Show an answer."""
    return ApiAnswered.of(await call.desk.answers.get(call.actor, answer_id))


@operations.get("/answers/{answer_id}/before")
async def get_answer_before(call: ApiCall, answer_id: str) -> JpegPicture:
    """Show the screen before an answer."""
    return _there((await call.desk.answers.pictures(call.actor, answer_id))[0], answer_id)


@operations.get("/answers/{answer_id}/after")
async def get_answer_after(call: ApiCall, answer_id: str) -> JpegPicture:
    """Show the screen after an answer."""
    return _there((await call.desk.answers.pictures(call.actor, answer_id))[1], answer_id)


@operations.put("/answers/{answer_id}/rating", Role.OPERATOR)
async def rate_answer(call: ApiCall, answer_id: str, body: ApiNewRating) -> ApiAnswered:
    """Rate an answer."""
    return ApiAnswered.of(await call.desk.answers.rate(call.actor, answer_id, body.rating, toggle=False))


@operations.get("/unanswered")
async def list_unanswered(call: ApiCall, query: ApiSince) -> ApiUnansweredList:
    """List the questions that the knowledge base had no answer to, the most frequent first.

    Without `since`, of the last 30 days.
    """
    found = await call.desk.answers.unanswered(call.actor, query.since)
    return ApiUnansweredList(items=[ApiUnanswered.of(each) for each in found])


def _there(jpeg: bytes | None, answer_id: str) -> JpegPicture:
    if jpeg is None:
        raise NotFound(f"This picture of the answer {answer_id} is not kept.", key="no_answer_picture", name=answer_id)
    return JpegPicture(jpeg)
