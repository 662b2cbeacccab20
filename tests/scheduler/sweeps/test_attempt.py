"""The attempt of a sweep on a virtual phone, by real adb, over a real database."""

from __future__ import annotations

from datetime import timedelta

import pytest

from agent_core.errors import CommandFailed, InputRejected
from agent_core.loop.defaults import FreeLease
from agent_core.perception.observer import TreeUse
from agent_core.perception.reader import ScreenReader
from agent_core.ports import MessageKey
from scheduler.runs.service import ASKED_SWEEP, SCHEDULE, SWEEP
from scheduler.sweeps.attempt import SweepEyes, in_quiet_hours, prepare, sweep_attempt
from scheduler.sweeps.order import QUIET_HOURS, read_order
from storage.contacts import Contacts, NewContact
from storage.engine import Database
from storage.history import History, HistoryFilter
from storage.ledger import StoredLedger
from storage.questions import Questions
from storage.runs import NewRun, RunRow, Runs
from storage.schedules import NewSchedule, Schedules
from storage.statistics import Statistics, TimeRange
from storage.sweeps import Sweeps
from tests.support.clock import Clock
from tests.support.lab import OCR, QQ, Lab, lab

BY_TREE = SweepEyes(ScreenReader(ocr=None, model=None))
LEASE = FreeLease()


async def at_work(db: Database, at: Lab, words: str = "未读", **values: object) -> RunRow:
    """A sweep whose attempt has begun."""
    options = {"lang": "en", **read_order(words).data()}
    new = NewRun(f"巡检 {words}", at.device.serial, options=options, **values)  # type: ignore[arg-type]
    run_id = await Runs(db).create(new)
    assert run_id is not None
    row = await Runs(db).begin_attempt(run_id, 1, serial=at.device.serial)
    assert row is not None
    return row


async def contacts(db: Database, row: RunRow) -> list[str]:
    return [one.contact for one in await Sweeps(db).runs(row.id)]


@pytest.mark.parametrize("tree", ["auto", "off"])
async def test_an_idle_sweep_costs_three_calls_at_most_whatever_the_number_of_contacts(
    db: Database, tree: TreeUse
) -> None:
    eyes = SweepEyes(ScreenReader(ocr=OCR if tree == "off" else None, model=None), tree)
    names = ["110", "小11", "老客户A"]
    for name in names:
        await Contacts(db).add(NewContact("qq", name, tags=["shop"]))
    async with lab() as at:
        for words, looked, most in (("#shop", 3, 99), ("#shop", 3, 2), ("110 无此人", 2, 2)):
            row = await at_work(db, at, words)
            assert (await sweep_attempt(db, row, at.device, eyes, LEASE)).status == "succeeded"
            swept = await Sweeps(db).get(row.id)
            assert swept is not None
            assert (swept.contacts, swept.started, swept.calls <= most) == (looked, 0, True)
            assert swept.details["quiet"] == (names if looked == 3 else ["110", "无此人"])
            assert swept.details["unknown"] == ([] if looked == 3 else ["无此人"])
        assert at.phone.report()["chats_opened"] == []


async def test_a_contact_whom_nobody_knows_is_told_once_and_again_if_there_is_another(
    db: Database, clock: Clock
) -> None:
    async with lab() as at:

        async def tick(words: str, *, by_hand: bool = False) -> str:
            clock.move(minutes=5)
            row = await at_work(db, at, words, schedule_id=7, planned_at=None if by_hand else clock.time)
            outcome = await sweep_attempt(db, row, at.device, BY_TREE, LEASE)
            await Runs(db).end_attempt(row.id, 1, status="succeeded", message=outcome.message)
            return outcome.message.partition(".")[0]

        assert await tick("110 nobody1") == "Not found: nobody1"
        assert await tick("110 nobody1") == ""
        assert await tick("nobody1 nobody2") == "Not found: nobody1, nobody2"
        assert await tick("nobody2") == ""
        assert await tick("nobody2", by_hand=True) == "Not found: nobody2"  # a person wants to know
        assert await tick("110") == ""
        assert await History(db).count(HistoryFilter(words="Not found")) == 3
        assert (await Statistics(db).swept(TimeRange(clock.time - timedelta(days=1), clock.time))).unknown == (
            "nobody1",
            "nobody2",
        )


async def test_whoever_has_an_open_question_is_left_for_it_and_not_called_quiet(db: Database) -> None:
    async with lab() as at:
        await sweep_attempt(db, await at_work(db, at, "11 110"), at.device, BY_TREE, LEASE)
        for number, (task, serial, contact) in enumerate(
            [
                ("QQ回复联系人110", at.device.serial, "110"),
                ("微信回复联系人小11", at.device.serial, "小11"),  # another app's
                ("QQ回复联系人小11", "another phone", "小11"),
            ]
        ):
            run_id = await Runs(db).create(NewRun(task, serial))
            assert run_id is not None
            payload = {"id": f"q{number}", "kind": "stuck", "text": "?", "data": {"contact": contact}}
            await Questions(db).ask(f"q{number}", run_id=run_id, kind="stuck", payload=payload)
        row = await at_work(db, at, "110 小11")
        assert (await sweep_attempt(db, row, at.device, BY_TREE, LEASE)).status == "succeeded"
        swept = await Sweeps(db).get(row.id)
        assert swept is not None
        assert (swept.details["left"], swept.details["quiet"]) == ([["110", "asked"]], ["小11"])
        assert (swept.details["questions"], swept.details["unknown"]) == ([["110", "q0"]], [])


