"""``phonedesk schedule``: what is done when, from the terminal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console

from agent_core.tasks import TaskRules
from bot.chat.cards import Card, schedule_lines
from bot.chat.texts import texts
from bot.commands.at_desk import with_desk
from bot.commands.common import print_json
from bot.desk.actors import Actor
from bot.desk.schedules_port import ScheduleView
from bot.terminal.render import panel

if TYPE_CHECKING:
    from bot.desk.desk import HouseDesk

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Number = Annotated[str, typer.Argument(help="The schedule's number, see `phonedesk schedule list`.")]

schedule = typer.Typer(
    no_args_is_help=True,
    help='What is done when. Example: phonedesk schedule add "*/5 9-18 * * 1-5" "QQ回复联系人11"',
)


@schedule.command()
def add(
    expression: Annotated[str, typer.Argument(help='Five cron fields, "every 5m", or "at 18:30".')],
    task: Annotated[str, typer.Argument(help="What to do.")],
    policy: Annotated[
        Literal["reply", "careful", "open"] | None,
        typer.Option(help="What holds for the task; without it, what its text says."),
    ] = None,
    app: Annotated[
        list[str] | None, typer.Option(help="An app that the task may use, and no other; may be given again.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Add a schedule and show its next three times.

    Example: phonedesk schedule add "*/5 9-18 * * 1-5" "QQ回复联系人11"
    """
    rules = TaskRules(policy or "", tuple(app or ()))
    _one(lambda desk, me: desk.add_schedule(me, expression, task, chat=None, rules=rules), "schedule.added", as_json)


@schedule.command("list")
def list_(as_json: Json = False) -> None:
    """List the schedules with their next three times.

    Example: phonedesk schedule list --json
    """
    found, lang = with_desk(lambda desk, me: desk.list_schedules(me))
    if as_json:
        print_json([_plain(view) for view in found])
    else:
        words = texts(lang)
        for view in found:
            Console().print(panel(Card(f"#{view.id}", tuple(schedule_lines(view, words)))))
        if not found:
            Console().print(words.get("schedule.empty"), markup=False)


@schedule.command()
def pause(number: Number, as_json: Json = False) -> None:
    """Pause a schedule. Example: phonedesk schedule pause 1"""
    _one(lambda desk, me: desk.pause_schedule(me, number), "schedule.paused", as_json)


@schedule.command()
def resume(number: Number, as_json: Json = False) -> None:
    """Let a paused schedule go on. Example: phonedesk schedule resume 1"""
    _one(lambda desk, me: desk.resume_schedule(me, number), "schedule.resumed", as_json)


@schedule.command()
def remove(number: Number, as_json: Json = False) -> None:
    """Remove a schedule. Example: phonedesk schedule remove 1"""
    _one(lambda desk, me: desk.remove_schedule(me, number), "schedule.removed", as_json)


def _one(call: Callable[[HouseDesk, Actor], Awaitable[ScheduleView]], key: str, as_json: bool) -> None:
    view, lang = with_desk(call)
    if as_json:
        print_json(_plain(view))
        return
    words = texts(lang)
    Console().print(panel(Card(words.get(key, id=view.id), tuple(schedule_lines(view, words)))))


def _plain(view: ScheduleView) -> dict[str, Any]:
    return {**asdict(view), "next_times": [moment.isoformat() for moment in view.next_times]}
