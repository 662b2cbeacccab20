"""The pages about what begins by itself, schedules and watches, and about saved contacts."""

from __future__ import annotations

from bot.channels.web.console.texts import ConsoleTexts
from bot.channels.web.console.visit import Pages, Shown, Visit
from bot.desk.actors import Role
from bot.desk.week import WeekEntry

schedules, contacts = Pages("schedules"), Pages("contacts")
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
HOURS = 24
HOURS_OF_WORDS = 5  # as wide as a few words
UNITS = (("hourly", 3600), ("by_minutes", 60), ("by_seconds", 1))


@schedules.page("/schedules", "schedules.html")
async def list_schedules(visit: Visit) -> Shown:
    return {
        "schedules": await visit.desk.schedules.all(visit.actor),
        "phones": (await visit.desk.status(visit.actor)).phones,
        "operates": visit.may(Role.OPERATOR),
        "owns": visit.may(Role.OWNER),
    }


@schedules.page("/schedules/week", "week.html")
async def show_week(visit: Visit) -> Shown:
    week = await visit.desk.schedules.week(visit.actor)
    return {
        "week": week,
        "is_empty": not any(day.entries for day in week.days),
        "timezone": visit.desk.context.timezone,
        "weekdays": WEEKDAYS,
        "place": _place,
        "rhythm": lambda entry: _rhythm(entry, visit.words),
    }


def _place(entry: WeekEntry) -> str:
    """Return the classes that place an entry at its hours. One that is short gets as many as its words need."""
    first, end = entry.first.hour, entry.last.hour + 1
    kind = "band " if entry.count > 1 else ""
    if end - first < HOURS_OF_WORDS:
        late = first + HOURS_OF_WORDS > HOURS
        first, end = (end - HOURS_OF_WORDS, end) if late else (first, first + HOURS_OF_WORDS)
        kind += "late " if late else ""
    return f"{kind}from-{first} to-{end}"


def _rhythm(entry: WeekEntry, words: ConsoleTexts) -> str:
    """Return how often a band starts a run."""
    if entry.every is None:
        return words.own("week.times", count=entry.count)
    seconds = int(entry.every.total_seconds())
    unit, length = next((unit, length) for unit, length in UNITS if seconds % length == 0)
    return words.own(f"week.{unit}", count=seconds // length)


@contacts.page("/contacts", "contacts.html")
async def list_contacts(visit: Visit) -> Shown:
    text = visit.query("text")
    return {
        "contacts": await visit.desk.contacts.find(visit.actor, text=text),
        "text": text,
        "owns": visit.may(Role.OWNER),
    }
