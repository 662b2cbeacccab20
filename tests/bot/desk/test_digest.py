"""What a time came to, over a real database; and which chats are told of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from agent_core.model.usage import Price, Prices
from bot.desk.actors import AccessDenied, Actor, BadRequest, ChatRef, Role
from bot.desk.context import chat_data
from bot.desk.desk import Desk
from bot.desk.digest_views import FailedRuns, Often, Period
from scheduler.jobs.digests import DigestWatch, digest_times
from scheduler.times.shop import quiet_of
from storage.events import Events
from storage.outages import Outages
from tests.bot.desk.day import ZONE, Day, at, day
from tests.support.shop import CHAT, Shop

__all__ = ["day"]  # a fixture


async def look(shop: Shop, period: Period = "today", **changes: Any) -> Any:
    desk = Desk(replace(shop.desk.context, **changes))
    return await desk.digest.look(await shop.person(Role.VIEWER), period)


async def test_the_figures_of_a_day(shop: Shop, day: Day) -> None:
    view = await look(shop)
    assert (view.since, view.until) == (at("2026-11-20 00:00"), at("2026-11-21 00:00"))
    assert (view.asked, view.answered, view.alone, view.by_person) == (7, 3, 2, 1)
    assert (view.skipped, view.failed, view.unknown, view.under_way, view.left) == (1, 1, 1, 1, 3)
    assert view.median_seconds == 20
    assert (view.calls, view.tokens_in, view.tokens_out, view.cost) == (2, 5000, 200, None)
    assert view.often == (Often("能便宜点吗！", 2), Often("几天发货", 2))
    assert view.unanswered == (Often("能便宜点吗！", 2), Often("在吗", 1))
    shop.clock.time = at("2026-11-20 15:51")  # what is under way for over an hour will not be answered by itself
    assert (await look(shop)).left == 4


async def test_bars_by_the_hour_and_by_the_day(shop: Shop, day: Day) -> None:
    view = await look(shop)
    assert (view.unit, len(view.bars)) == ("hour", 24)
    counted = {bar.at.hour: (bar.alone, bar.by_person, bar.left) for bar in view.bars if bar.total}
    assert counted == {9: (2, 0, 0), 10: (0, 1, 2), 14: (0, 0, 1)}
    week = await look(shop, "week")
    assert (week.unit, [bar.at.day for bar in week.bars]) == ("day", [14, 15, 16, 17, 18, 19, 20])
    assert [bar.total for bar in week.bars] == [0, 0, 0, 0, 0, 1, 6]
    assert (await look(shop, "yesterday")).asked == 1
    assert len((await look(shop, "month")).bars) == 30


async def test_the_figures_of_each_of_the_last_days(shop: Shop, day: Day) -> None:
    await Events(shop.db).append(day.runs["S1"], "outcome", {"status": "failed", "error_kind": "model.timeout"})
    desk = Desk(replace(shop.desk.context, prices=Prices(default=Price(2.0, 8.0), currency="CNY")))
    viewer = await shop.person(Role.VIEWER)
    view = await desk.digest.days(viewer, 7)
    assert [each.bar.at.day for each in view.days] == [14, 15, 16, 17, 18, 19, 20]
    assert [each.bar for each in view.days] == list((await look(shop, "week")).bars)
    before, today = view.days[-2:]
    assert (before.median_seconds, before.tokens_in, before.cost) == (3600, 0, 0)
    assert (today.median_seconds, today.calls, today.tokens_in, today.tokens_out) == (20, 2, 5000, 200)
    assert today.cost == pytest.approx(0.0116)
    assert view.currency == "CNY"
    assert view.failures == (FailedRuns("model.timeout", 1),)
    assert not view.empty
    assert len((await desk.digest.days(viewer, 90)).days) == 90
    assert (await desk.digest.days(replace(viewer, phones=("S3",)), 30)).empty
    with pytest.raises(BadRequest, match="8"):
        await desk.digest.days(viewer, 8)


async def test_costs_and_what_is_not_kept(shop: Shop, day: Day) -> None:
    prices = Prices(default=Price(2.0, 8.0), currency="CNY")
    view = await look(shop, "month", prices=prices, keep=timedelta(days=10))
    assert (view.cost, view.currency) == (pytest.approx(0.0116), "CNY")
    assert view.kept_since == at("2026-11-10 15:00")
    assert (await look(shop, "week", keep=timedelta(days=10))).kept_since is None


async def test_each_step_costs_what_its_own_model_does(shop: Shop, day: Day) -> None:
    """As it was written down where it was; a step of an unknown model, and pictures that were read, among them."""
    prices = Prices({"Other": Price(10.0, 0.0, tokens_cached=1.0)}, Price(2.0, 8.0), "CNY")
    before = (await look(shop, prices=prices)).cost or 0.0
    await day.think("2026-11-20 13:00", 100_000, 0, model="other", tokens_cached=50_000, cost=None)
    await day.think("2026-11-20 13:01", 100_000, 0, model="other", cost=3.0)
    await Events(shop.db).append(day.runs["S1"], "step", {"cost": 0.25, "timings": {"act": 0.1}})
    view = await look(shop, prices=prices)
    assert view.calls == 4
    assert [(share.name, share.calls, share.cost) for share in view.models] == [("other", 2, pytest.approx(3.55))]
    assert (view.cost or 0.0) - before == pytest.approx(0.5 + 0.05 + 3.0 + 0.25)
    assert (await look(shop)).cost == pytest.approx(3.25)  # without prices: what is known


async def test_of_some_phones_only(shop: Shop, day: Day) -> None:
    who = replace(await shop.person(Role.VIEWER), phones=("S2",))
    view = await shop.desk.digest.look(who, "today")
    assert (view.asked, view.skipped, view.calls) == (1, 1, 1)
    nothing = await shop.desk.digest.look(replace(who, phones=("S3",)), "today")
    assert nothing.empty
    assert len(nothing.bars) == 24
    with pytest.raises(BadRequest, match="This is no time: daily"):
        await shop.desk.digest.look(who, "daily")


# Which chats ----------------------------------------------------------------------------------------------------------


def own(person: Actor) -> ChatRef:
    return ChatRef("telegram", person.user_id)


async def kinds(shop: Shop) -> dict[str, set[str]]:
    return {chat.key: set(chat.kinds) for chat in await shop.desk.digest.chats()}


async def test_owners_get_it_unless_they_say_no_and_others_where_they_say_yes(shop: Shop) -> None:
    owner, operator, viewer = [await shop.person(role) for role in (Role.OWNER, Role.OPERATOR, Role.VIEWER)]
    desk = shop.desk.digest
    assert await kinds(shop) == {own(owner).key: {"daily", "weekly"}}
    assert (await desk.setting(owner, own(owner))).weekly
    assert not (await desk.setting(owner, CHAT)).weekly
    await desk.switch(owner, own(owner), weekly=False)
    await desk.switch(operator, CHAT, daily=True)
    assert await kinds(shop) == {own(owner).key: {"daily"}, CHAT.key: {"daily"}}
    with pytest.raises(AccessDenied):
        await desk.switch(viewer, own(viewer), daily=True)
    assert not (await desk.setting(viewer, own(viewer))).daily
    await desk.switch(owner, own(owner), daily=False)
    await shop.desk.team.set_role(owner, f"#{operator.id}", Role.VIEWER)
    assert await kinds(shop) == {}


async def test_a_change_of_one_kind_loses_no_digest_of_the_other(shop: Shop) -> None:
    shop.clock.time = at("2026-12-01 12:00")
    boss = await shop.person(Role.OWNER)
    told = shop.desk.digest

    async def never(*_: object) -> bool:
        return False

    watch = DigestWatch(
        shop.db, digest_times("09:00", "mon 09:00"), ZONE, quiet_of("22:00-10:00", "Asia/Shanghai"), chats=told.chats,
        is_empty=never,
    )  # fmt: skip

    async def out(when: str) -> list[str]:
        shop.clock.time = at(when)
        await watch.once()
        return [event.data["kind"] for event in await Events(shop.db).after(0) if event.kind == "digest"]

    shop.clock.time = at("2026-12-04 09:30")  # due at 9, but held by the quiet hours until 10
    await told.switch(boss, own(boss), weekly=False)
    assert await out("2026-12-04 10:01") == ["daily"]
    shop.clock.time = at("2026-12-07 09:30")  # a Monday
    await told.switch(boss, own(boss), weekly=True)
    assert await out("2026-12-07 10:01") == ["daily", "daily"]  # the weekly one was due before it was turned on
    assert await out("2026-12-14 10:01") == ["daily", "daily", "daily", "weekly"]


async def test_the_terminal_has_no_chat(shop: Shop) -> None:
    terminal = Actor("terminal", "terminal", "terminal", "terminal", "en", Role.OWNER)
    with pytest.raises(BadRequest, match="Nobody who is paired asks"):
        await shop.desk.digest.switch(terminal, CHAT, daily=True)


async def test_what_is_due_shows_what_its_person_may_see(shop: Shop, day: Day) -> None:
    owner, operator = await shop.person(Role.OWNER), await shop.person(Role.OPERATOR)
    await shop.desk.team.limit(owner, f"#{operator.id}", phones=["S2"])
    await shop.desk.digest.switch(operator, CHAT, daily=True)
    (chat,) = [chat for chat in await shop.desk.digest.chats() if chat.key == CHAT.key]
    assert chat.serials == ("S2",)
    since, until = at("2026-11-20 00:00"), at("2026-11-21 00:00")
    data = {"kind": "daily", "chat": chat_data(CHAT), "since": since.isoformat(), "until": until.isoformat()}
    due = await shop.desk.digest.due({**data, "person_id": int(operator.id)})
    assert due is not None
    assert (due[0].chat, due[0].lang, due[1].asked, due[1].period) == (CHAT, "en", 1, "daily")
    assert not await shop.desk.digest.is_empty(since, until, ["S2"])
    assert await shop.desk.digest.is_empty(since, until, ["S3"])
    await shop.desk.team.limit(owner, f"#{operator.id}", chats=["telegram:1"])
    assert await shop.desk.digest.due({**data, "person_id": int(operator.id)}) is None
    await shop.desk.team.remove(owner, f"#{operator.id}")
    assert await shop.desk.digest.due({**data, "person_id": int(operator.id)}) is None
    assert CHAT.key not in await kinds(shop)


async def test_who_is_told_of_what_is_down(shop: Shop) -> None:
    owner, other = await shop.person(Role.OWNER), await shop.person(Role.OWNER)
    await shop.person(Role.OPERATOR)
    assert {to.chat for to in await shop.desk.digest.alerted()} == {own(owner), own(other)}
    assert await shop.desk.digest.alerted(shop.db.now() - timedelta(seconds=1)) == [], "nobody was there"
    assert len(await shop.desk.digest.alerted(shop.db.now())) == 2
    named = Desk(replace(shop.desk.context, alert_chat="-1009"))
    assert await named.digest.alerted(shop.db.now() - timedelta(seconds=1)) == []
    (to,) = await named.digest.alerted()
    assert (to.chat, to.lang) == (ChatRef("telegram", "-1009", kind="group"), "zh")
    data = {"subject": "phone:1:2", "state": "down", "since": "2026-11-20T01:00:00+00:00", "why": "offline"}
    view = await shop.desk.digest.alert(data)
    assert (view.subject, view.name, view.why, view.seconds) == ("phone", "1:2", "offline", None)
    assert view.since.hour == 9
    assert (await shop.desk.digest.alert({**data, "state": "up", "seconds": 90})).seconds == 90


async def test_that_models_may_be_asked_no_more_today_is_told_once_a_day(shop: Shop) -> None:
    watched, figures = Outages(shop.db), {"spent": "2.00", "limit": "2.00", "currency": "CNY"}
    told = [await watched.once("limit", day, {"why": "day_cost", **figures}) for day in ("11-20", "11-20", "11-21")]
    assert told == [True, False, True]
    assert [row.subject for row in await watched.all()] == ["limit:11-21"]
    events = [event for event in await Events(shop.db).after(0) if event.kind == "alert"]
    view = await shop.desk.digest.alert(events[0].data)
    assert (len(events), view.subject, view.why, view.figures, view.seconds) == (2, "limit", "day_cost", figures, None)
