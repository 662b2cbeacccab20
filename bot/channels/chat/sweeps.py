"""Sweeps in the chat: the command, and the card that shows all contacts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from agent_core.errors import PhonedeskError
from bot.channels.chat import cards
from bot.channels.chat.cards import Button, Card, Line
from bot.channels.chat.plans import plan_card
from bot.channels.chat.texts import Texts
from bot.channels.chat.turn import Outgoing, Said, Subject, Turn
from bot.desk.views import RunStatus, RunView, SweepView, SweptView
from scheduler.sweeps.order import EVERYBODY, read_task

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


SUBJECT = Subject(commands={"sweep": sweep})


def card_of(run: RunView, texts: Texts, *, now: datetime, thinking: str = "", picture: bytes | None = None) -> Card:
    """Return the card of any kind of run: a plan, a sweep or a single run."""
    if run.plan is not None:
        return plan_card(run, run.plan, texts, now=now, picture=picture)
    if run.sweep is None:
        return cards.run_card(run, texts, now=now, thinking=thinking, picture=picture)
    return sweep_card(run, run.sweep, texts, now=now)


def sweep_card(run: RunView, sweep: SweepView, texts: Texts, *, now: datetime) -> Card:
    """Return the card of a sweep: its contacts with their results, and who was left out."""
    lines = cards.head_lines(run, texts)
    for one in sweep.contacts[:MOST_SHOWN]:
        lines += _contact_lines(one, texts)
    if len(sweep.contacts) > MOST_SHOWN:
        lines.append(Line(texts.get("sweep.more", count=len(sweep.contacts) - MOST_SHOWN)))
    if sweep.looked is not None:
        said = left_lines(sweep.details, texts, looked=sweep.looked, started=len(sweep.contacts))
        lines += [Line(one) for one in said]
    if run.started_at is not None:
        lines.append(Line(cards.elapsed(texts, run.started_at, run.ended_at or now), texts.get("card.elapsed")))
    lines += cards.stop_lines(run, texts)
    if run.status is RunStatus.FAILED and run.message:
        lines.append(Line(run.message, texts.get("card.result")))
    stop = Button(f"stop:{run.id}", texts.get("button.stop"), "danger")
    return Card(_title(run, sweep, texts), tuple(lines), None, () if run.status.final or run.stopped_by else ((stop,),))


def means_line(task: str, texts: Texts) -> Line:
    """Return what a task means that is to answer everybody without saying so; empty for any other."""
    try:
        order = read_task(task)
    except PhonedeskError:
        order = None
    if order is None or not order.everybody or any(word in task.lower() for word in EVERYBODY):
        return Line("")
    return Line(texts.get("sweep.means_everybody", app=order.profile.name))


def _title(run: RunView, sweep: SweepView, texts: Texts) -> str:
    going = [one for one in sweep.contacts if one.state in _GOING]
    values = {"over": len(sweep.contacts) - len(going), "all": len(sweep.contacts), "contact": sweep.reply_to}
    kind = "scheduled_reply" if sweep.reply_to else "sweep"
    return texts.get(f"{kind}.{_state(run, sweep, going)}", **values)


def _state(run: RunView, sweep: SweepView, going: Sequence[SweptView]) -> str:
    if run.status is RunStatus.SUCCEEDED and sweep.details.get("unknown"):
        return "not_found"
    if run.status is RunStatus.SUCCEEDED:
        whys = {str(why) for _, why in sweep.details.get("left") or ()}
        if "asked" in whys or any(one.state == "asked" for one in sweep.contacts):
            return "still_asked"
        if whys & _OPEN:
            return "still_open"
        if not sweep.contacts:
            return "quiet" if sweep.looked is None else "nothing"
    if run.stopped_by and not run.status.final:
        return "stopping"
    if not run.status.final and sweep.looked is not None:
        return "asked" if going and all(one.state == "asked" for one in going) else "going"
    return run.status.value


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
