"""Schedules in the chat: add, edit, list, pause, resume, run and remove them, report missed ticks, and their times
in words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from agent_core.loop.tasks import NO_RULES
from agent_core.texts import Listed
from bot.channels.chat.cards import Button, Card, Line, in_rows
from bot.channels.chat.run_cards import state_of
from bot.channels.chat.runs import card_of
from bot.channels.chat.schedule_reading import ScheduleRequest, read_schedule, verb_of, what_is_missing
from bot.channels.chat.sweeps import means_line
from bot.channels.chat.texts import Texts
from bot.channels.chat.turn import Said, Subject, Turn
from bot.desk.actors import Actor, BadRequest, Role
from bot.desk.schedules_views import LastTick, ScheduleNews, ScheduleView

SHOWN = 20
WATCH = "watch"  # the kind of a schedule that has no times
NEEDS_A_NUMBER = {"show", "edit", "pause", "resume", "run", "remove", "undo"}


# Commands -------------------------------------------------------------------------------------------------------------


async def schedule(turn: Turn) -> Said:
    """Handle ``/schedule``."""
    words = turn.texts
    request = read_schedule(turn.rest)
    if request is None:
        verb = verb_of(turn.rest)
        usage = "schedule_edit" if verb == "edit" else "schedule_id" if verb in NEEDS_A_NUMBER else "schedule"
        return turn.tell(*_not_understood(turn), words.get(f"usage.{usage}"))
    match request.verb:
        case "list":
            return turn.say(_list_card(turn, await turn.desk.schedules.all(turn.actor)))
        case "add":
            return await _add(turn, request)
        case "edit":
            return await _edit(turn, request)
        case "run":
            return await _run(turn, request.schedule_id)
        case "remove":
            gone = await turn.desk.schedules.remove(turn.actor, request.schedule_id)
            return turn.say(_gone_card(gone, words))
        case _:
            title, view = await _changed(turn, request.verb, request.schedule_id)
            return turn.say(_card(view, words, turn.actor, title))


def _not_understood(turn: Turn) -> list[str]:
    """Return the missing parts of a new schedule; nothing if the text is not about one."""
    when, said = what_is_missing(turn.rest)
    if when:
        return [turn.texts.get("usage.schedule_no_task", understood=when)]
    return [turn.texts.get("usage.schedule_no_time", said=said)] if said else []


async def _add(turn: Turn, request: ScheduleRequest) -> Said:
    return turn.say(await added(turn, request, key=turn.incoming.key))


async def added(turn: Turn, request: ScheduleRequest, *, key: str) -> Card:
    """Add a schedule, and return its card. The same ``key`` adds no second one."""
    wish = request.wish
    if wish.serial is None and turn.incoming.phone:
        wish = replace(wish, serial=turn.incoming.phone)
    view = await turn.desk.schedules.add(
        turn.actor,
        request.expression,
        request.task,
        chat=turn.chat,
        rules=request.rules or NO_RULES,
        wish=wish,
        key=key,
    )
    title = "schedule.watching" if view.kind == WATCH else "schedule.added"
    return _card(view, turn.texts, turn.actor, turn.texts.get(title, number=view.id))


async def watch(turn: Turn) -> Said:
    """Handle ``/watch WHOM``, and ``/watch``, which lists the watches."""
    words = turn.texts
    if not turn.rest.strip():
        found = [view for view in await turn.desk.schedules.all(turn.actor) if view.kind == WATCH]
        return turn.say(_list_card(turn, found, "watch"))
    request = read_schedule(f"add {words.get('schedule.watch_word')} {turn.rest.strip()}")
    return await _add(turn, request) if request is not None else turn.tell(words.get("usage.watch"))


async def _edit(turn: Turn, request: ScheduleRequest) -> Said:
    view = await turn.desk.schedules.edit(
        turn.actor,
        request.schedule_id,
        expression=request.expression or None,
        task=request.task or None,
        chat=turn.chat if request.here else None,
        rules=request.rules,
        wish=request.wish,
    )
    card = _card(view, turn.texts, turn.actor, turn.texts.get("schedule.edited", number=view.id))
    return turn.say(replace(card, buttons=(*card.buttons, _undo_row(view, turn.texts))))


async def _run(turn: Turn, schedule_id: str, *, toast: str = "") -> Said:
    run = await turn.desk.schedules.run(turn.actor, schedule_id, chat=turn.chat, key=turn.incoming.key)
    return Said((card_of(turn, run),), toast=toast)


async def _changed(turn: Turn, verb: str, schedule_id: str) -> tuple[str, ScheduleView]:
    """Change a schedule, and return the change and the schedule after it."""
    desk, words = turn.desk, turn.texts
    change, said = {
        "show": (desk.schedules.get, "schedule.one"),
        "pause": (desk.schedules.pause, "schedule.paused"),
        "resume": (desk.schedules.resume, "schedule.resumed"),
        "undo": (desk.schedules.undo, "schedule.back"),
    }[verb]
    view = await change(turn.actor, schedule_id)
    return words.get(said, number=view.id), view


# Buttons --------------------------------------------------------------------------------------------------------------


async def tapped(turn: Turn, value: str) -> Said:
    """Handle a button: ``list`` or ``VERB:N``."""
    words = turn.texts
    verb, _, number = value.partition(":")
    match verb:
        case "list":
            return turn.change(_list_card(turn, await turn.desk.schedules.all(turn.actor)))
        case "run":
            return await _run(turn, number, toast=words.get("schedule.running", number=number))
        case "remove":
            gone = await turn.desk.schedules.remove(turn.actor, number)
            return turn.change(_gone_card(gone, words), toast=words.get("schedule.removed", number=gone.id))
        case "show" | "pause" | "resume" | "undo":
            title, view = await _changed(turn, verb, number)
            card = _card(view, words, turn.actor, words.get("schedule.one", number=view.id))
            return turn.change(card, toast="" if verb == "show" else title)
    raise BadRequest("This button is of another release.", advice="Send /schedule again.", key="old_schedule_button")


# Cards ----------------------------------------------------------------------------------------------------------------


def _list_card(turn: Turn, found: Sequence[ScheduleView], of: str = "schedule") -> Card:
    """Return the list of schedules. ``of``: ``watch`` if it has only watches."""
    words = turn.texts
    if not found:
        return Card(words.get(f"schedule.empty{'_watch' if of == 'watch' else ''}"), (Line(words.get(f"usage.{of}")),))
    lines: list[Line] = []
    for view in found[:SHOWN]:
        first, *others = schedule_lines(view, words)
        lines += [Line(first.text, f"#{view.id}", first.kind), *others]
    if len(found) > SHOWN:
        lines.append(Line(words.get("schedule.more", count=len(found) - SHOWN)))
    buttons = [Button(f"schedule:show:{view.id}", f"#{view.id}") for view in found]
    title = words.get("schedule.watches" if of == "watch" else "schedule.title")
    return Card(title, tuple(lines), None, in_rows(buttons)[:SHOWN])


def _card(view: ScheduleView, words: Texts, actor: Actor, title: str) -> Card:
    return Card(title, tuple(schedule_lines(view, words)), None, _buttons(view, words, actor))


def _buttons(view: ScheduleView, words: Texts, actor: Actor) -> tuple[tuple[Button, ...], ...]:
    first: list[Button] = []
    last: list[Button] = []
    if actor.role.covers(Role.OWNER):
        verb = "resume" if view.paused else "pause"
        first.append(Button(f"schedule:{verb}:{view.id}", words.get(f"schedule.{verb}")))
        last.append(Button(f"schedule:remove:{view.id}", words.get("schedule.remove"), "danger"))
    if actor.role.covers(Role.OPERATOR):
        first.append(Button(f"schedule:run:{view.id}", words.get("schedule.run_now"), "primary"))
    last.append(Button("schedule:list", words.get("schedule.all")))
    return tuple(tuple(row) for row in (first, last) if row)


def _gone_card(view: ScheduleView, words: Texts) -> Card:
    rows = (_undo_row(view, words),)
    return Card(words.get("schedule.removed", number=view.id), tuple(schedule_lines(view, words)), None, rows)


def _undo_row(view: ScheduleView, words: Texts) -> tuple[Button, ...]:
    return (Button(f"schedule:undo:{view.id}", words.get("schedule.undo")),)


def schedule_lines(view: ScheduleView, words: Texts) -> list[Line]:
    """Return a schedule's task, times, options that differ from the default, and results."""
    state = f" · {words.get('schedule.is_paused')}" if view.paused else ""
    if view.kind == WATCH:
        when = Line(words.get("schedule.watch") + state, words.get("schedule.expression"))
    else:
        when = Line(view.expression + state, words.get("schedule.expression"), "code")
    means, apps = in_words(view.means, words), Listed(view.rules.apps).joined(words.lang)
    same = "".join(means.split()) == "".join(view.expression.split())
    lines = [
        when,
        Line("" if same else means, words.get("schedule.means")),
        Line(view.task, words.get("card.task")),
        means_line(view.task, words) if view.kind != WATCH else Line(""),
        Line(" · ".join(filter(None, (view.rules.policy, apps))), words.get("schedule.rules")),
        *(_window_line(window, last, words) for window, last in view.windows),
    ]
    if view.next_times and not view.paused:
        lines.append(Line(Listed(view.next_said).joined(words.lang), words.get("schedule.next")))
    lines += [
        Line(view.timezone if view.elsewhere else "", words.get("schedule.timezone")),
        Line(view.phone, words.get("schedule.phone")),
        Line(view.quiet, words.get("schedule.quiet")),
        Line(_ways(view, words), words.get("schedule.ways")),
        Line(last_words(view.last, words) if view.last else "", words.get("schedule.last")),
        Line(_counts(view, words), words.get("schedule.counts")),
    ]
    return [line for line in lines if line.text]


