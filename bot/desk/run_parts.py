"""How a plan's run is seen: what its planner called, and whether it waits for somebody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bot.desk.phonebook import PhoneBook
from bot.desk.plans_views import PlanCallView, PlanView
from bot.desk.views import RunStatus, RunView
from storage.engine import Database
from storage.events import EventRow, Events
from storage.history import History
from storage.runs import Runs

TOLD = ("tool_call", "tool_result", "message")
MOST_SHOWN = 300  # characters of an argument, and of a result


async def plan_run(db: Database, view: RunView, book: PhoneBook) -> RunView:
    """The run of a plan with what it is at. It waits where one of its parts asks somebody."""
    status = view.status
    if not status.final:
        parts = [run.id for run in await Runs(db).parts_of(view.id) if not run.final]
        if parts and await History(db).asking(parts):
            status = RunStatus.WAITING
    return replace(view, plan=await plan_view(db, view.id, book), status=status)


async def plan_view(db: Database, run_id: str, book: PhoneBook) -> PlanView:
    """What the event log tells of a plan, as long as it is kept there."""
    log, position = Events(db), 0
    rows: list[EventRow] = []
    while found := await log.after(position, run_id=run_id):
        position = found[-1].id
        rows += [row for row in found if row.kind in TOLD]
    said = next((str(row.data.get("content") or "") for row in reversed(rows) if row.kind == "message"), "")
    return PlanView(_calls(rows, book), said)


def _calls(rows: Sequence[EventRow], book: PhoneBook) -> tuple[PlanCallView, ...]:
    """The calls in the order in which they were made, each with its result."""
    calls: dict[str, PlanCallView] = {}
    for row in rows:
        data = row.data
        if row.kind == "tool_call":
            args = {str(name): _short(value) for name, value in (data.get("args") or {}).items()}
            calls[str(data.get("call"))] = PlanCallView(
                str(data.get("tool")), args, phone=book.name(book.serial(args.get("device_id", "")))
            )
        elif row.kind == "tool_result" and (call := calls.get(str(data.get("call")))) is not None:
            ended = replace(call, state="done" if data.get("ok") else "failed", result=_short(data.get("result")))
            calls[str(data.get("call"))] = ended
    return tuple(calls.values())


def _short(value: object) -> str:
    text = " ".join(str(value if value is not None else "").split())
    return text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 1] + "…"
