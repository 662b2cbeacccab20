"""Runs in the chat: start, stop, hold and resume them, and list the active ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from bot.channels.chat import commands, sweeps
from bot.channels.chat.cards import Button, Card, Line, Style, cut
from bot.channels.chat.devices import phone_state
from bot.channels.chat.questions import question_title
from bot.channels.chat.run_cards import away_lines, run_line
from bot.channels.chat.texts import Texts
from bot.channels.chat.turn import Outgoing, Said, Subject, Turn
from bot.desk.actors import Role
from bot.desk.views import RunView, StatusView

MOST_OFFERED = 5
SHOWN = 24  # characters of a task on a button
NEVER_TOO_MUCH = {"stop", "hold"}  # commands and buttons that do not count towards the limit of requests
Verb = Literal["stop", "hold", "resume"]
_STYLES: dict[Verb, Style] = {"stop": "danger", "hold": "", "resume": "success"}
_CAN: dict[Verb, Callable[[RunView], bool]] = {
    "stop": lambda run: not run.stopped_by,
    "hold": lambda run: not run.held and not run.stopped_by,
    "resume": lambda run: run.held,
}


async def run(turn: Turn) -> Said:
    """Handle ``/run``."""
    request = commands.read_run(turn.rest)
    if not request.task:
        return turn.tell(turn.texts.get("usage.run"))
    started = await turn.desk.runs.start(
        turn.actor,
        request.task,
        chat=turn.chat,
        serial=request.phone or turn.incoming.phone or None,
        rules=request.rules,
        key=turn.incoming.key,
    )
    return Said((card_of(turn, started),))


def card_of(turn: Turn, started: RunView) -> Outgoing:
    """Return the card of a run that has just been started. The channel keeps it up to date from the run's events."""
    card = sweeps.card_of(started, turn.texts, now=turn.now)
    return Outgoing(card, turn.chat, turn.incoming.message_id, shows=f"run:{started.id}")


async def status(turn: Turn) -> Said:
    """Handle ``/status``."""
    may = turn.actor.role.covers(Role.OPERATOR)
    return turn.say(status_card(await turn.desk.status(turn.actor), turn.texts, may_act=may))


# Stop, Hold, Resume ---------------------------------------------------------------------------------------------------


async def _named_in(turn: Turn, *, held: bool = False) -> tuple[str, bool]:
    """Return the run that is named, by a word or by a reply to its card, else the one on the phone of this topic.

    The second value tells whether that phone has none.
    """
    card = turn.incoming.reply_to
    named = turn.rest.strip() or (await turn.desk.runs.at(card) if card is not None else "")
    if named or not turn.incoming.phone:
        return named or "", False
    here = await turn.run_here(held=held)
    return here, not here


async def stop(turn: Turn) -> Said:
    """Handle ``/stop``."""
    named, nothing = await _named_in(turn)
    done = None if nothing else await turn.desk.runs.stop(turn.actor, named or None)
    return await _told(turn, "stop", done, "run.stopping", "run.nothing_to_stop")


async def hold(turn: Turn) -> Said:
    """Handle ``/hold``."""
    named, nothing = await _named_in(turn)
    done = None if nothing else await turn.desk.runs.hold(turn.actor, named or None)
    return await _told(turn, "hold", done, "ask.holding", "ask.nothing_to_hold")


async def resume(turn: Turn) -> Said:
    """Handle ``/resume``."""
    named, nothing = await _named_in(turn, held=True)
    done = None if nothing else await turn.desk.runs.resume(turn.actor, named or None)
    return await _told(turn, "resume", done, "ask.resumed", "ask.nothing_held")


async def _told(turn: Turn, verb: Verb, done: RunView | None, said: str, nothing: str) -> Said:
    """Say which run it was, with a button for each other run with which the same can be done."""
    words = turn.texts
    going = await turn.desk.runs.going(turn.actor)
    others = [run for run in going if (done is None or run.id != done.id) and _CAN[verb](run)][:MOST_OFFERED]
    lines = [] if done is None else [Line(_named(done)), *away_lines(done, words)]
    if others and done is None:
        nothing = f"run.which_{verb}"
    elif others:
        lines.append(Line(words.get("run.others")))
    elif done is None:
        lines.append(Line(words.get("run.see_status")))
    buttons = tuple(
        (Button(f"{verb}:{run.id}", f"{words.get(f'button.{verb}')} · {_named(run, SHOWN)}", _STYLES[verb]),)
        for run in others
    )
    return turn.say(Card(words.get(said if done else nothing), tuple(lines), None, buttons))


def _named(run: RunView, most: int = 0) -> str:
    """Return a run's task and phone, by which people tell it from others."""
    task = cut(run.task, most) if most else " ".join(run.task.split())
    return " · ".join(part for part in (task, run.phone) if part)


async def _stop_tapped(turn: Turn, run_id: str) -> Said:
    words, person = turn.texts, turn.incoming.person
    done = await turn.desk.runs.stop(turn.actor, run_id)
    if done is None:
        await turn.desk.people.turned_away(turn.chat.channel, person.user_id, person.name, "old")
    seen = done or await turn.desk.runs.get(run_id)
    if seen is not None and seen.stopped_by not in {"", turn.actor.name}:
        return Said(toast=words.get("run.stopped_before", by=seen.stopped_by))
    return Said(toast=words.get("run.stopping" if done else "run.nothing_to_stop"))


async def _hold_tapped(turn: Turn, run_id: str) -> Said:
    done = await turn.desk.runs.hold(turn.actor, run_id)
    return Said(toast=turn.texts.get("ask.holding" if done else "ask.nothing_to_hold"))


async def _resume_tapped(turn: Turn, run_id: str) -> Said:
    done = await turn.desk.runs.resume(turn.actor, run_id)
    if done is None:
        return Said(toast=turn.texts.get("ask.nothing_held"))
    away = [line.text for line in away_lines(done, turn.texts)][:1]
    return Said(toast="\n".join((turn.texts.get("ask.resumed"), *away)), alert=bool(away))


# Status ---------------------------------------------------------------------------------------------------------------


def status_card(status: StatusView, texts: Texts, *, may_act: bool = True) -> Card:
    """Return the card of ``/status``. ``may_act``: whether the person may stop and resume runs."""
    lines = [Line(phone_state(phone, texts), phone.name or phone.serial) for phone in status.phones] or [
        Line(texts.get("status.no_phones"))
    ]
    lines += [Line(run_line(run, texts)) for run in status.runs]
    if not status.runs:
        lines.append(Line(texts.get("status.idle")))
    for question in status.questions:
        kind = question_title(question.question, texts)
        lines.append(Line(question.question.text or kind, texts.get("status.questions"), "quote"))
    rows = [_status_row(run, texts) for run in status.runs[:5]] if may_act else []
    return Card(texts.get("status.title"), tuple(lines), None, tuple(rows))


def _status_row(run: RunView, texts: Texts) -> tuple[Button, ...]:
    stop = Button(f"stop:{run.id}", f"{texts.get('button.stop')} · {run.task[:20]}", "danger")
    if not run.held:
        return (stop,)
    return (Button(f"resume:{run.id}", f"{texts.get('button.resume')} · {run.task[:20]}", "success"), stop)


SUBJECT = Subject(
    commands={"run": run, "stop": stop, "hold": hold, "resume": resume, "status": status},
    buttons={"stop": _stop_tapped, "hold": _hold_tapped, "resume": _resume_tapped},
)
