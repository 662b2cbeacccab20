"""``phonedesk schedule``: the schedules in the terminal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from agent_core.apps.profile import name_of
from agent_core.errors import InputRejected
from agent_core.loop.tasks import TaskRules
from agent_core.texts import sentences
from bot.channels.chat.cards import Card
from bot.channels.chat.schedules import schedule_lines
from bot.channels.cli.commands.at_desk import clock_runs, phones_are_worked, with_desk
from bot.channels.cli.commands.common import fail, settings_from, words_of_contacts
from bot.channels.cli.commands.output import Json, as_plain_data
from bot.channels.cli.terminal.console import Console, print_json
from bot.channels.cli.terminal.language import texts
from bot.channels.cli.terminal.render import before, panel
from bot.desk.actors import Actor
from bot.desk.schedules_views import ScheduleView, ScheduleWish
from bot.desk.views import RunView
from scheduler.sweeps.order import chat_app

if TYPE_CHECKING:
    from bot.desk.desk import Desk

Policy = Annotated[Literal["reply", "careful", "open"] | None, typer.Option()]
Apps = Annotated[list[str] | None, typer.Option()]
Device = Annotated[str | None, typer.Option()]
Zone = Annotated[str | None, typer.Option("--tz")]
Missed = Annotated[Literal["skip", "catch_up"] | None, typer.Option()]
Overlap = Annotated[Literal["skip", "queue"] | None, typer.Option()]
Quiet = Annotated[str | None, typer.Option()]
Jitter = Annotated[int | None, typer.Option(min=0)]

schedule = typer.Typer(no_args_is_help=True)


@schedule.command()
def add(
    expression: str,
    task: str,
    policy: Policy = None,
    app: Apps = None,
    device: Device = None,
    tz: Zone = None,
    missed: Missed = None,
    overlap: Overlap = None,
    quiet: Quiet = None,
    jitter: Jitter = None,
    as_json: Json = False,
) -> None:
    """Add a schedule and show its next three times."""
    rules = TaskRules(policy or "", tuple(app or ()))
    wish = ScheduleWish(device, tz, missed, overlap, quiet, jitter)
    _one(
        lambda desk, me: desk.schedules.add(me, expression, task, chat=None, rules=rules, wish=wish),
        "schedule.added",
        as_json,
    )


@schedule.command()
def watch(
    contacts: Annotated[list[str] | None, typer.Argument()] = None,
    tag: list[str] | None = None,
    everybody: Annotated[bool, typer.Option("--all")] = False,
    app: str = "qq",
    device: Device = None,
    tz: Zone = None,
    quiet: Quiet = None,
    as_json: Json = False,
) -> None:
    """Answer contacts as soon as they write, by the phone's notifications; needs a running serve or worker."""
    names = contacts or []
    if everybody == bool(names or tag):
        fail(
            InputRejected(
                "Either contacts and tags, or --all.", advice="Name who is to be watched.", key="watch_either"
            )
        )
    whom = ["all"] if everybody else words_of_contacts(names, tag or [])
    wish = ScheduleWish(device, tz, quiet=quiet)
    words = texts(settings_from().lang)
    shown = name_of(chat_app(app), words.lang) or app  # an unknown one is refused by the desk
    task = " ".join([words.get("schedule.watch_word"), shown, *whom])
    _one(lambda desk, me: desk.schedules.add(me, "", task, chat=None, wish=wish), "schedule.watching", as_json)


@schedule.command()
def edit(
    number: str,
    when: str | None = None,
    task: str | None = None,
    policy: Policy = None,
    app: Apps = None,
    device: Device = None,
    tz: Zone = None,
    missed: Missed = None,
    overlap: Overlap = None,
    quiet: Quiet = None,
    jitter: Jitter = None,
    as_json: Json = False,
) -> None:
    """Change the given fields."""
    rules = None if policy is None and app is None else TaskRules(policy or "", tuple(app or ()))
    wish = ScheduleWish(device, tz, missed, overlap, quiet, jitter)
    _one(
        lambda desk, me: desk.schedules.edit(me, number, expression=when, task=task, rules=rules, wish=wish),
        "schedule.edited",
        as_json,
    )


@schedule.command("list")
def list_(as_json: Json = False) -> None:
    """List the schedules: next three times, result of the last tick, counts."""
    found, lang = with_desk(lambda desk, me: desk.schedules.all(me))
    if as_json:
        print_json([as_plain_data(view) for view in found])
    else:
        words = texts(lang)
        for view in found:
            Console().print(panel(Card(f"#{view.id}", tuple(schedule_lines(view, words)))))
        if not found:
            Console().print(words.get("schedule.empty"))


