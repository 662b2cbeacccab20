from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from zoneinfo import ZoneInfo

import pytest

from agent_core.loop.tasks import TaskRules
from agent_core.session import Elsewhere, Session, Status
from bot.desk.actors import BadRequest, ChatRef, NotFound, Role
from bot.desk.schedules_views import WEEK, RegularChange, RegularTimes, ScheduleWish
from bot.desk.views import RunStatus
from scheduler.clock import Clock
from scheduler.times import parse_schedule
from scheduler.times.natural import understand
from storage.people import Audit
from storage.runs import Runs
from tests.support.shop import CHAT, PHONE, Shop

TASK = "QQ回复联系人11"


async def test_a_new_schedule_shows_its_next_three_times(shop: Shop) -> None:
    owner = await shop.person(Role.OWNER)
    view = await shop.desk.schedules.add(owner, "*/5 9-18 * * 1-5", TASK, chat=CHAT)
    assert (view.expression, view.task, view.chat, view.paused) == ("*/5 9-18 * * 1-5", TASK, CHAT, False)
    shanghai = [moment.strftime("%a %H:%M %z") for moment in view.next_times]  # now is Sunday, 17:00 there
    assert shanghai == ["Mon 09:00 +0800", "Mon 09:05 +0800", "Mon 09:10 +0800"]
    assert await shop.desk.schedules.all(owner) == [view]


async def test_once(shop: Shop) -> None:
    owner = await shop.person(Role.OWNER)
    local = shop.clock.time.astimezone(ZoneInfo("Asia/Shanghai"))
    coming = (local + timedelta(hours=1)).strftime("at %Y-%m-%d %H:%M")
    over = (local - timedelta(minutes=1)).strftime("at %Y-%m-%d %H:%M")
    assert len((await shop.desk.schedules.add(owner, coming, TASK, chat=None)).next_times) == 1
    with pytest.raises(BadRequest, match="over"):
        await shop.desk.schedules.add(owner, over, TASK, chat=None)


@pytest.mark.parametrize("expression", ["", "every", "every 5s", "60 * * * *", "* * *", "0 0 30 2 *", "at 25:00"])
async def test_what_cannot_be_read_says_why(shop: Shop, expression: str) -> None:
    owner = await shop.person(Role.OWNER)
    with pytest.raises(BadRequest) as caught:
        await shop.desk.schedules.add(owner, expression, TASK, chat=CHAT)
    assert caught.value.message
    assert await shop.desk.schedules.all(owner) == []


async def test_the_same_request_makes_one(shop: Shop) -> None:
    owner = await shop.person(Role.OWNER)
    first = await shop.desk.schedules.add(owner, "every 5m", TASK, chat=CHAT, key="m1")
    assert (await shop.desk.schedules.add(owner, "every 5m", TASK, chat=CHAT, key="m1")).id == first.id
    assert len(await shop.desk.schedules.all(owner)) == 1


async def test_the_same_schedule_twice_is_refused(shop: Shop) -> None:
    owner = await shop.person(Role.OWNER)
    first = await shop.desk.schedules.add(owner, "every 5m", TASK, chat=CHAT, key="m1")
    with pytest.raises(BadRequest, match=f"Schedule {first.id} does the same"):
        await shop.desk.schedules.add(owner, "every 5m", TASK, chat=CHAT, key="m2")
    await shop.desk.schedules.add(owner, "every 5m", "QQ回复联系人12", chat=CHAT, key="m3")
    await shop.desk.schedules.remove(owner, first.id)
    assert await shop.desk.schedules.add(owner, "every 5m", TASK, chat=CHAT, key="m4")


async def test_a_watch_for_a_tag_that_nobody_has_is_refused(shop: Shop) -> None:
    owner = await shop.person(Role.OWNER)
    with pytest.raises(BadRequest, match="No contact has the tag #vip"):
        await shop.desk.schedules.add(owner, "", "盯着 #vip", chat=CHAT)


