"""Statistics, digests and what alerts watch, over both engines."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from agent_core.ports import AnswerEvent, ReplyState
from storage.answers import Answers
from storage.digests import EMPTY, SENT, Digests
from storage.engine import Database
from storage.events import Events
from storage.outages import Outages
from storage.questions import Questions
from storage.runs import NewRun, Runs
from storage.statistics import ModelUsage, Statistics, TimeRange, UsageFigures
from tests.support.clock import Clock

AFTER, GAP = timedelta(minutes=5), timedelta(minutes=30)


async def a_run(db: Database, serial: str = "S1") -> str:
    run_id = await Runs(db).create(NewRun("QQ回复联系人11", serial))
    assert run_id is not None
    return run_id


def span(clock: Clock, *serials: str) -> TimeRange:
    return TimeRange(clock.time - timedelta(days=1), clock.time, serials)


async def test_usage_and_failures_by_day(db: Database, clock: Clock) -> None:
    first, second = await a_run(db), await a_run(db, "S2")
    begins, log = [clock.time, clock.time + timedelta(days=1), clock.time + timedelta(days=2)], Events(db)
    for hours, run, tokens in ((0, first, 10), (23, second, 5), (24, first, 3), (71, first, 1), (72, first, 100)):
        clock.time = begins[0] + timedelta(hours=hours)
        await log.append(run, "step", {"tokens_in": tokens, "tokens_out": 0})
        await log.append(run, "outcome", {"status": "failed", "error_kind": "model.timeout" if hours else ""})
        await log.append(run, "outcome", {"status": "succeeded", "error_kind": "device.offline"})
    time = TimeRange(begins[0], begins[0] + timedelta(days=3))
    assert [each.tokens_in for each in await Statistics(db).usage_from(time, begins)] == [15, 3, 1]
    assert await Statistics(db).failures(time) == [("model.timeout", 2), ("", 1)], "a run counts once for each kind"
    mine = TimeRange(time.since, time.until, ["S2"])
    assert [each.calls for each in await Statistics(db).usage_from(mine, begins)] == [1, 0, 0]
    assert await Statistics(db).failures(mine) == [("model.timeout", 1)]


async def test_questions_of_a_time_and_of_some_phones(db: Database, clock: Clock) -> None:
    first, second = await a_run(db), await a_run(db, "S2")
    since = clock.time
    for number, (run, state, provenance, person) in enumerate(
        [(first, ReplyState.SENT, "knowledge", ""), (first, ReplyState.SENT, "knowledge", "Anna"),
         (second, ReplyState.SENT, "person", "Anna"), (second, ReplyState.SKIPPED, "", "")], start=1
    ):  # fmt: skip
        planned = AnswerEvent(number, "qq", "11", f"问题{number}", ReplyState.PLANNED)
        await Answers(db).tell(run, planned)
        clock.move(seconds=30)
        told = AnswerEvent(number, "qq", "11", f"问题{number}", state, provenance=provenance, person=person, sent="答")
        await Answers(db).tell(run, told)
    until = clock.time
    rows = await Statistics(db).asked(TimeRange(since, until))
    assert [(row.question, row.state, row.by_person) for row in rows] == [
        ("问题1", "sent", False), ("问题2", "sent", True), ("问题3", "sent", True), ("问题4", "skipped", False)
    ]  # fmt: skip
    assert [row.changed_at - row.asked_at for row in rows] == [timedelta(seconds=30)] * 4
    assert [row.question for row in await Statistics(db).asked(TimeRange(since, until, ["S2"]))] == ["问题3", "问题4"]
    assert [row.question for row in await Statistics(db).asked(TimeRange(since, rows[1].asked_at))] == ["问题1"]
    assert await Statistics(db).asked(TimeRange(until, until + timedelta(days=1))) == []


async def test_what_was_put_to_people_and_what_the_model_used(db: Database, clock: Clock) -> None:
    first, second = await a_run(db), await a_run(db, "S2")
    for run in (first, second, second):
        await Questions(db).ask(f"q{clock.time}", run_id=run, kind="interact", payload={})
        step = {"tokens_in": 1000, "tokens_out": 50, "timings": {"first_token": 0.4}}
        await Events(db).append(run, "step", step)
        clock.move(seconds=1)
    await Events(db).append(first, "step", {"tokens_in": 0, "tokens_out": 0, "timings": {"first_token": 0.1}})
    await Events(db).append(first, "step", {"tokens_in": 0, "tokens_out": 0, "timings": {"act": 0.1}})
    await Events(db).append(first, "step", {})
    await Events(db).append(first, "note", {"tokens_in": 7})
    clock.move(seconds=1)
    assert await Statistics(db).put_to_people(span(clock)) == 3
    assert await Statistics(db).put_to_people(span(clock, "S2")) == 2
    assert await Statistics(db).usage(span(clock)) == UsageFigures((ModelUsage("", 4, 3000, 150, 0, None),))
    assert await Statistics(db).usage(span(clock, "S2")) == UsageFigures((ModelUsage("", 2, 2000, 100, 0, None),))
    named = {"model": "m", "tokens_in": 10, "tokens_out": 1, "tokens_cached": 4}
    await Events(db).append(first, "step", {**named, "cost": 0.5})
    await Events(db).append(first, "step", {**named, "cost": 0.25})
    await Events(db).append(first, "step", {**named, "cost": None})
    clock.move(seconds=1)
    found = await Statistics(db).usage(span(clock, "S1"))
    assert {(one.model, one.calls, one.tokens_in, one.tokens_cached, one.cost) for one in found.models} == {
        ("", 2, 1000, 0, None), ("m", 2, 20, 8, 0.75), ("m", 1, 10, 4, None)
    }  # fmt: skip
    clock.move(days=2)
    assert await Statistics(db).usage(span(clock)) == UsageFigures()


async def test_of_all_who_try_one_sends_a_digest(db: Database, other_db: Database, clock: Clock) -> None:
    told = {"kind": "daily", "since": "x"}
    both = (Digests(db), Digests(other_db))
    taken = await asyncio.gather(
        *(each.take("telegram:7", "daily", clock.time, state=SENT, told=told) for each in both)
    )
    assert sorted(taken) == [False, True]
    (event,) = await Events(db).after(0)
    assert (event.kind, event.run_id, event.data) == ("digest", "", told)
    assert await Digests(db).is_out("telegram:7", "daily", clock.time)
    assert await Digests(db).is_out("telegram:7", "daily", clock.time - timedelta(days=1))  # a later one is out
    assert not await Digests(db).is_out("telegram:7", "daily", clock.time + timedelta(days=1))
    assert not await Digests(db).is_out("telegram:7", "weekly", clock.time)
    assert not await Digests(db).is_out("telegram:8", "daily", clock.time)
    assert await Digests(db).take("telegram:8", "daily", clock.time, state=EMPTY)
    assert len(await Events(db).after(0)) == 1


async def test_a_chat_says_what_it_wants(db: Database) -> None:
    log = Digests(db)
    chat = {"channel": "telegram", "chat_id": "-7", "thread_id": "5", "kind": "group"}
    await log.set_chat("telegram:-7", chat, daily=True, weekly=False, person_id=1)
    await log.set_chat("telegram:-7", chat, daily=False, weekly=True, person_id=2)
    (row,) = await log.chats()
    assert (row.chat, row.daily, row.weekly, row.person_id) == (chat, False, True, 2)
    assert await log.chat("telegram:-7") == row
    assert await log.chat("telegram:-8") is None


class Outage:
    """What happens to one subject, and what people were told of it."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self.db, self.clock, self.watched = db, clock, Outages(db)

    async def down(self, why: str = "no answer") -> bool:
        return await self.watched.down("model", why, after=AFTER, gap=GAP)

    async def told(self) -> list[tuple[str, float | None]]:
        events = [event for event in await Events(self.db).after(0) if event.kind == "alert"]
        return [(event.data["state"], event.data.get("seconds")) for event in events]