def _window_line(window: str, last: str, words: Texts) -> Line:
    start, _, end = window.partition("-")
    return Line(words.get("schedule.window_means", start=start, end=end, last=last), words.get("schedule.window"))


def _ways(view: ScheduleView, words: Texts) -> str:
    """Return the options that differ from the default."""
    said = [words.get("schedule.missed_catch_up")] if view.missed == "catch_up" else []
    said += [words.get("schedule.overlap_queue")] if view.overlap == "queue" else []
    said += [words.get("schedule.jitter", seconds=view.jitter_seconds)] if view.jitter_seconds else []
    return " · ".join(said)


def last_words(last: LastTick, words: Texts) -> str:
    """Return what became of the newest tick, and of its run."""
    said = f"{last.at:%m-%d %H:%M} {words.get(f'schedule.what_{last.what}')}"
    if last.status is None or last.what not in {"started", "by_hand"}:
        return said
    said += f" → {words.get(state_of(last.status, left_to=last.left_to))}"
    said += f" {last.ended_at:%H:%M}" if last.ended_at else ""
    return f"{said} · {words.get('schedule.last_not_found', names=Listed(last.not_found))}" if last.not_found else said


def _counts(view: ScheduleView, words: Texts) -> str:
    counts = [(view.started, "started"), (view.skipped_busy, "busy"), (view.skipped_quiet, "quiet")]
    counts.append((view.skipped_missed, "missed"))
    return " · ".join(words.get(f"schedule.count_{name}", count=count) for count, name in counts if count)