async def test_pause_resume_remove(shop: Shop) -> None:
    owner = await shop.person(Role.OWNER)
    number = (await shop.desk.schedules.add(owner, "every 5m", TASK, chat=CHAT)).id
    assert (await shop.desk.schedules.pause(owner, f" #{number} ")).paused
    assert [view.paused for view in await shop.desk.schedules.all(owner)] == [True]
    assert not (await shop.desk.schedules.resume(owner, number)).paused
    assert (await shop.desk.schedules.remove(owner, number)).id == number
    assert await shop.desk.schedules.all(owner) == []


@pytest.mark.parametrize("number", ["2", "x", "", "-1", "1.0", "²", "9" * 30])
async def test_a_number_that_is_none(shop: Shop, number: str) -> None:
    owner = await shop.person(Role.OWNER)
    await shop.desk.schedules.add(owner, "every 5m", TASK, chat=CHAT)
    for call in (shop.desk.schedules.pause, shop.desk.schedules.resume, shop.desk.schedules.remove):
        with pytest.raises(NotFound):
            await call(owner, number)


async def test_what_is_added_outside_any_chat_is_told_to_the_first_owner(shop: Shop) -> None:
    await shop.person(Role.OPERATOR)
    first, second = await shop.person(Role.OWNER), await shop.person(Role.OWNER)
    view = await shop.desk.schedules.add(second, "every 5m", TASK, chat=None)
    assert view.chat == ChatRef("telegram", first.user_id)


async def test_edit_changes_what_is_given_and_nothing_else(shop: Shop) -> None:
    owner = await shop.person(Role.OWNER)
    rules = TaskRules("careful", ("设置", "微信"))
    first = await shop.desk.schedules.add(owner, "每天9点", "打开设置", chat=CHAT, rules=rules)
    again = await shop.desk.schedules.edit(owner, first.id, wish=ScheduleWish(quiet="22:00-7:00", missed="catch_up"))
    assert again == replace(first, quiet="22:00-07:00", missed="catch_up")
    other = await shop.desk.schedules.edit(
        owner, first.id, expression="every 5m", task="打开微信", wish=ScheduleWish(PHONE)
    )
    assert (other.expression, other.means, other.task, other.rules) == ("every 5m", "every 5m", "打开微信", rules)
    assert (other.serial, other.quiet, other.chat) == (PHONE, "22:00-07:00", CHAT)
    with pytest.raises(BadRequest):
        await shop.desk.schedules.edit(owner, first.id, expression="every x")
    assert (await shop.desk.schedules.get(owner, first.id)).expression == "every 5m"


async def test_what_was_meant_by_tomorrow_stays(shop: Shop) -> None:
    """Counted from the day when it was said; in another time zone it is the same time of the same day."""
    owner = await shop.person(Role.OWNER)
    first = await shop.desk.schedules.add(owner, "明天9点", TASK, chat=CHAT)
    shop.clock.move(hours=3)
    view = await shop.desk.schedules.edit(owner, first.id, wish=ScheduleWish(timezone="Europe/Berlin"))
    assert (view.expression, view.means, view.elsewhere) == ("明天9点", "at 2026-03-02 09:00", True)
    assert [moment.isoformat() for moment in view.next_times] == ["2026-03-02T09:00:00+01:00"]


async def test_other_times_are_not_missed_ones(shop: Shop) -> None:
    owner = await shop.person(Role.OWNER)
    view = await shop.desk.schedules.add(owner, "@yearly", TASK, chat=CHAT)
    shop.clock.move(days=3)
    await shop.desk.schedules.edit(owner, view.id, expression="every 5m")
    await Clock(shop.db).look()
    assert (await shop.desk.schedules.get(owner, view.id)).skipped_missed == 0


