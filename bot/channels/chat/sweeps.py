"""Sweeps in the chat: the command, and the card that shows all contacts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from agent_core.errors import PhonedeskError
from bot.channels.chat.cards import Button, Card, Line
from bot.channels.chat.plans import plan_card
from bot.channels.chat.run_cards import elapsed_lines, head_lines, run_card, stop_lines
from bot.channels.chat.texts import Texts
from bot.channels.chat.turn import Outgoing, Said, Subject, Turn
from bot.desk.history_views import PastRun
from bot.desk.views import RunStatus, RunView, SweepView, SweptView
from scheduler.sweeps.order import EVERYBODY, QUIET_HOURS, read_task

MOST_SHOWN = 20
MOST_LEFT = 10
_GOING = {"waiting", "answering", "asked"}
_OPEN = {"stopped", "given_up"}  # why somebody is left whose question nothing answers by itself


async def sweep(turn: Turn) -> Said:
    """Handle ``/sweep``."""
    run = await turn.desk.sweeps.start(
        turn.actor,
        turn.rest,
        chat=turn.chat,
        serial=turn.incoming.phone or None,
        key=turn.incoming.key,
    )
    card = card_of(run, turn.texts, now=turn.now)
    return Said((Outgoing(card, turn.chat, turn.incoming.message_id, shows=f"run:{run.id}"),))


def card_of(run: RunView, texts: Texts, *, now: datetime, thinking: str = "", picture: bytes | None = None) -> Card:
    """Return the card of any kind of run: a plan, a sweep or a single run."""
    if run.plan is not None:
        return plan_card(run, run.plan, texts, now=now, picture=picture)
    if run.sweep is None:
        return run_card(run, texts, now=now, thinking=thinking, picture=picture)
    return sweep_card(run, run.sweep, texts, now=now)


def sweep_card(run: RunView, sweep: SweepView, texts: Texts, *, now: datetime) -> Card:
    """Return the card of a sweep: its contacts with their results, and who was left out."""
    lines = head_lines(run, texts)
    for one in sweep.contacts[:MOST_SHOWN]:
        lines += _contact_lines(one, texts)
    if len(sweep.contacts) > MOST_SHOWN:
        lines.append(Line(texts.get("sweep.more", count=len(sweep.contacts) - MOST_SHOWN)))
    if sweep.looked is not None:
        said = left_lines(sweep.details, texts, looked=sweep.looked, started=len(sweep.contacts))
        lines += [Line(one) for one in said]
    lines += elapsed_lines(run, texts, now=now)
    lines += stop_lines(run, texts)
    if run.status is RunStatus.FAILED and run.message:
        lines.append(Line(run.message, texts.get("card.result")))
    stop = Button(f"stop:{run.id}", texts.get("button.stop"), "danger")
    title = _title(run.status, sweep, texts, stopping=bool(run.stopped_by))
    return Card(title, tuple(lines), None, () if run.status.final or run.stopped_by else ((stop,),))


def means_line(task: str, texts: Texts) -> Line:
    """Return what a task means that is to answer everybody without saying so; empty for any other."""
    try:
        order = read_task(task)
    except PhonedeskError:
        order = None
    if order is None or not order.everybody or any(word in task.lower() for word in EVERYBODY):
        return Line("")
    return Line(texts.get("sweep.means_everybody", app=order.profile.name_in(texts.lang)))


def outcome_line(status: RunStatus, sweep: SweepView, texts: Texts) -> str:
    """Return what came of a sweep in one line: its contacts by what became of them; if it has none, its state.

    "" if it has not looked yet.
    """
    if sweep.looked is None and not status.final:
        return ""
    states: dict[str, list[str]] = {}
    for one in sweep.contacts:
        states.setdefault(one.state, []).append(one.contact)
    colon = texts.get("common.colon")
    said = [f"{texts.get(f'sweep.contact_{state}')}{colon}{_names(names, texts)}" for state, names in states.items()]
    return " · ".join(said) or _title(status, sweep, texts)


def message_in_words(run: RunView | PastRun, texts: Texts) -> str:
    """Return a run's message for people. That of quiet hours is a mark; of a sweep its ``outcome_line`` tells them."""
    if run.message != QUIET_HOURS:
        return run.message
    return texts.get("sweep.contact_quiet") if run.sweep is None else ""


def _title(status: RunStatus, sweep: SweepView, texts: Texts, *, stopping: bool = False) -> str:
    going = [one for one in sweep.contacts if one.state in _GOING]
    values = {"over": len(sweep.contacts) - len(going), "all": len(sweep.contacts), "contact": sweep.reply_to}
    kind = "scheduled_reply" if sweep.reply_to else "sweep"
    return texts.get(f"{kind}.{_state(status, sweep, going, stopping=stopping)}", **values)


def _state(status: RunStatus, sweep: SweepView, going: Sequence[SweptView], *, stopping: bool) -> str:
    if status is RunStatus.SUCCEEDED and sweep.details.get("unknown"):
        return "not_found"
    if status is RunStatus.SUCCEEDED:
        whys = {str(why) for _, why in sweep.details.get("left") or ()}
        if "asked" in whys or any(one.state == "asked" for one in sweep.contacts):
            return "still_asked"
        if whys & _OPEN:
            return "still_open"
        if not sweep.contacts:
            return "quiet" if sweep.looked is None else "nothing"
    if stopping and not status.final:
        return "stopping"
    if not status.final and sweep.looked is not None:
        return "asked" if going and all(one.state == "asked" for one in going) else "going"
    return status.value


def _contact_lines(one: SweptView, texts: Texts) -> list[Line]:
    said = texts.get(f"sweep.contact_{one.state}")
    if one.state == "failed" and one.message:
        said = f"{said} · {one.message}"
    return [Line(said, one.contact), *(Line(text, "", "quote") for text in one.texts)]


def left_lines(details: Mapping[str, Any], texts: Texts, *, looked: int, started: int) -> list[str]:
    """Return the contacts that are not answered, by the reason."""
    lines = []
    if not started or looked > started:
        lines.append(texts.get("sweep.looked", count=looked))
    unknown = details.get("unknown") or ()
    if quiet := [name for name in details.get("quiet") or () if name not in unknown]:
        lines.append(texts.get("sweep.no_news", names=_names(quiet, texts)))
    if unknown:
        lines.append(texts.get("sweep.unknown", names=_names(unknown, texts)))
    for kind in ("left", "aside"):
        whys: dict[str, list[str]] = {}
        for name, why in details.get(kind) or ():
            whys.setdefault(str(why), []).append(str(name))
        lines += [texts.get(f"sweep.{kind}_{why}", names=_names(names, texts)) for why, names in whys.items()]
    return lines


def _names(names: Sequence[str], texts: Texts) -> str:
    more = f" +{len(names) - MOST_LEFT}" if len(names) > MOST_LEFT else ""
    return texts.get("sweep.between").join(names[:MOST_LEFT]) + more


SUBJECT = Subject(commands={"sweep": sweep})
