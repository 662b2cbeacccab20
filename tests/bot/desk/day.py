"""A day at the desk: customers who ask, and what became of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from agent_core.ports import AnswerEvent, Event, ReplyState
from scheduler.runs.executor import StoredRuns
from storage.events import Events
from storage.runs import NewRun, Runs
from tests.support.shop import Shop

ZONE = ZoneInfo("Asia/Shanghai")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZONE)


class Day:
    """Customers who ask, and what became of it."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.count = 0
        self.runs: dict[str, str] = {}

    async def ask(
        self, when: str, question: str, state: str = "sent", *, by: str = "", took: float = 30, serial: str = "S1"
    ) -> None:
        if serial not in self.runs:
            made = await Runs(self.shop.db).create(NewRun("QQ回复联系人11", serial))
            assert made is not None
            self.runs[serial] = made
        self.count += 1
        store, clock = StoredRuns(self.shop.db), self.shop.clock
        event = AnswerEvent(self.count, "qq", "11", question, ReplyState.PLANNED)
        clock.time = at(when)
        await store.event(self.runs[serial], Event("answer", event.data()))
        if state != "planned":
            clock.move(seconds=took)
            told = replace(
                event, state=ReplyState(state), provenance="person" if by else "knowledge", person=by, sent="答"
            )
            await store.event(self.runs[serial], Event("answer", told.data()))

    async def think(self, when: str, tokens_in: int, tokens_out: int, serial: str = "S1", **more: object) -> None:
        self.shop.clock.time = at(when)
        data = {"tokens_in": tokens_in, "tokens_out": tokens_out, "timings": {"first_token": 0.2}, **more}
        await Events(self.shop.db).append(self.runs[serial], "step", data)


@pytest.fixture
async def day(shop: Shop) -> Day:
    made = Day(shop)
    await made.ask("2026-11-19 23:50", "几天发货", took=3600)
    await made.ask("2026-11-20 09:05", "几天能发货？", took=10)
    await made.ask("2026-11-20 09:40", "几天发货？", took=20)
    await made.ask("2026-11-20 10:00", "几天发货", by="Anna", took=600)
    await made.ask("2026-11-20 10:10", "能便宜点吗", "skipped", serial="S2")
    await made.ask("2026-11-20 10:20", "能便宜点吗！", "failed")
    await made.ask("2026-11-20 14:30", "在吗", "unknown")
    await made.ask("2026-11-20 14:50", "有货吗", "planned")
    await made.think("2026-11-20 09:05", 3000, 100)
    await made.think("2026-11-20 09:06", 2000, 100, "S2")
    shop.clock.time = at("2026-11-20 15:00")
    return made