@schedule.command()
def pause(number: str, as_json: Json = False) -> None:
    """Pause a schedule."""
    _one(lambda desk, me: desk.schedules.pause(me, number), "schedule.paused", as_json)


@schedule.command()
def resume(number: str, as_json: Json = False) -> None:
    """Resume a paused schedule."""
    _one(lambda desk, me: desk.schedules.resume(me, number), "schedule.resumed", as_json)


@schedule.command()
def run(number: str, as_json: Json = False) -> None:
    """Start its task now; needs a running `phonedesk serve`."""

    async def call(desk: Desk, me: Actor) -> tuple[RunView, bool]:
        return await desk.schedules.run(me, number), await phones_are_worked(desk)

    (started, served), lang = with_desk(call)
    if as_json:
        print_json({"id": number.strip().lstrip("#"), "run_id": started.id, "status": started.status.value})
    else:
        words = texts(lang)
        key = "schedule.running" if served else "schedule.run_waits"
        follow = words.get("schedule.run_follow", run=started.id) if served else words.get("common.no_worker")
        told = [words.get(key, number=number.strip().lstrip("#")), follow]
        Console().print(sentences(told, lang))


@schedule.command()
def remove(number: str, as_json: Json = False) -> None:
    """Remove a schedule."""
    _one(lambda desk, me: desk.schedules.remove(me, number), "schedule.removed", as_json)


@schedule.command()
def undo(number: str, as_json: Json = False) -> None:
    """Restore a schedule that was removed within a week, or take your newest change of it back."""
    _one(lambda desk, me: desk.schedules.undo(me, number), "schedule.back", as_json)


@schedule.command("next")
def next_(
    expression: str,
    tz: Annotated[str, typer.Option("--tz")] = "",
    since: Annotated[str, typer.Option("--from")] = "",
    count: Annotated[int, typer.Option(min=1, max=1000)] = 3,
    as_json: Json = False,
) -> None:
    """Show the meaning of a time: its stored form, and its next times."""
    from bot.channels.chat.schedules import in_words
    from scheduler.times import parse_schedule, parse_zone
    from scheduler.times.natural import understand, windows_of

    settings = settings_from()
    timezone = tz or settings.timezone
    try:
        zone = parse_zone(timezone)
        written = _moment(since)
        after = written.astimezone(zone) if written.tzinfo is not None else written.replace(tzinfo=zone)
        kept = understand(expression, timezone, after)
        coming = [moment.astimezone(zone) for moment in parse_schedule(kept, timezone).next(after, count)]
    except InputRejected as error:
        fail(error)
    windows = windows_of(kept, timezone)
    if as_json:
        told = {"expression": expression, "means": kept, "timezone": timezone, "from": after.isoformat()}
        print_json({**told, "windows": windows, "next_times": [moment.isoformat() for moment in coming]})
        return
    out, words = Console(), texts(settings.lang)
    said = " · ".join(dict.fromkeys((in_words(kept, words), kept)))  # the stored form may be given to programs
    out.print(f"{before(words.get('schedule.means'), words)}{said} ({timezone})")
    for window, last in windows:
        start, _, end = window.partition("-")
        out.print(words.get("schedule.window_means", start=start, end=end, last=last))
    for moment in coming:
        day = words.get(f"digest.day_{moment:%a}".lower())
        out.print(f"{day} {moment:%Y-%m-%d %H:%M:%S %z}")


def _moment(text: str) -> datetime:
    """Return an ISO 8601 time; now for an empty text. Raises InputRejected."""
    try:
        return datetime.fromisoformat(text) if text else datetime.now(UTC)
    except ValueError as error:
        raise InputRejected(
            f"Not a time: {text!r}.", advice="Write it as 2026-03-28T12:00.", key="not_a_moment", said=text
        ) from error


def _one(call: Callable[[Desk, Actor], Awaitable[ScheduleView]], key: str, as_json: bool) -> None:
    async def done(desk: Desk, me: Actor) -> tuple[ScheduleView, str]:
        view = await call(desk, me)
        return view, await _missing(desk, view)

    (view, missing), lang = with_desk(done)
    if as_json:
        print_json(as_plain_data(view))
        return
    words = texts(lang)
    Console().print(panel(Card(words.get(key, number=view.id), tuple(schedule_lines(view, words)))))
    if key == "schedule.removed":
        Console().print(words.get("schedule.back_how", number=view.id))
    elif missing and not view.paused:
        Console().print(words.get(missing))


async def _missing(desk: Desk, view: ScheduleView) -> str:
    """Return the text key of the process that a schedule needs and that does not run; "" if nothing is missing.

    A watch has no times: whatever works the phones follows it.
    """
    if view.kind != "watch" and not await clock_runs(desk):
        return "schedule.not_served"
    return "" if await phones_are_worked(desk) else "common.no_worker"
