"""A shop in which something of everything has happened on one phone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from agent_core.ports import AnswerEvent, Event, ReplyState
from agent_core.session import Session
from bot.desk.desk import Desk
from knowledge.embedded import EmbeddedKnowledge
from scheduler.runs.executor import StoredRuns
from scheduler.runs.human import StoredHuman
from storage.engine import Database
from storage.runs import NewRun, Runs
from storage.schedules import NewSchedule, Schedules
from tests.support.clock import Clock
from tests.support.database import filled_sqlite
from tests.support.shop import PHONE, QUESTION, Shop, known, make_shop


@dataclass
class Busy:
    """A shop with something of everything on PHONE."""

    shop: Shop
    desk: Desk
    run_id: str
    answer_id: str


async def _work(db: Database) -> None:
    """Have a run on PHONE ask, and one of its answers be skipped, and a schedule be there."""
    await known(db)
    runs = Runs(db)
    run_id = await runs.create(NewRun("QQ回复联系人11", PHONE))
    assert run_id is not None
    await runs.begin_attempt(run_id, 1, serial=PHONE)
    await StoredHuman(db, hold_seconds=0).ask(Session(run_id=run_id, task="x"), QUESTION)
    await runs.park_attempt(run_id, 1)
    told = AnswerEvent(1, "qq", "11", "怎么退货", ReplyState.SKIPPED)
    await StoredRuns(db).event(run_id, Event("answer", told.data()))
    await Schedules(db).add(
        NewSchedule(expression="0 9 * * *", timezone="Asia/Shanghai", task="x", serial=PHONE, chat=None, options={})
    )


@asynccontextmanager
async def busy_shop(folder: Path) -> AsyncIterator[Busy]:
    clock = Clock()
    shop = make_shop(await filled_sqlite(folder / "busy.db", _work, clock), clock)
    store = EmbeddedKnowledge(shop.db)
    desk = Desk(replace(shop.desk.context, store=store))
    (row,) = await Runs(shop.db).find()
    yield Busy(shop, desk, row.id, "1")
    await store.close()
    await shop.db.close()