@pytest.fixture
def outage(db: Database, clock: Clock) -> Outage:
    return Outage(db, clock)


async def test_told_once_after_a_while_and_once_when_back(outage: Outage, other_db: Database, clock: Clock) -> None:
    assert not await outage.watched.up("model")
    assert not await outage.down()
    clock.move(minutes=4)
    assert not await outage.down()
    clock.move(minutes=1)
    both = (outage.watched, Outages(other_db))
    assert sorted(await asyncio.gather(*(each.down("model", "x", after=AFTER, gap=GAP) for each in both))) == [
        False,
        True,
    ]
    clock.move(hours=3)
    assert not await outage.down()  # also after a restart, however long it took: people know
    assert await outage.watched.up("model")
    assert not await outage.watched.up("model")
    assert await outage.told() == [("down", None), ("up", 3 * 3600 + 300.0)]


async def test_a_short_one_is_not_told(outage: Outage, clock: Clock) -> None:
    for _ in range(3):
        await outage.down()
        clock.move(minutes=4)
        assert not await outage.watched.up("model")
    assert await outage.told() == []


async def test_a_time_in_which_nobody_looked_does_not_count(outage: Outage, clock: Clock) -> None:
    await outage.down()
    clock.move(hours=9)  # the server was off
    assert not await outage.down()
    clock.move(minutes=5)
    assert await outage.down()
    assert await outage.watched.up("model")
    assert await outage.told() == [("down", None), ("up", 300.0)]


async def test_what_runs_have_shown(db: Database, clock: Clock) -> None:
    watched = Outages(db)
    assert await Events(db).newest() == 0
    run = await a_run(db)
    start = await Events(db).newest()
    await Events(db).append(run, "step", {"timings": {"first_token": 0.2}})
    await Events(db).append(run, "step", {"timings": {"act": 0.2}})
    await Events(db).append(run, "outcome", {"status": "succeeded"})
    clock.move(seconds=5)
    await Events(db).append(run, "outcome", {"status": "failed", "error_kind": "model.quota"})
    signs = await watched.signs(start)
    assert [(sign.error_kind, sign.at) for sign in signs] == [
        ("", clock.time - timedelta(seconds=5)),
        ("model.quota", clock.time),
    ]
    assert await watched.signs(signs[-1].event_id) == []