def news_card(news: ScheduleNews, words: Texts) -> Card:
    """Return the card of the ticks that were missed while no server ran."""
    view = news.schedule
    period = f"{news.since:%m-%d %H:%M}"
    if news.until != news.since:
        period += f" – {news.until:%m-%d %H:%M}"
    count = news.count + (1 if news.caught_up else 0)
    lines = [
        Line(view.task, words.get("card.task")),
        Line(words.get("schedule.missed_times", count=count, period=period)),
        Line(words.get("schedule.missed_made_up" if news.caught_up else "schedule.missed_skipped")),
        Line(words.get("schedule.missed_how", number=view.id) if not news.caught_up else ""),
    ]
    title = words.get("schedule.missed_title", number=view.id)
    return Card(title, tuple(line for line in lines if line.text))


# Stored times in words ------------------------------------------------------------------------------------------------

_EVERY = re.compile(r"every (\d+)([smhd])(?: (\d\d:\d\d)-(\d\d:\d\d)(?: \* \* ([0-7](?:[-,][0-7])*))?)?")
_AT = re.compile(r"at (?:(\d{4}-\d\d-\d\d) )?(\d\d:\d\d)")
_CRON = re.compile(r"(\d{1,2}) (\d{1,2}(?:,\d{1,2})*|\*) (\d{1,2}|L|\*) \* ([0-7](?:[-,][0-7])*|\*)")
_DAYS = ("", "mon", "tue", "wed", "thu", "fri", "sat", "sun")
_SECONDS = {"h": 3600, "m": 60, "s": 1}
_RANGE = 3  # days in a row that are written as from the first to the last


