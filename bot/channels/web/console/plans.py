"""The pages about what begins by itself, schedules and watches, and about saved contacts."""

from __future__ import annotations

from bot.channels.web.console.visit import Pages, Shown, Visit
from bot.desk.actors import Role

schedules, contacts = Pages("schedules"), Pages("contacts")


@schedules.page("/schedules", "schedules.html")
async def list_schedules(visit: Visit) -> Shown:
    return {
        "schedules": await visit.desk.schedules.all(visit.actor),
        "phones": (await visit.desk.status(visit.actor)).phones,
        "operates": visit.may(Role.OPERATOR),
        "owns": visit.may(Role.OWNER),
    }


@contacts.page("/contacts", "contacts.html")
async def list_contacts(visit: Visit) -> Shown:
    text = visit.query("text")
    return {
        "contacts": await visit.desk.contacts.find(visit.actor, text=text),
        "text": text,
        "owns": visit.may(Role.OWNER),
    }
