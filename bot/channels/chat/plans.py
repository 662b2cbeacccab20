"""Plans in the chat: the command, and the card with the planner's work."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from agent_core.loop.tasks import NO_RULES
from bot.channels.chat import commands
from bot.channels.chat.cards import Button, Card, Line, cut
from bot.channels.chat.run_cards import elapsed_lines, head_lines, stop_lines
from bot.channels.chat.texts import Texts
from bot.channels.chat.turn import Outgoing, Said, Subject, Turn
from bot.desk.views import PlanCallView, PlanView, RunStatus, RunView

MOST_SHOWN = 12  # of the newest calls
MOST_WORDS = 120  # characters of a call's request, and of its result


async def go_on(turn: Turn) -> Said | None:
    """Continue a plan's conversation with a text that replies to its card; None if the text replies to no plan."""
    return await _planned(turn, turn.incoming.text, before) if (before := await _answered(turn)) else None


async def plan(turn: Turn) -> Said:
    """Handle ``/plan``."""
    return await _planned(turn, turn.rest, await _answered(turn))


async def _answered(turn: Turn) -> str:
    """Return the id of the plan whose card the message replies to; "" for none."""
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


def plan_card(run: RunView, plan: PlanView, texts: Texts, *, now: datetime, picture: bytes | None = None) -> Card:
    """Return the card of a plan: the planner's newest calls with their results, then the planner's words."""
    lines = head_lines(run, texts)
    if more := len(plan.calls) - MOST_SHOWN:
        lines += [Line(texts.get("plan.earlier", count=more))] if more > 0 else []
    several = len({call.phone for call in plan.calls if call.phone}) > 1
    for call in plan.calls[-MOST_SHOWN:]:
        lines += _call_lines(call, texts, several=several, over=run.status.final)
    if plan.said and not run.status.final:
        lines.append(Line(plan.said, texts.get("plan.says"), "quote"))
    if run.status is RunStatus.WAITING:
        lines.append(Line(texts.get("plan.waits")))
    lines += elapsed_lines(run, texts, now=now)
    lines += stop_lines(run, texts)
    result = run.message or (texts.get("plan.interrupted") if run.status is RunStatus.FAILED else "")
    if result and run.status in {RunStatus.SUCCEEDED, RunStatus.FAILED}:
        lines.append(Line(result, texts.get("card.result")))
    stop = Button(f"stop:{run.id}", texts.get("button.stop"), "danger")
    over, stopping = run.status.final, bool(run.stopped_by) and not run.status.final
    state = "stopping" if stopping else run.status.value
    return Card(texts.get(f"plan.{state}"), tuple(lines), picture, () if over or stopping else ((stop,),))


def _call_lines(call: PlanCallView, texts: Texts, *, several: bool, over: bool) -> Sequence[Line]:
    """Return the lines of a call. ``several``: the plan uses several phones. ``over``: the plan has ended, so that a
    call without a result was cut off.
    """
    state = "failed" if over and call.state == "going" else call.state
    words = call.args.get("message") or call.args.get("query") or ""
    what = cut(words, MOST_WORDS) if call.tool == "chat" else texts.find(f"plan.tool_{call.tool}", call.tool)
    if call.tool != "chat" and words:
        what = f"{what}{texts.get('common.colon')}{cut(words, MOST_WORDS)}"
    said = " · ".join(part for part in (what, call.phone if several else "") if part)
    line = Line(f"{texts.get(f'plan.mark_{state}')} {said}")
    return [line, Line(cut(call.result, MOST_WORDS), "", "quote")] if state == "failed" and call.result else [line]


SUBJECT = Subject(commands={"plan": plan})