def in_words(expression: str, words: Texts) -> str:
    """Return a stored expression in words, or as it is if it is written in a way that has none, as cron often is."""
    parts = [_part(part.strip(), words) for part in expression.split("|")]
    return expression if "" in parts else words.get("schedule.and_also").join(parts)


def interval(seconds: int, words: Texts) -> str:
    """Return an interval in hours, minutes or seconds, the largest unit of which it is a whole number."""
    unit, length = next((unit, length) for unit, length in _SECONDS.items() if seconds % length == 0)
    return words.get(f"schedule.every_{unit}", count=seconds // length)


def _part(part: str, words: Texts) -> str:
    """Return one of several times in words; "" if there are none for it."""
    if found := _EVERY.fullmatch(part):
        count, unit, start, end, days = found.groups()
        number = int(count)
        said = words.get("schedule.every_d", count=number) if unit == "d" else interval(number * _SECONDS[unit], words)
        if start and (start, end) != ("00:00", "24:00"):
            said = words.get("schedule.every_between", every=said, start=start, end=end)
        return _on_days(days or "*", said, words)
    if found := _AT.fullmatch(part):
        return words.get("schedule.once", day=found[1], time=found[2]) if found[1] else _daily(found[2], words)
    found = _CRON.fullmatch(part)
    if found is None or (found[3] != "*" and found[4] != "*"):
        return ""
    minute, hours, day, weekdays = found.groups()
    if hours == "*":
        return words.get("schedule.hourly", minute=minute.zfill(2)) if (day, weekdays) == ("*", "*") else ""
    times = Listed(f"{hour.zfill(2)}:{minute.zfill(2)}" for hour in hours.split(",")).joined(words.lang)
    if day != "*":
        return words.get("schedule.monthly_last" if day == "L" else "schedule.monthly", day=day, times=times)
    return _daily(times, words) if weekdays == "*" else _on_days(weekdays, times, words)


def _daily(times: str, words: Texts) -> str:
    return words.get("schedule.daily", times=times)


def _on_days(written: str, times: str, words: Texts) -> str:
    """Return times with the days of the week on which they are, written as in cron: ``1-5,7``; ``*`` for every day.

    "" if a range runs backwards.
    """
    if written == "*":
        return times
    chosen: set[int] = set()
    for each in written.split(","):
        first, _, last = each.partition("-")
        days = range(int(first), int(last or first) + 1)
        if not days:
            return ""
        chosen |= {day or 7 for day in days}
    said: list[str] = []
    for _, row in groupby(enumerate(sorted(chosen)), lambda numbered: numbered[1] - numbered[0]):
        names = [words.get(f"digest.day_{_DAYS[day]}") for _, day in row]
        in_a_row = words.get("schedule.from_to", first=names[0], last=names[-1])
        said += [in_a_row] if len(names) >= _RANGE else names
    return words.get("schedule.on_days", days=Listed(said).joined(words.lang), times=times)


SUBJECT = Subject(commands={"schedule": schedule, "watch": watch}, buttons={"schedule": tapped})
