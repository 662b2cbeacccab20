"""The pages about customers: saved contacts, and what they were answered."""

from __future__ import annotations

from agent_core.apps.profile import name_of
from bot.channels.chat.answers import answer_lines
from bot.channels.web.console.visit import Pages, Shown, Visit
from bot.desk.actors import Role
from bot.desk.views import AnswersAsked

contacts, answers = Pages("contacts"), Pages("answers")
PAGE = 20  # entries of a list


@contacts.page("/contacts", "contacts.html")
async def list_contacts(visit: Visit) -> Shown:
    text = visit.query("text")
    found = await visit.desk.contacts.find(visit.actor, text=text)
    serials = [contact.serial for contact in found]
    return {
        "contacts": found,
        "app_name": lambda key: name_of(key, visit.words.lang),
        "phones": dict(zip(serials, await visit.desk.phones.names(serials), strict=True)),
        "text": text,
        "owns": visit.may(Role.OWNER),
    }


# Answers --------------------------------------------------------------------------------------------------------------


@answers.page("/answers", "answers.html")
async def list_answers(visit: Visit) -> Shown:
    asked = AnswersAsked(words=visit.query("words"), unanswered=visit.query("show") == "unanswered")
    page = await visit.desk.answers.find(visit.actor, asked, before=visit.cursor(), limit=PAGE)
    return {
        "answers": [(answer, visit.words.get(f"answer_state.{answer.standing}")) for answer in page.answers],
        "total": page.total,
        "next": page.answers[-1].id if page.older and page.answers else "",
        "asked": asked,
        "operates": visit.may(Role.OPERATOR),
    }


@answers.page("/answers/{answer_id}", "answer.html")
async def show_answer(visit: Visit) -> Shown:
    answer = await visit.desk.answers.get(visit.actor, visit.request.match_info["answer_id"])
    (phone,) = await visit.desk.phones.names([answer.serial])
    return {
        "answer": answer,
        "lines": answer_lines(visit.words, answer, phone),
        "operates": visit.may(Role.OPERATOR),
    }
