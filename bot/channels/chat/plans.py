"""Plans in the chat: the command, and the one card that shows what the planner has done."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from agent_core.loop.tasks import NO_RULES
from bot.channels.chat import cards, commands
from bot.channels.chat.cards import Button, Card, Line, cut
from bot.channels.chat.texts import Texts
from bot.channels.chat.turn import Outgoing, Said, Subject, Turn
from bot.desk.plans_views import PlanCallView, PlanView
from bot.desk.views import RunStatus, RunView

MOST_SHOWN = 12  # calls: the newest
MOST_WORDS = 120  # characters of what was asked for, and of what came of it


async def go_on(turn: Turn) -> Said | None:
    """Free text in answer to the card of a plan: it goes on in that conversation. None where it answers none."""
    return await _planned(turn, turn.incoming.text, before) if (before := await _answered(turn)) else None


async def plan(turn: Turn) -> Said:
    return await _planned(turn, turn.rest, await _answered(turn))


async def _answered(turn: Turn) -> str:
    """The plan whose card is answered; "" for none."""
    card = turn.incoming.reply_to if turn.incoming.kind == "reply" else None
    run_id = await turn.desk.runs.at(card) if card is not None else None
    run = await turn.desk.runs.get(run_id) if run_id else None
    return run.id if run is not None and run.plan is not None else ""


async def _planned(turn: Turn, words: str, before: str) -> Said:
    request = commands.read_run(words)
    if not request.task or request.rules != NO_RULES:
        return turn.tell(turn.texts.get("usage.plan"))
    run = await turn.desk.plans.start(
        turn.actor,
        request.task,
        chat=turn.chat,
        serial=request.phone or turn.incoming.phone,
        after=before,
        key=turn.incoming.key,
    )
    card = plan_card(run, run.plan or PlanView(), turn.texts, now=turn.now)
    return Said((Outgoing(card, turn.chat, turn.incoming.message_id, shows=f"run:{run.id}"),))


SUBJECT = Subject(commands={"plan": plan})


def plan_card(run: RunView, plan: PlanView, texts: Texts, *, now: datetime, picture: bytes | None = None) -> Card:
    """Every call of the planner with what came of it; at the end what the planner says."""
    lines = cards.head_lines(run, texts)
    if more := len(plan.calls) - MOST_SHOWN:
        lines += [Line(texts.get("plan.earlier", count=more))] if more > 0 else []
    several = len({call.phone for call in plan.calls if call.phone}) > 1
    for call in plan.calls[-MOST_SHOWN:]:
        lines += _call_lines(call, texts, several=several, over=run.status.final)
    if plan.said and not run.status.final:
        lines.append(Line(plan.said, texts.get("plan.says"), "quote"))
    if run.status is RunStatus.WAITING:
        lines.append(Line(texts.get("plan.waits")))
    if run.started_at is not None:
        lines.append(Line(cards.elapsed(texts, run.started_at, run.ended_at or now), texts.get("card.elapsed")))
    if run.stopped_by:
        lines.append(Line(texts.person(run.stopped_by), texts.get("card.stopped_by")))
    if run.status in {RunStatus.SUCCEEDED, RunStatus.FAILED}:
        lines.append(Line(run.message or texts.get("plan.interrupted"), texts.get("card.result")))
    stop = Button(f"stop:{run.id}", texts.get("button.stop"), "danger")
    return Card(texts.get(f"plan.{run.status.value}"), tuple(lines), picture, () if run.status.final else ((stop,),))


def _call_lines(call: PlanCallView, texts: Texts, *, several: bool, over: bool) -> Sequence[Line]:
    """``several``: more than one phone is at work. ``over``: so is the plan, and what has no result was cut off."""
    state = "failed" if over and call.state == "going" else call.state
    words = call.args.get("message") or call.args.get("query") or ""
    what = cut(words, MOST_WORDS) if call.tool == "chat" else texts.find(f"plan.tool_{call.tool}", call.tool)
    if call.tool != "chat" and words:
        what = f"{what}{texts.get('common.colon')}{cut(words, MOST_WORDS)}"
    said = " · ".join(part for part in (what, call.phone if several else "") if part)
    line = Line(f"{texts.get(f'plan.mark_{state}')} {said}")
    return [line, Line(cut(call.result, MOST_WORDS), "", "quote")] if state == "failed" and call.result else [line]
