"""Watches at the desk: schedules without times."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from structlog.testing import capture_logs

from bot.desk.actors import BadRequest, Role
from bot.desk.schedules_views import ScheduleWish
from scheduler.clock import Clock
from scheduler.sweeps.attempt import in_quiet_hours
from scheduler.watches.looks import sweep_of
from storage.contacts import Contacts, NewContact
from storage.runs import Runs
from storage.schedules import Schedules
from tests.support.shop import CHAT, PHONE, Shop

TASK = "盯着 11 #vip"
QUIET = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
async def _somebody_has_the_tag(shop: Shop) -> None:
    await Contacts(shop.db).add(NewContact("qq", "11", tags=("vip",)))


async def test_a_watch_has_no_times_and_the_clock_leaves_it_alone(shop: Shop) -> None:
    owner = await shop.person(Role.OWNER)
    view = await shop.desk.schedules.add(owner, "", TASK, chat=CHAT, wish=ScheduleWish(quiet="22:00-07:00"))
    assert (view.kind, view.task, view.expression, view.next_times) == ("watch", TASK, "", ())
    assert (view.quiet, view.chat) == ("22:00-07:00", CHAT)
    clock = Clock(shop.db)
    with capture_logs() as logged:
        await clock.look()
        shop.clock.move(hours=5)
        await clock.look()
    assert (await Runs(shop.db).find(), logged) == ([], [])
    assert (await shop.desk.schedules.pause(owner, view.id)).paused
    assert not (await shop.desk.schedules.resume(owner, view.id)).paused
    edited = await shop.desk.schedules.edit(owner, view.id, task="盯着 所有", wish=ScheduleWish(quiet=""))
    assert (edited.task, edited.quiet, edited.kind) == ("盯着 所有", "", "watch")
    await shop.desk.schedules.remove(owner, view.id)
    assert (await shop.desk.schedules.undo(owner, view.id)).kind == "watch"


@pytest.mark.parametrize(
    ("expression", "task", "wish", "key"),
    [
        ("every 5m", TASK, ScheduleWish(), "watch_no_time"),
        ("", TASK, ScheduleWish(missed="catch_up"), "watch_no_time"),
        ("", "盯着", ScheduleWish(), "watch_whom"),
        ("", "盯着 微信", ScheduleWish(), "watch_whom"),
    ],
)
async def test_what_goes_with_no_watch_is_refused(
    shop: Shop, expression: str, task: str, wish: ScheduleWish, key: str
) -> None:
    owner = await shop.person(Role.OWNER)
    with pytest.raises(BadRequest) as caught:
        await shop.desk.schedules.add(owner, expression, task, chat=CHAT, wish=wish)
    assert caught.value.key == key


async def test_a_watch_and_a_schedule_are_not_turned_into_each_other(shop: Shop) -> None:
    owner = await shop.person(Role.OWNER)
    watch = await shop.desk.schedules.add(owner, "", TASK, chat=CHAT)
    timed = await shop.desk.schedules.add(owner, "every 5m", "QQ回复联系人11", chat=CHAT)
    for number, task in ((watch.id, "QQ回复联系人11"), (timed.id, TASK)):
        with pytest.raises(BadRequest) as caught:
            await shop.desk.schedules.edit(owner, number, task=task)
        assert caught.value.key == "watch_stays"


async def test_run_at_once_is_a_sweep_of_those_who_are_watched(shop: Shop) -> None:
    owner = await shop.person(Role.OWNER)
    watch = await shop.desk.schedules.add(owner, "", TASK, chat=CHAT, wish=ScheduleWish(quiet="00:00-23:59"))
    run = await shop.desk.schedules.run(owner, watch.id, chat=CHAT)
    assert (run.task, run.sweep is not None) == ("sweep 11 #vip", True)
    asked = await Runs(shop.db).get(run.id)
    assert asked is not None
    assert not await in_quiet_hours(shop.db, asked, QUIET)
    row = await Schedules(shop.db).get(int(watch.id))
    assert row is not None
    mine = await Runs(shop.db).create(sweep_of(row, PHONE))
    by_itself = await Runs(shop.db).get(mine or "")
    assert by_itself is not None
    assert await in_quiet_hours(shop.db, by_itself, QUIET)
    shown = await shop.desk.runs.get(mine or "")
    assert shown is not None
    assert (shown.watch, shown.serial) == (True, PHONE)
