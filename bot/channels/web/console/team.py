"""The pages for owners: people and keys, settings, the audit log."""

from __future__ import annotations

from agent_core.texts import Listed
from bot.app.settings.names import SettingPath
from bot.app.settings.origin import ShownSetting, as_text
from bot.app.settings.texts import group_words, setting_words
from bot.channels.web.console.audit_words import in_words
from bot.channels.web.console.visit import Pages, Shown, Visit
from bot.desk.actors import Role

people, settings, audit = Pages("people"), Pages("settings"), Pages("audit")
PAGE = 50  # entries of the audit log


@people.page("/people", "people.html")
async def list_people(visit: Visit) -> Shown:
    desk, words = visit.desk, visit.words
    keys = await desk.keys.all(visit.actor)
    return {
        "people": await desk.team.people(visit.actor),
        "invitations": await desk.team.invites(visit.actor),
        "keys": [(key, await desk.phones.names(key.serials or ())) for key in keys],
        "roles": [(role.value, words.get(f"role.{role.value}")) for role in Role],
        "listed": lambda items: Listed(items).joined(words.lang),
    }


@settings.page("/settings", "settings.html")
async def list_settings(visit: Visit) -> Shown:
    words = visit.words
    groups: dict[SettingPath, list[tuple[str, ShownSetting, str, list[str]]]] = {}
    for one in await visit.desk.team.settings(visit.actor):
        places = [words.get(f"config.from_{place.layer}", where=place.where) for place in one.places]
        row = (setting_words(one.name, words.lang), one, as_text(one.value), places)
        groups.setdefault(one.name.path[:-1], []).append(row)
    return {
        "groups": [(group_words(path, words.lang), ".".join(path), rows) for path, rows in groups.items()],
    }


@audit.page("/audit", "audit.html")
async def list_audit(visit: Visit) -> Shown:
    team = visit.desk.team
    rows = await team.audit(visit.actor, before=int(visit.cursor() or 0), limit=PAGE)
    names = await team.audit_names(rows)
    return {
        "rows": [in_words(row, names, visit.words) for row in rows],
        "next": rows[-1].id if len(rows) == PAGE else "",
    }
