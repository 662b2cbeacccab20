"""Watches on a virtual phone, by real adb, over a real database. The time is passed in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from agent_core.devices.base import Notification
from agent_core.loop.defaults import FreeLease
from agent_core.perception.reader import ScreenReader
from agent_core.session import QuestionKind
from scheduler.sweeps.attempt import SweepEyes, sweep_attempt
from scheduler.sweeps.plan import ChosenContact
from scheduler.watches.looks import sweep_of
from scheduler.watches.watcher import PhoneWatch, Watcher, WatchTimes, watches_of
from storage.contacts import Contacts, NewContact
from storage.engine import Database
from storage.leases import Leases
from storage.questions import Questions
from storage.runs import NewRun, RunRow, Runs
from storage.schedules import NewSchedule, ScheduleRow, Schedules
from storage.sweeps import Sweeps, SweptApp
from tests.support.clock import Clock
from tests.support.lab import QQ, Lab, lab

TIMES = WatchTimes()
EYES = SweepEyes(ScreenReader(ocr=None, model=None))


@dataclass
class Watched:
    """A watched phone. What runs would do to it is not done: only whether they are started is looked at."""

    db: Database
    clock: Clock
    at: Lab
    watch: ScheduleRow
    watcher: PhoneWatch = field(init=False)
    now: float = 0.0

    async def begin(self) -> None:
        """As a process that has just started; the look at its beginning is had, and found nothing."""
        self.watcher = PhoneWatch(self.db, self.at.device, TIMES)
        await self.refresh()
        await self.look()
        for run in await self.runs("sweep"):
            await self.end(run)

    async def refresh(self) -> None:
        row = await Schedules(self.db).get(self.watch.id)
        await self.watcher.refresh([row] if row is not None and not row.paused else [])

    async def look(self, seconds: float = 0.0) -> float:
        self.now += seconds
        self.clock.move(seconds=seconds)
        return await self.watcher.look(self.now)

    async def runs(self, kind: str = "") -> list[RunRow]:
        found = await Runs(self.db).find(limit=100)
        return [run for run in reversed(found) if str(run.options.get("kind", "")) == kind]

    async def tasks(self) -> list[str]:
        return [run.task for run in await self.runs()]

    async def use(self) -> None:
        """Somebody takes the phone and gives it back."""
        leases = Leases(self.db)
        held = await leases.acquire(self.at.device.serial, "somebody")
        assert held is not None
        await leases.release(held)
        self.clock.move(seconds=0.1)

    async def sweep(self, run: RunRow) -> None:
        """The look is had."""
        row = await Runs(self.db).begin_attempt(run.id, run.attempt, serial=self.at.device.serial)
        assert row is not None
        await sweep_attempt(self.db, row, self.at.device, EYES, FreeLease())

    async def end(self, run: RunRow, status: str = "succeeded") -> None:
        if await Runs(self.db).begin_attempt(run.id, run.attempt, serial=self.at.device.serial) is not None:
            await Runs(self.db).save_session(run.id, "{}")
            await Runs(self.db).end_attempt(run.id, run.attempt, status=status)


@pytest.fixture
async def watched(db: Database, clock: Clock, request: pytest.FixtureRequest) -> AsyncIterator[Watched]:
    """11 and 小11 are watched, or who the parameter says; nobody has written anything that is not read."""
    whom, quiet = getattr(request, "param", ("11 小11", ""))
    async with lab() as at:
        await at.open_chat()  # which reads what 11 had written
        at.phone.go_home()
        new = NewSchedule("", "UTC", f"盯着 {whom}", kind="watch", serial=at.device.serial, quiet=quiet)
        made = Watched(db, clock, at, await Schedules(db).add(new))
        await made.begin()
        yield made


async def test_a_message_starts_a_run_once_they_have_stopped_typing(watched: Watched) -> None:
    for text in ("你好", "请问", "几天能发货？"):
        watched.at.phone.receive("11", text)
        assert await watched.look(1.0) == 2.0  # until they can be ready
        assert await watched.tasks() == []
    assert await watched.look(1.9) == pytest.approx(0.1)
    assert await watched.tasks() == []
    await watched.look(0.1)
    (run,) = await watched.runs()
    assert (run.task, run.serial, run.priority, run.schedule_id) == (
        "QQ回复联系人11", watched.at.device.serial, 6, watched.watch.id,
    )  # fmt: skip
    watched.at.phone.receive("11", "还有，能开发票吗？")  # while it is in the line: that run answers it
    for _ in range(3):
        await watched.look(2.0)
    assert len(await watched.runs()) == 1
    await watched.end(run)  # but it did not open the chat
    await watched.look(2.0)
    assert await watched.tasks() == ["QQ回复联系人11"] * 2
    row = await Schedules(watched.db).get(watched.watch.id)
    assert row is not None
    assert (row.started, row.last_what, row.last_run_id) == (3, "started", (await watched.runs())[-1].id)


async def test_a_restart_and_a_second_process_start_it_once(watched: Watched) -> None:
    watched.at.phone.receive("11", "几天能发货？")
    other = PhoneWatch(watched.db, watched.at.device, TIMES)
    await other.refresh([watched.watch])
    await other.look(0.0)
    for run in await watched.runs("sweep"):
        await watched.end(run)
    await watched.look()
    await asyncio.gather(watched.look(2.0), other.look(2.0))
    await watched.begin()  # killed, and started again, the notification still there
    await watched.look(2.0)
    (run,) = await watched.runs()
    await watched.end(run)
    await watched.begin()
    await watched.look(2.0)
    await watched.look(70.0)
    assert len(await watched.runs()) == 1


async def test_what_came_while_nothing_ran_is_seen_at_the_start(watched: Watched) -> None:
    watched.at.phone.receive("小11", "在吗？")
    await watched.begin()
    await watched.look(2.0)
    assert await watched.tasks() == ["QQ回复联系人小11"]


@pytest.mark.parametrize("watched", [("11", "22:00-07:00")], indirect=True)
async def test_in_the_quiet_hours_nothing_is_read_and_at_their_end_what_stands_is_taken_up(watched: Watched) -> None:
    watched.clock.time = watched.clock.time.replace(hour=23)
    watched.at.phone.receive("11", "几天能发货？")
    calls, before = watched.at.device.round_trips, len(await watched.runs("sweep"))
    for _ in range(3):
        await watched.look(2.0)
    assert (watched.at.device.round_trips, await watched.tasks()) == (calls, [])
    watched.clock.move(hours=8)
    await watched.look()
    looks = await watched.runs("sweep")
    assert len(looks) == before + 1
    await watched.end(looks[-1])
    await watched.look(2.0)
    assert await watched.tasks() == ["QQ回复联系人11"]


async def test_others_and_other_apps_are_left_alone(watched: Watched) -> None:
    phone = watched.at.phone
    phone.receive("110", "几天能发货？")
    for package in ("com.tencent.mobileqqi", "com.tencent.mm"):
        phone._notes[package] = Notification(package, "11", "几天能发货？", package)  # another app's, of the same title
    for _ in range(3):
        await watched.look(2.0)
    assert await watched.tasks() == []


@pytest.mark.parametrize("watched", [("#老客户", ""), ("所有", "")], indirect=True)
async def test_by_tag_or_everybody(watched: Watched) -> None:
    watched.at.phone.receive("110", "几天能发货？")
    watched.at.phone._notes["group"] = Notification(QQ, "配件交流群", "小王：谁有货？", "group")
    await watched.look(2.0)
    await watched.look(2.0)
    everybody = "所有" in watched.watch.task
    assert await watched.tasks() == (["QQ回复联系人110"] if everybody else [])
    await Contacts(watched.db).add(NewContact("qq", "小11", tags=["老客户"]))
    watched.at.phone.receive("小11", "几天能发货？")
    await watched.refresh()
    await watched.look(2.0)
    await watched.look(2.0)
    assert (await watched.tasks())[-1] == "QQ回复联系人小11"


async def test_where_previews_are_hidden_the_list_is_looked_at_once_a_change(watched: Watched) -> None:
    before = len(await watched.runs("sweep"))
    watched.at.phone.set_fault("hidden_previews")
    watched.at.phone.receive("11", "几天能发货？")
    for _ in range(4):
        await watched.look(2.0)
    looks = (await watched.runs("sweep"))[before:]
    assert [run.task for run in looks] == ["巡检 11 小11"]
    await watched.begin()
    await watched.look(2.0)
    assert len(await watched.runs("sweep")) == before + 1  # the one in the line is enough at the start of a process


async def test_the_same_words_again_are_a_new_message(watched: Watched) -> None:
    for count in (1, 2):
        watched.at.phone.receive("11", "在吗？")
        await watched.look(2.0)
        await watched.look(2.0)
        runs = await watched.runs()
        assert len(runs) == count
        await watched.end(runs[-1])


async def test_a_run_asked_for_by_a_person_is_not_doubled(watched: Watched) -> None:
    run_id = await Runs(watched.db).create(NewRun("QQ回复联系人11", watched.at.device.serial))
    watched.at.phone.receive("11", "几天能发货？")
    await watched.look(2.0)
    await watched.look(2.0)
    assert [run.id for run in await watched.runs()] == [run_id]


async def test_a_run_that_failed_is_tried_again_later_and_not_for_ever(watched: Watched) -> None:
    watched.at.phone.receive("11", "几天能发货？")
    for attempt in range(1, 5):
        await watched.look(2.0)
        await watched.look(2.0)
        runs = await watched.runs()
        assert len(runs) == min(attempt, 3)
        await watched.end(runs[-1], "failed")
        await watched.look(2.0)
        assert len(await watched.runs()) == len(runs)  # not at once
        watched.clock.move(seconds=60)
        watched.now += 60


async def test_after_each_use_of_the_phone_the_list_is_looked_at(watched: Watched) -> None:
    """What came into the open chat gave no notification."""
    at, leases, looks = watched.at, Leases(watched.db), len(await watched.runs("sweep"))
    await at.open_chat()
    at.phone.receive("11", "那能开发票吗？")
    held = await leases.acquire(at.device.serial, "somebody", "")
    assert held is not None
    await watched.look(2.0)
    assert len(await watched.runs("sweep")) == looks, "not while the phone is used"
    await leases.release(held)
    for _ in range(2):
        await watched.look(2.0)
    look = (await watched.runs("sweep"))[-1]
    assert len(await watched.runs("sweep")) == looks + 1, "nor twice"
    await watched.sweep(look)
    assert (await watched.runs())[-1].priority == 6
    assert await watched.tasks() == ["QQ回复联系人11"]
    for _ in range(20):
        await watched.look(2.0)
    assert len(await watched.runs("sweep")) == looks + 1, "nobody has used it since"


async def test_a_look_after_a_use_that_failed_or_was_stopped_is_owed_still(watched: Watched) -> None:
    looks = len(await watched.runs("sweep"))
    await watched.use()
    await watched.look(2.0)
    await watched.end((await watched.runs("sweep"))[-1], "stopped")
    await watched.use()  # its own attempt, too, had the phone
    await watched.look(2.0)
    assert len(await watched.runs("sweep")) == looks + 1, "not at once"
    await watched.look(30.0)
    assert len(await watched.runs("sweep")) == looks + 2


async def test_nobody_is_disturbed_who_has_the_phone_in_hand(watched: Watched) -> None:
    run_id = await Runs(watched.db).create(NewRun("打开设置", watched.at.device.serial))
    assert run_id is not None
    assert await Runs(watched.db).begin_attempt(run_id, 1, serial=watched.at.device.serial) is not None
    await watched.use()
    await Questions(watched.db).ask("q1", run_id=run_id, kind=QuestionKind.TAKE_OVER, payload={"text": "请登录"})
    looks = len(await watched.runs("sweep"))
    await watched.look(2.0)
    assert len(await watched.runs("sweep")) == looks
    await Questions(watched.db).answer("q1", {"choice": "done"}, by="店长")
    await watched.look(2.0)
    assert len(await watched.runs("sweep")) == looks + 1


async def test_a_sweep_of_others_far_back_in_the_line_hides_nobody(watched: Watched) -> None:
    await Runs(watched.db).create(NewRun("巡检 12", watched.at.device.serial, priority=-10, options={"kind": "sweep"}))
    watched.at.phone.receive("11", "几天能发货？")
    await watched.look(2.0)
    await watched.look(2.0)
    assert await watched.tasks() == ["QQ回复联系人11"]


async def test_looks_do_not_pile_up_while_a_phone_comes_and_goes(watched: Watched) -> None:
    looks = len(await watched.runs("sweep"))
    for _ in range(5):
        watched.clock.move(seconds=1)
        again = PhoneWatch(watched.db, watched.at.device, TIMES)
        await again.refresh([watched.watch])
        await again.look(0.0)
    assert len(await watched.runs("sweep")) == looks + 1


async def test_the_same_words_come_once_more_where_the_phone_tells_no_time(watched: Watched) -> None:
    place = SweptApp(watched.at.device.serial, "qq")
    for number, words in enumerate(("在吗？", "好的", "在吗？")):
        chosen = ChosenContact("11", words, 0)
        (watch,) = watched.watcher._watches.values()
        marks = await Sweeps(watched.db).marks(place)
        await watched.watcher._run(watch, place, chosen, marks.get("11"))
        runs = await watched.runs()
        assert len(runs) == number + 1, words
        await watched.end(runs[-1])


async def test_a_list_that_nothing_can_read_starts_nobody(watched: Watched) -> None:
    """Else each run would be followed by a look, which would start the next run."""
    blind = SweepEyes(ScreenReader(ocr=None, model=None), "off")
    serial = watched.at.device.serial
    run_id = await Runs(watched.db).create(sweep_of(watched.watch, serial))
    row = await Runs(watched.db).begin_attempt(run_id or "", 1, serial=serial)
    assert row is not None
    assert (await sweep_attempt(watched.db, row, watched.at.device, blind, FreeLease())).status == "succeeded"
    assert await watched.runs() == []


async def test_the_watcher_follows_only_phones_with_a_watch(watched: Watched) -> None:
    opened: list[str] = []

    async def device(serial: str) -> object:
        opened.append(serial)
        return watched.at.device

    serial = watched.at.device.serial
    phones = [serial, "S2"]
    full, looked = [True], asyncio.Event()

    async def limited() -> bool:
        looked.set()
        return full[0]

    times = WatchTimes(every=0.05, settle=0.05, refresh=0.05)
    watcher = Watcher(watched.db, lambda: phones, device, times, limited)  # type: ignore[arg-type]
    watched.clock.move(seconds=1)
    await watcher.start()
    try:
        for _ in range(2):  # models may be asked no more today: no phone is followed
            looked.clear()
            await looked.wait()
        assert opened == []
        full[0] = False
        while len(await watched.runs("sweep")) < 2:
            await watched.db.signal("runs").waiter().wait(5.0)
        assert opened == [serial]
        await Schedules(watched.db).pause(watched.watch.id, paused=True)
        assert await watches_of(watched.db, serial) == []
    finally:
        await watcher.stop()
