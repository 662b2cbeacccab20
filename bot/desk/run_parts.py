"""The views of plans and sweeps: the planner's calls, the sweep's contacts, and the status that follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agent_core.session import WAITS_ELSEWHERE, LeftTo, Session
from bot.desk.phonebook import PhoneBook
from bot.desk.views import PlanCallView, PlanView, RunStatus, RunView, SweepView, SweptState, SweptView
from scheduler.sweeps.attempt import looks_before
from scheduler.sweeps.order import QUIET_HOURS, one_contact
from storage.answers import SKIPPED, AnswerFilter, Answers
from storage.engine import Database
from storage.events import EventRow, Events
from storage.history import History
from storage.questions import Questions
from storage.runs import FAILED, RUNNING, STOPPED, SUCCEEDED, RunRow, Runs
from storage.sweeps import SweepRow, Sweeps, Swept

TOLD = ("tool_call", "tool_result", "message")
MOST_SHOWN = 300  # characters of an argument, and of a result
_OVER: Mapping[str, SweptState] = {FAILED: "failed", STOPPED: "stopped"}
# reasons to set a contact aside that are reported once: a person may want to act
NEWS = {"cut_off", "group", "look_alike"}


async def plan_run(db: Database, view: RunView, book: PhoneBook) -> RunView:
    """Return the run of a plan with its progress. It is waiting if one of its parts has asked a question."""
    status = view.status
    if not status.final:
        parts = [run.id for run in await Runs(db).parts_of(view.id) if not run.final]
        if parts and await History(db).asking(parts):
            status = RunStatus.WAITING
    return replace(view, plan=await _plan_view(db, view.id, book), status=status)


async def _plan_view(db: Database, run_id: str, book: PhoneBook) -> PlanView:
    """Return a plan's progress from the event log, as far as the log still has it."""
    log, position = Events(db), 0
    rows: list[EventRow] = []
    while found := await log.after(position, run_id=run_id):
        position = found[-1].id
        rows += [row for row in found if row.kind in TOLD]
    said = next((str(row.data.get("content") or "") for row in reversed(rows) if row.kind == "message"), "")
    return PlanView(_calls(rows, book), said)


def _calls(rows: Sequence[EventRow], book: PhoneBook) -> tuple[PlanCallView, ...]:
    """Return the calls in their order, each with its result."""
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
    return one_line(str(value if value is not None else ""), MOST_SHOWN)


def one_line(text: str, most: int) -> str:
    """Return a text as one line of at most ``most`` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else flat[: most - 1].rstrip() + "…"


async def left_now(db: Database, sessions: Mapping[str, Session]) -> Mapping[str, LeftTo]:
    """Return by run to whom it has left its customer: as in its session, and "over" if the older run is over now."""
    left = {run_id: session.elsewhere.run_id for run_id, session in sessions.items() if session.elsewhere is not None}
    over = {run.id for run in await Runs(db).some(sorted(set(left.values()))) if run.final}
    said: dict[str, LeftTo] = {run_id: session.left_to for run_id, session in sessions.items()}
    return said | {run_id: "over" for run_id, other in left.items() if said[run_id] and other in over}


async def sweep_run(db: Database, view: RunView, row: RunRow) -> RunView:
    """Return the run of a sweep with its contacts. It is running until all that are left wait for people."""
    sweep = await sweep_view(db, row)
    at_work = any(one.state in ("waiting", "answering") for one in sweep.contacts)
    status = RunStatus.RUNNING if view.status is RunStatus.WAITING and at_work else view.status
    return replace(view, sweep=sweep, status=status)


async def sweep_view(db: Database, row: RunRow) -> SweepView:
    """Return the progress of a sweep."""
    sweeps = Sweeps(db)
    looked = await sweeps.get(row.id)
    swept = await sweeps.runs(row.id)
    contacts = tuple(
        [SweptView(one.contact, await _state(db, one), one.texts, one.message, one.run_id) for one in swept]
    )
    return SweepView(
        looked.contacts if looked is not None else None,
        contacts,
        looked.details if looked is not None else {},
        silent=not contacts and await _silent(db, row, looked),
        reply_to=one_contact(row.task),
    )


async def _state(db: Database, one: Swept) -> SweptState:
    if one.status == SUCCEEDED and one.texts:
        return "answered"
    if one.error == WAITS_ELSEWHERE:
        return "elsewhere" if one.status == SUCCEEDED else "asked"
    if one.status == SUCCEEDED:
        skipped = await Answers(db).find(AnswerFilter(run_id=one.run_id, state=SKIPPED), limit=1)
        return "skipped" if skipped else "nothing"
    if one.status in _OVER:
        return "quiet" if one.message == QUIET_HOURS else _OVER[one.status]
    asked = bool(await Questions(db).find(run_id=one.run_id, state="open", limit=1))
    if asked:
        return "asked"
    return "answering" if one.status == RUNNING else "waiting"


async def _silent(db: Database, row: RunRow, looked: SweepRow | None) -> bool:
    """Tell whether to tell nobody: the sweep began by itself, and has nothing to tell or the same failure as before."""
    if row.planned_at is None:  # a person started it and wants to know
        return False
    if row.status == FAILED:
        before = await Runs(db).find(schedule_id=row.schedule_id, before=row.id, limit=1)
        return bool(before) and (before[0].status, before[0].message) == (FAILED, row.message)
    if looked is not None and row.message:  # contacts that nobody knows, for the first time
        return False
    details: Mapping[str, Any] = looked.details if looked is not None else {}
    left = details.get("left") or ()
    news = any(why == "unnamed" for _, why in left) or any(why in NEWS for _, why in details.get("aside") or ())
    given_up = {name for name, why in left if why == "given_up"}
    return not news and not (given_up and given_up - await _given_up_before(db, row))


async def _given_up_before(db: Database, row: RunRow) -> set[str]:
    """Return the contacts that the sweep before this one gave up."""
    looked = next(iter(await looks_before(db, row)), None)
    return {name for name, why in looked.details.get("left") or () if why == "given_up"} if looked else set()