async def test_what_was_removed_can_be_put_back_for_a_week(shop: Shop) -> None:
    owner = await shop.person(Role.OWNER)
    numbers = [(await shop.desk.schedules.add(owner, "every 5m", f"QQ回复联系人{n}", chat=CHAT)).id for n in (11, 12)]
    await shop.desk.schedules.remove(owner, numbers[0])
    shop.clock.move(days=6)
    assert (await shop.desk.schedules.undo(owner, numbers[0])).skipped_missed == 0
    await Clock(shop.db).look()
    assert (await shop.desk.schedules.get(owner, numbers[0])).skipped_missed == 0, "while it was gone nothing was due"
    await shop.desk.schedules.remove(owner, numbers[1])
    shop.clock.move(days=8)
    with pytest.raises(BadRequest):
        await shop.desk.schedules.undo(owner, numbers[1])


async def test_the_newest_edit_is_undone_by_who_made_it_unless_it_was_changed_since(shop: Shop) -> None:
    edit, undo = shop.desk.schedules.edit, shop.desk.schedules.undo
    owner, other = await shop.person(Role.OWNER), await shop.person(Role.OWNER)
    first = await shop.desk.schedules.add(owner, "明天9点", TASK, chat=CHAT)
    second = await shop.desk.schedules.add(owner, "every 5m", TASK, chat=CHAT)
    await edit(owner, f"#{first.id}", expression="后天9点", wish=ScheduleWish(quiet="22:00-07:00"))
    await edit(owner, first.id, wish=ScheduleWish(quiet="22:00-07:00"))  # it is so already: nothing to undo
    await edit(other, first.id, task="打开设置")  # something else
    shop.clock.move(days=1)
    back = await undo(owner, first.id)
    assert (back.task, back.means, back.quiet) == ("打开设置", first.means, ""), "counted from when it was said"
    with pytest.raises(BadRequest, match="changed since"):
        await undo(owner, first.id)
    await edit(owner, second.id, wish=ScheduleWish(PHONE))
    await edit(other, second.id, wish=ScheduleWish(""))
    with pytest.raises(BadRequest, match="changed since"):
        await undo(owner, second.id)
    with pytest.raises(BadRequest, match="nothing to undo"):
        await undo(owner, first.id)  # the newest was of another one
    written = (await Audit(shop.db).done_by(other.id, ["schedule edit"]))[-1]
    assert written.detail == {
        "schedule": first.id,
        "before": {"task": TASK, "kind": "sweep"},
        "after": {"task": "打开设置", "kind": "run"},
    }


async def test_no_two_schedules_become_the_same(shop: Shop) -> None:
    owner = await shop.person(Role.OWNER)
    first = await shop.desk.schedules.add(owner, "every 5m", TASK, chat=CHAT)
    second = await shop.desk.schedules.add(owner, "every 6m", TASK, chat=CHAT)
    with pytest.raises(BadRequest) as refused:
        await shop.desk.schedules.edit(owner, second.id, expression="每5分钟")
    assert (refused.value.key, refused.value.values["number"]) == ("schedule_there", int(first.id))
    assert (await shop.desk.schedules.get(owner, second.id)).means == "every 6m"


async def test_next_times_are_those_of_the_schedule_s_zone(shop: Shop) -> None:
    owner = await shop.person(Role.OWNER)
    coming = await shop.desk.schedules.next_times(owner, "daily at 9", timezone="Europe/Berlin")
    assert {moment.isoformat()[10:] for moment in coming} == {"T09:00:00+01:00"}
    with pytest.raises(BadRequest):
        await shop.desk.schedules.next_times(owner, "daily at 9", timezone="Moon")


