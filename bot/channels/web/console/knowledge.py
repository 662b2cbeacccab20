"""The pages about the shop's own knowledge entries."""

from __future__ import annotations

from bot.channels.chat.kb_cards import origin, stats_lines
from bot.channels.web.console.visit import Pages, Shown, Visit
from bot.desk.actors import Role
from bot.desk.knowledge import MOST_FOUND

knowledge = Pages("knowledge")


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