async def test_whoever_was_left_by_a_stop_is_told_of_until_another_run_takes_them(db: Database, clock: Clock) -> None:
    async with lab() as at:
        await sweep_attempt(db, await at_work(db, at, "11 110"), at.device, BY_TREE, LEASE)
        run_id = await Runs(db).create(NewRun("QQ回复联系人110", at.device.serial))
        assert run_id is not None
        ledger = StoredLedger(db)
        row = await ledger.open(MessageKey(at.device.serial, "qq", "110", "f"), run_id=run_id, question="在吗")
        await Runs(db).request_stop(run_id, by="x")

        async def left(words: str) -> tuple[object, object]:
            sweep = await at_work(db, at, words)
            assert (await sweep_attempt(db, sweep, at.device, BY_TREE, LEASE)).status == "succeeded"
            swept = await Sweeps(db).get(sweep.id)
            assert swept is not None
            return [one for one in swept.details["left"] if one[1] == "stopped"], swept.details["quiet"]

        assert await left("110 小11") == ([["110", "stopped"]], ["小11"])
        assert await left("未读") == ([["110", "stopped"]], [])
        assert await left("小11") == ([], ["小11"])
        other = await Runs(db).create(NewRun("QQ回复联系人110", at.device.serial))
        assert other is not None
        assert await ledger.claim(row.id, other)
        assert await left("110 小11") == ([], ["110", "小11"])


async def test_open_questions_are_read_only_if_they_matter_and_their_runs_all_at_once(db: Database) -> None:
    async with lab() as at:
        await sweep_attempt(db, await at_work(db, at, "11 110"), at.device, BY_TREE, LEASE)

        async def reads(words: str) -> tuple[int, object]:
            row = await at_work(db, at, words)
            before = db.reads
            prepared = await prepare(db, row, at.device, BY_TREE, LEASE)
            return db.reads - before, prepared.sweep.details["questions"]

        everybody, _ = await reads("未读")
        named, _ = await reads("110")
        ids = [f"q{number}" for number in range(5)]
        for id_ in ids:
            run_id = await Runs(db).create(NewRun("QQ回复联系人110", at.device.serial))
            assert run_id is not None
            payload = {"id": id_, "kind": "stuck", "text": "?", "data": {"contact": "110"}}
            await Questions(db).ask(id_, run_id=run_id, kind="stuck", payload=payload)
        assert await reads("未读") == (everybody, [])
        assert await reads("110") == (named + 1, [["110", id_] for id_ in ids])
        assert named == everybody + 1  # the open questions


async def test_an_attempt_that_is_killed_and_repeated_starts_each_once(db: Database) -> None:
    async with lab() as at:
        at.phone.receive("老客户A", "在吗")
        row = await at_work(db, at)
        await prepare(db, row, at.device, BY_TREE, LEASE)  # killed between the look and its runs
        await Runs(db).interrupt_attempt(row.id, 1)
        second = await Runs(db).begin_attempt(row.id, 2, serial=at.device.serial)
        assert second is not None
        assert (await sweep_attempt(db, second, at.device, BY_TREE, LEASE)).status == "waiting"
        await Runs(db).interrupt_attempt(row.id, 2)  # killed between its runs and being told so
        third = await Runs(db).begin_attempt(row.id, 3, serial=at.device.serial)
        assert third is not None
        calls = at.device.round_trips
        assert (await sweep_attempt(db, third, at.device, BY_TREE, LEASE)).status == "waiting"
        assert (await contacts(db, row), at.device.round_trips) == (["11", "老客户A"], calls)
        runs = [await Runs(db).get(one.run_id) for one in await Sweeps(db).runs(row.id)]
        assert [(run.task, run.priority, run.options) for run in runs if run is not None] == [
            ("reply to contact 11 on QQ", ASKED_SWEEP, {"contact": "11", "lang": "en"}),
            ("reply to contact 老客户A on QQ", ASKED_SWEEP, {"contact": "老客户A", "lang": "en"}),
        ]