async def test_run_now_twice_under_one_key_is_one_run(shop: Shop) -> None:
    owner, operator = await shop.person(Role.OWNER), await shop.person(Role.OPERATOR)
    view = await shop.desk.schedules.add(owner, "每天9点", TASK, chat=CHAT, wish=ScheduleWish(PHONE))
    runs = [await shop.desk.schedules.run(operator, f"#{view.id}", chat=CHAT, key="m7") for _ in range(2)]
    assert runs[0].id == runs[1].id
    assert (runs[0].task, runs[0].serial, runs[0].by) == (TASK, PHONE, operator.name)
    last = (await shop.desk.schedules.get(owner, view.id)).last
    assert last is not None
    assert (last.what, last.run_id, last.status) == ("by_hand", runs[0].id, RunStatus.QUEUED)
    await Runs(shop.db).begin_attempt(runs[0].id, 1, serial=PHONE)
    left = Session(run_id=runs[0].id, task=TASK, status=Status.FAILED, elsewhere=Elsewhere(run_id="older"))
    await Runs(shop.db).save_session(runs[0].id, left.model_dump_json())
    await Runs(shop.db).end_attempt(runs[0].id, 1, status="failed")
    last = (await shop.desk.schedules.get(owner, view.id)).last
    assert last is not None
    assert last.status is RunStatus.WAITING  # for a person, whom the older run has asked


NOW = datetime(2026, 3, 2, 0, 30, tzinfo=UTC)  # a Monday, 8:30 in Shanghai
ZONE = "Asia/Shanghai"


def test_parts_become_an_expression_and_the_same_parts_again() -> None:
    hours = [("", ""), ("09:00", "18:00"), ("20:00", "02:00"), ("09:00", "00:00")]
    for minutes, (start, end), days in product((5, 90, 120), hours, (WEEK, (1,), (6, 7))):
        times = RegularTimes(minutes, start, end, days)
        assert RegularTimes.of(understand(times.expression, ZONE, NOW)) == times


def test_they_mean_what_was_chosen() -> None:
    coming = parse_schedule(RegularTimes(90, "09:00", "12:30", (3, 1, 1)).expression, ZONE).next(NOW, 4)
    said = [f"{time.astimezone(ZoneInfo(ZONE)):%m-%d %H:%M}" for time in coming]
    assert said == ["03-02 09:00", "03-02 10:30", "03-02 12:00", "03-04 09:00"]


@pytest.mark.parametrize(
    ("times", "key"),
    [
        (RegularTimes(5, "09:00"), "regular_hours"),
        (RegularTimes(5, end="09:00"), "regular_hours"),
        (RegularTimes(5, "09:00", "09:00"), "regular_hours"),
        (RegularTimes(5, days=()), "regular_days"),
    ],
)
def test_parts_that_are_no_times_are_refused(times: RegularTimes, key: str) -> None:
    with pytest.raises(BadRequest) as refused:
        _ = times.expression
    assert refused.value.key == key


@pytest.mark.parametrize("expression", ["0 9 * * *", "every 30s", "every 5m | every 1h", "每5分钟", ""])
def test_other_times_have_no_parts(expression: str) -> None:
    assert RegularTimes.of(expression) is None


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        ("every 5m 09:00-18:00 * * 1-3,7", RegularChange(minutes=60), "every 1h 09:00-18:00 * * 1,2,3,7"),
        ("every 5m 09:00-18:00 * * 1-5", RegularChange(start="", end=""), "every 5m 00:00-24:00 * * 1,2,3,4,5"),
        ("every 5m 09:00-18:00 * * 1-5", RegularChange(days=WEEK), "every 5m 09:00-18:00"),
        ("every 5m 09:00-18:00 * * 1-5", RegularChange(5, "09:00", "18:00", (1, 2, 3, 4, 5)), None),
        ("0 9 * * *", RegularChange(minutes=5), "every 5m"),
    ],
)
def test_what_a_change_does_not_name_stays(before: str, change: RegularChange, after: str | None) -> None:
    assert change.of(before) == after


def test_other_times_get_regular_ones_only_if_it_is_said_how_often() -> None:
    with pytest.raises(BadRequest) as refused:
        RegularChange(start="09:00", end="18:00").of("0 9 * * *")
    assert refused.value.key == "regular_every"
