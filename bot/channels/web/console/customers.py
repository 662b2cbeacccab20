"""The pages about customers: saved contacts, what they were answered, and the knowledge that answers them."""

from __future__ import annotations

from agent_core.apps.profile import name_of
from bot.channels.chat.answers import answer_lines
from bot.channels.chat.kb_cards import origin, stats_lines
from bot.channels.web.console.visit import Pages, Shown, Visit
from bot.desk.actors import Role
from bot.desk.knowledge import MOST_FOUND
from bot.desk.views import AnswersAsked

contacts, answers, knowledge = Pages("contacts"), Pages("answers"), Pages("knowledge")
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


# Knowledge ------------------------------------------------------------------------------------------------------------


@knowledge.page("/knowledge", "knowledge.html")
async def show_knowledge(visit: Visit) -> Shown:
    words, skip = visit.query("words"), int(visit.cursor() or 0)
    found = [each.entry for each in await visit.desk.kb.search(visit.actor, words, skip=skip)]
    operates = visit.may(Role.OPERATOR)
    pending = await visit.desk.kb.pending(visit.actor) if operates else []
    meanings = await visit.desk.kb.meanings(pending)
    stats = await visit.desk.kb.stats(visit.actor)
    return {
        "words": words,
        "found": found,
        "next": str(skip + MOST_FOUND) if not words and len(found) == MOST_FOUND else "",
        "stats": stats_lines(stats, visit.words),
        "pending": [(entry, meanings.get(entry.alias_of, ""), origin(entry, visit.words)) for entry in pending],
        "operates": operates,
        "owns": visit.may(Role.OWNER),
    }


@knowledge.page("/knowledge/{entry_id}", "entry.html")
async def show_entry(visit: Visit) -> Shown:
    entry = await visit.desk.kb.entry(visit.actor, visit.request.match_info["entry_id"])
    return {
        "entry": entry,
        "origin": origin(entry, visit.words) if entry.origin else "",
        "edits": visit.may(Role.OWNER if entry.live else Role.OPERATOR),
        "operates": visit.may(Role.OPERATOR),
        "owns": visit.may(Role.OWNER),
    }