async def test_who_is_at_work_or_has_not_changed_is_not_begun_again(db: Database, clock: Clock) -> None:
    async with lab() as at:
        first = await at_work(db, at, schedule_id=7, planned_at=clock.time)
        await sweep_attempt(db, first, at.device, BY_TREE, LEASE)
        (child,) = await Sweeps(db).runs(first.id)

        async def next_sweep() -> list[str]:
            clock.move(minutes=5)
            row = await at_work(db, at, schedule_id=7, planned_at=clock.time)
            await sweep_attempt(db, row, at.device, BY_TREE, LEASE)
            newest[:] = [one.run_id for one in await Sweeps(db).runs(row.id)]
            return await contacts(db, row)

        async def done(run_id: str) -> None:
            await Runs(db).begin_attempt(run_id, 1, serial=at.device.serial)
            await Runs(db).save_session(run_id, "{}")
            await Runs(db).end_attempt(run_id, 1, status="succeeded")

        newest: list[str] = []
        assert await next_sweep() == []  # it is in the line
        await done(child.run_id)
        for _ in range(2):  # the mark stands: the same words may have been written again
            assert await next_sweep() == ["11"]
            await done(newest[0])
        assert await next_sweep() == []  # nothing was to be answered, and nothing has changed
        at.phone.receive("11", "还在吗？")
        assert await next_sweep() == ["11"]


@pytest.mark.parametrize("lost", ["quiet hours", "stopped", "killed"])
async def test_what_came_into_the_open_chat_is_not_lost_with_its_run(db: Database, clock: Clock, lost: str) -> None:
    async with lab() as at:
        await at.phone.launch(QQ)
        await at.open_chat_by_url()
        at.phone.receive("11", "那邮费呢？")  # read by the app, by no person
        row = await at_work(db, at, planned_at=clock.time)
        if lost == "quiet hours":
            await sweep_attempt(db, row, at.device, BY_TREE, LEASE)
            (one,) = await Sweeps(db).runs(row.id)
            await Runs(db).end_attempt(one.run_id, 1, status="stopped", message=QUIET_HOURS)
        else:
            await prepare(db, row, at.device, BY_TREE, LEASE)  # nothing of it is stored
            await Runs(db).end_attempt(row.id, 1, status="stopped" if lost == "stopped" else "failed")
        clock.move(minutes=5)
        at.phone.receive("老客户A", "在吗")  # the list is read anew, and 11 has nothing unread there
        other = await at_work(db, at, "110", planned_at=clock.time)  # is about somebody else
        assert (await sweep_attempt(db, other, at.device, BY_TREE, LEASE)).status == "succeeded"
        clock.move(minutes=5)
        row = await at_work(db, at, planned_at=clock.time)
        await sweep_attempt(db, row, at.device, BY_TREE, LEASE)
        assert await contacts(db, row) == ["11", "老客户A"]


async def test_who_was_looked_into_before_is_no_group_whatever_they_write(db: Database, clock: Clock) -> None:
    async with lab() as at:
        for text in ("在吗", "小王：他要的那款"):
            at.phone.receive("老客户A", text)
            row = await at_work(db, at, planned_at=clock.time)
            await sweep_attempt(db, row, at.device, BY_TREE, LEASE)
            for one in await Sweeps(db).runs(row.id):
                await Runs(db).end_attempt(one.run_id, 1, status="succeeded")
            clock.move(minutes=5)
        assert "老客户A" in await contacts(db, row)


async def test_in_the_quiet_hours_nothing_is_begun(db: Database, clock: Clock) -> None:
    schedule = await Schedules(db).add(
        NewSchedule("every 5m", "UTC", "巡检", kind="sweep", serial="P1", quiet="22:00-07:00")
    )
    async with lab() as at:
        row = await at_work(db, at, schedule_id=schedule.id, planned_at=clock.time)
        await sweep_attempt(db, row, at.device, BY_TREE, LEASE)
        (child,) = [await Runs(db).get(one.run_id) for one in await Sweeps(db).runs(row.id)]
        assert child is not None
        assert child.priority == SWEEP < SCHEDULE < ASKED_SWEEP
        assert not await in_quiet_hours(db, child, clock.time)
        clock.time = clock.time.replace(hour=22)
        assert await in_quiet_hours(db, child, clock.time)
        late = await at_work(db, at, schedule_id=schedule.id, planned_at=clock.time)
        calls = at.device.round_trips
        outcome = await sweep_attempt(db, late, at.device, BY_TREE, LEASE)
        assert (outcome.status, outcome.message, at.device.round_trips) == ("succeeded", QUIET_HOURS, calls)
        by_hand = await at_work(db, at, schedule_id=schedule.id)
        assert (await sweep_attempt(db, by_hand, at.device, BY_TREE, LEASE)).message == ""
        assert at.device.round_trips > calls


async def test_a_tag_that_nobody_has_any_more_is_said(db: Database) -> None:
    async with lab() as at:
        with pytest.raises(InputRejected, match="#viip"):
            await prepare(db, await at_work(db, at, "#viip"), at.device, BY_TREE, LEASE)


async def test_a_list_that_cannot_be_had_or_read_is_said(db: Database) -> None:
    async with lab() as at:
        blind = SweepEyes(ScreenReader(ocr=None, model=None), "off")
        await at.open_chat()  # its notification is gone
        at.phone.set_fault("not_logged_in")
        with pytest.raises(CommandFailed, match="list of chats"):
            await prepare(db, await at_work(db, at), at.device, BY_TREE, LEASE)
        at.phone.set_fault("not_logged_in", False)
        named = await prepare(db, await at_work(db, at, "110"), at.device, blind, LEASE)
        assert [one.contact for one in named.start] == ["110"]  # looked into by a run of its own
