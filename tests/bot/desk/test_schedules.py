from __future__ import annotations

from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest

from bot.desk.actors import BadRequest, ChatRef, NotFound, Role
from tests.bot.desk.conftest import CHAT, Shop

TASK = "QQ回复联系人11"


async def test_a_new_schedule_shows_its_next_three_times(shop: Shop) -> None:
    owner = await shop.person(Role.OWNER)
    view = await shop.desk.add_schedule(owner, "*/5 9-18 * * 1-5", TASK, chat=CHAT)
    assert (view.expression, view.task, view.chat, view.paused) == ("*/5 9-18 * * 1-5", TASK, CHAT, False)
    shanghai = [moment.strftime("%a %H:%M %z") for moment in view.next_times]  # now is Sunday, 17:00 there
    assert shanghai == ["Mon 09:00 +0800", "Mon 09:05 +0800", "Mon 09:10 +0800"]
    assert await shop.desk.list_schedules(owner) == [view]


async def test_once(shop: Shop) -> None:
    owner = await shop.person(Role.OWNER)
    local = shop.clock.time.astimezone(ZoneInfo("Asia/Shanghai"))
    coming = (local + timedelta(hours=1)).strftime("at %Y-%m-%d %H:%M")
    over = (local - timedelta(minutes=1)).strftime("at %Y-%m-%d %H:%M")
    assert len((await shop.desk.add_schedule(owner, coming, TASK, chat=None)).next_times) == 1
    with pytest.raises(BadRequest, match="over"):
        await shop.desk.add_schedule(owner, over, TASK, chat=None)


@pytest.mark.parametrize("expression", ["", "every", "every 5s", "60 * * * *", "* * *", "0 0 30 2 *", "at 25:00"])
async def test_what_cannot_be_read_says_why(shop: Shop, expression: str) -> None:
    owner = await shop.person(Role.OWNER)
    with pytest.raises(BadRequest) as caught:
        await shop.desk.add_schedule(owner, expression, TASK, chat=CHAT)
    assert caught.value.message
    assert await shop.desk.list_schedules(owner) == []


async def test_the_same_request_makes_one(shop: Shop) -> None:
    owner = await shop.person(Role.OWNER)
    first = await shop.desk.add_schedule(owner, "every 5m", TASK, chat=CHAT, key="m1")
    assert (await shop.desk.add_schedule(owner, "every 5m", TASK, chat=CHAT, key="m1")).id == first.id
    assert len(await shop.desk.list_schedules(owner)) == 1


async def test_pause_resume_remove(shop: Shop) -> None:
    owner = await shop.person(Role.OWNER)
    number = (await shop.desk.add_schedule(owner, "every 5m", TASK, chat=CHAT)).id
    assert (await shop.desk.pause_schedule(owner, f" #{number} ")).paused
    assert [view.paused for view in await shop.desk.list_schedules(owner)] == [True]
    assert not (await shop.desk.resume_schedule(owner, number)).paused
    assert (await shop.desk.remove_schedule(owner, number)).id == number
    assert await shop.desk.list_schedules(owner) == []


@pytest.mark.parametrize("number", ["2", "x", "", "-1", "1.0", "²", "9" * 30])
async def test_a_number_that_is_none(shop: Shop, number: str) -> None:
    owner = await shop.person(Role.OWNER)
    await shop.desk.add_schedule(owner, "every 5m", TASK, chat=CHAT)
    for call in (shop.desk.pause_schedule, shop.desk.resume_schedule, shop.desk.remove_schedule):
        with pytest.raises(NotFound):
            await call(owner, number)


async def test_what_is_added_outside_any_chat_is_told_to_the_first_owner(shop: Shop) -> None:
    await shop.person(Role.OPERATOR)
    first, second = await shop.person(Role.OWNER), await shop.person(Role.OWNER)
    view = await shop.desk.add_schedule(second, "every 5m", TASK, chat=None)
    assert view.chat == ChatRef("telegram", first.user_id)
