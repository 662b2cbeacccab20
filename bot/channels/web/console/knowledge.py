"""The pages about the shop's own knowledge entries."""

from __future__ import annotations

from bot.channels.chat.kb_cards import stats_lines
from bot.channels.web.console.visit import Pages, Shown, Visit
from bot.desk.actors import Role

knowledge = Pages("knowledge")


@knowledge.page("/knowledge", "knowledge.html")
async def show_knowledge(visit: Visit) -> Shown:
    words = visit.query("words")
    operates = visit.may(Role.OPERATOR)
    stats = await visit.desk.kb.stats(visit.actor)
    return {
        "words": words,
        "found": [each.entry for each in await visit.desk.kb.search(visit.actor, words)] if words else [],
        "stats": stats_lines(stats, visit.words),
        "pending": await visit.desk.kb.pending(visit.actor) if operates else [],
        "operates": operates,
        "owns": visit.may(Role.OWNER),
    }


@knowledge.page("/knowledge/{entry_id}", "entry.html")
async def show_entry(visit: Visit) -> Shown:
    entry = await visit.desk.kb.entry(visit.actor, visit.request.match_info["entry_id"])
    return {
        "entry": entry,
        "edits": visit.may(Role.OWNER if entry.live else Role.OPERATOR),
        "operates": visit.may(Role.OPERATOR),
        "owns": visit.may(Role.OWNER),
    }
