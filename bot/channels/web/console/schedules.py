"""The pages about what begins by itself: schedules, sweeps and watches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from agent_core.apps.profile import AppProfile, profile, profiles
from agent_core.texts import Listed
from bot.channels.chat.schedules import in_words, interval, last_words
from bot.channels.web.console.texts import ConsoleTexts
from bot.channels.web.console.visit import Pages, Shown, Visit
from bot.desk.actors import Role
from bot.desk.schedules_views import MOST_MINUTES, WEEK, RegularTimes, ScheduleView
from bot.desk.week import WeekEntry
from scheduler.sweeps.order import SweepOrder

schedules = Pages("schedules")
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
HOURS = 24
HOURS_OF_WORDS = 5  # as wide as a few words
EVERY = (5, 10, 15, 30, 60, 120, 240)  # minutes to choose from
USUAL = RegularTimes(15)


@dataclass(frozen=True, slots=True)
class ShownSchedule:
    """A schedule. ``title``: what it does. ``times``: when. ``last``: what became of its newest tick, "" for none."""

    view: ScheduleView
    title: str
    times: str
    last: str


@dataclass(frozen=True, slots=True)
class SweepChoices:
    """The contacts of an app to choose from, by name and by tag; ``tags``: each with how many have it."""

    app: AppProfile
    names: Sequence[str]
    tags: Sequence[tuple[str, int]]


@schedules.page("/schedules", "schedules.html")
async def list_schedules(visit: Visit) -> Shown:
    return {
        "schedules": [_shown(view, view.task, visit.words) for view in await visit.desk.schedules.all(visit.actor)],
        "phones": (await visit.desk.status(visit.actor)).phones,
        "operates": visit.may(Role.OPERATOR),
        "owns": visit.may(Role.OWNER),
    }


def _shown(view: ScheduleView, title: str, words: ConsoleTexts) -> ShownSchedule:
    times = words.own("schedules.watch") if view.kind == "watch" else _times(view, words)
    return ShownSchedule(view, title, times, last_words(view.last, words) if view.last is not None else "")


def _times(view: ScheduleView, words: ConsoleTexts) -> str:
    """Return the times of a schedule in words if there are words for them, else as they were written."""
    said = in_words(view.means, words)
    return view.expression if said == view.means else said


@schedules.page("/schedules/sweeps", "sweeps.html")
async def list_sweeps(visit: Visit) -> Shown:
    words, owns = visit.words, visit.may(Role.OWNER)
    views = await visit.desk.sweeps.scheduled(visit.actor)
    return {
        "sweeps": [_shown(view, _whom(view, words), words) for view in views],
        "operates": visit.may(Role.OPERATOR),
        "owns": owns,
        **(await _form(visit) if owns else {}),
    }


@schedules.page("/schedules/{schedule_id}", "schedule.html")
async def show_schedule(visit: Visit) -> Shown:
    view = await visit.desk.schedules.get(visit.actor, visit.request.match_info["schedule_id"])
    owns = visit.may(Role.OWNER)
    return {
        "shown": _shown(view, _whom(view, visit.words), visit.words),
        "owns": owns,
        **(await _form(visit, view) if owns else {}),
    }


async def _form(visit: Visit, view: ScheduleView | None = None) -> Shown:
    """Return what the form of a new sweep, or of a schedule to edit, is made from.

    regular: the parts of its times; None if they have none.
    """
    words = visit.words
    order = view.sweep if view is not None and view.sweep is not None else SweepOrder()
    regular = RegularTimes.of(view.means) if view is not None else USUAL
    if regular is not None and regular.minutes > MOST_MINUTES:
        regular = None
    every = {*EVERY, *([regular.minutes] if regular is not None else [])}
    return {
        "edited": _shown(view, "", words) if view is not None else None,
        "order": order,
        "choices": [await _choices(visit, app, order) for app in profiles()],
        "regular": regular,
        "usual": USUAL,
        "every": [(minutes, interval(minutes * 60, words)) for minutes in sorted(every)],
        "days": [(number, words.get(f"digest.day_{WEEKDAYS[number - 1]}")) for number in WEEK],
        "written": visit.desk.schedules.written(view) if view is not None else "",
        "timezone": view.timezone if view is not None and view.elsewhere else "",
        "phones": (await visit.desk.status(visit.actor)).phones,
    }


def _whom(view: ScheduleView, words: ConsoleTexts) -> str:
    """Return whom a sweep answers, and in which app."""
    order = view.sweep
    if order is None:
        return view.task
    chosen = Listed([*(f"#{tag}" for tag in order.tags), *order.names]).joined(words.lang)
    return f"{profile(order.app).name_in(words.lang)} · {chosen or words.own('sweeps.unread')}"


async def _choices(visit: Visit, app: AppProfile, order: SweepOrder) -> SweepChoices:
    """Return whom one may choose: the saved contacts, and who is chosen in ``order`` already."""
    saved = await visit.desk.contacts.find(visit.actor, app=app.key)
    names, tags = [contact.name for contact in saved], Counter(tag for contact in saved for tag in contact.tags)
    if app.key == order.app:
        names += order.names
        tags.update(dict.fromkeys(order.tags, 0))
    return SweepChoices(app, list(dict.fromkeys(names)), sorted(tags.items()))


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
    return interval(int(entry.every.total_seconds()), words)
