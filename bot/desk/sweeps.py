"""Sweeps: start one, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agent_core.session import WAITS_ELSEWHERE
from agent_core.tasks import check_task
from bot.desk.actors import Actor, BadRequest, ChatRef
from bot.desk.run_parts import plan_run
from bot.desk.runs import RunsDesk
from bot.desk.sweeps_views import SweepView, SweptState, SweptView
from bot.desk.views import RunStatus, RunView
from scheduler.sweeps.leg import QUIET_HOURS, no_tag, unknown_tags
from scheduler.sweeps.order import KIND, WORDS, SweepOrder, read_order
from storage.engine import Database
from storage.questions import Questions
from storage.runs import FAILED, PLAN, RUNNING, STOPPED, SUCCEEDED, RunRow, Runs
from storage.sweeps import SweepRow, Sweeps, Swept

_WORD = {"zh": WORDS[0], "en": WORDS[-1]}
_OVER: Mapping[str, SweptState] = {FAILED: "failed", STOPPED: "stopped"}
RECENT = 10  # runs of a schedule among which the sweep before is found; one that failed has not looked
NEWS = {"cut_off", "group", "look_alike"}  # who is set aside for this is told once: a person may want to see to them


class SweepsDesk(RunsDesk):
    async def start_sweep(
        self, actor: Actor, words: str, *, chat: ChatRef, serial: str | None = None, key: str = ""
    ) -> RunView:
        order = read_order(words)
        await check_tags(self._db, order)
        task = check_task(f"{_WORD[actor.lang]} {words}")
        return await self._submit(actor, "sweep", task, chat=chat, serial=serial, options=order.data(), key=key)

    async def run(self, run_id: str) -> RunView | None:
        row = await Runs(self._db).get(run_id)
        if row is None:
            return None
        view = await self._run_view(row)
        if row.options.get("kind") == PLAN:
            return await plan_run(self._db, view, await self._book())
        if row.options.get("kind") != KIND:
            return view
        sweep = await sweep_view(self._db, row)
        return replace(view, sweep=sweep, status=_status(view.status, sweep))


async def check_tags(db: Database, order: SweepOrder) -> None:
    """BadRequest where a tag was written that no contact has: such a sweep would find nobody for ever."""
    if unknown := await unknown_tags(db, order):
        error = no_tag(unknown)
        raise BadRequest(error.message, advice=error.advice, key=error.key, **error.values)


def _status(status: RunStatus, sweep: SweepView) -> RunStatus:
    """A sweep that waits for its contacts is under way, as long as they do not all wait for people."""
    at_work = any(one.state in ("waiting", "answering") for one in sweep.contacts)
    return RunStatus.RUNNING if status is RunStatus.WAITING and at_work else status


async def sweep_view(db: Database, row: RunRow) -> SweepView:
    sweeps = Sweeps(db)
    looked = await sweeps.get(row.id)
    swept = await sweeps.runs(row.id)
    contacts = tuple([await _contact(db, one) for one in swept])
    return SweepView(
        looked.contacts if looked is not None else None,
        contacts,
        looked.details if looked is not None else {},
        silent=not contacts and await _silent(db, row, looked),
    )


async def _contact(db: Database, one: Swept) -> SweptView:
    return SweptView(one.contact, await _state(db, one), one.texts, one.message, one.run_id)


async def _state(db: Database, one: Swept) -> SweptState:
    if one.status == SUCCEEDED and one.texts:
        return "answered"
    if one.error == WAITS_ELSEWHERE:
        return "elsewhere" if one.status == SUCCEEDED else "asked"
    if one.status == SUCCEEDED:
        return "nothing"
    if one.status in _OVER:
        return "quiet" if one.message == QUIET_HOURS else _OVER[one.status]
    asked = bool(await Questions(db).find(run_id=one.run_id, state="open", limit=1))
    if asked:
        return "asked"
    return "answering" if one.status == RUNNING else "waiting"


async def _silent(db: Database, row: RunRow, looked: SweepRow | None) -> bool:
    """A sweep that began by itself tells nobody of nothing, and of one and the same failure once."""
    if row.planned_at is None:  # a person wants to know
        return False
    if row.status == FAILED:
        before = await Runs(db).find(schedule_id=row.schedule_id, before=row.id, limit=1)
        return bool(before) and (before[0].status, before[0].message) == (FAILED, row.message)
    details: Mapping[str, Any] = looked.details if looked is not None else {}
    left = details.get("left") or ()
    news = any(why == "unnamed" for _, why in left) or any(why in NEWS for _, why in details.get("aside") or ())
    given_up = {name for name, why in left if why == "given_up"}
    return not news and not (given_up and given_up - await _given_up_before(db, row))


async def _given_up_before(db: Database, row: RunRow) -> set[str]:
    """Of whom the sweep before this one told that they were given up."""
    for before in await Runs(db).find(schedule_id=row.schedule_id, before=row.id, limit=RECENT):
        if (looked := await Sweeps(db).get(before.id)) is not None:
            return {name for name, why in looked.details.get("left") or () if why == "given_up"}
    return set()
