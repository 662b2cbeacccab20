"""Schedules in the chat: what is written, and the conversation over the real desk. Now is Sunday, 17:00 in Shanghai."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from agent_core.errors import PhonedeskError
from agent_core.loop.tasks import TaskRules
from bot.channels.chat.schedule_reading import ScheduleRequest, read_schedule
from bot.channels.chat.schedules import in_words, news_card
from bot.channels.chat.texts import LANGUAGES, Lang, texts
from bot.desk.actors import BadRequest, Role
from bot.desk.schedules_views import ScheduleWish
from scheduler.clock import Clock
from scheduler.times.natural import understand
from storage.events import Events
from storage.runs import Runs
from tests.bot.channels.chat.member import member
from tests.support.shop import PHONE, Shop
from tests.support.talker import shown


def added(expression: str, task: str, **wish: object) -> ScheduleRequest:
    rules = TaskRules(str(wish.pop("policy", "")))
    return ScheduleRequest("add", expression, task, rules=rules, wish=ScheduleWish(**wish))  # type: ignore[arg-type]  # any


def edited(**fields: object) -> ScheduleRequest:
    own = {name: fields.pop(name) for name in ("expression", "task", "rules", "here") if name in fields}
    return ScheduleRequest("edit", schedule_id="3", wish=ScheduleWish(**fields), **own)  # type: ignore[arg-type]  # any


@pytest.mark.parametrize(
    ("rest", "request_"),
    [
        ("", ScheduleRequest("list")),
        ("列表", ScheduleRequest("list")),
        ('add "*/5 9-18 * * 1-5" 回复11', added("*/5 9-18 * * 1-5", "回复11")),
        ("add “every 5m” “回复 11”", added("every 5m", "回复 11")),
        ("add */5 9-18 * * mon-fri 回复 11 和 12", added("*/5 9-18 * * mon-fri", "回复 11 和 12")),
        ("add every 5m 回复11", added("every 5m", "回复11")),
        ("add every x 回复11", added("every x", "回复11")),
        ("add at 18:30 回复11", added("at 18:30", "回复11")),
        ("add at 2026-12-01 18:30 回复11", added("at 2026-12-01 18:30", "回复11")),
        ("添加 @daily 回复11", added("@daily", "回复11")),
        ("添加 工作日 9:00-18:00 每5分钟 QQ回复联系人11", added("工作日 9:00-18:00 每5分钟", "QQ回复联系人11")),
        ("每天9点半 QQ回复联系人11", added("每天9点半", "QQ回复联系人11")),
        (
            "add --quiet 22:00-07:00 every 5m --missed 补做 —overlap queue --jitter 1分钟 --policy open 回复11",
            added(
                "every 5m", "回复11", quiet="22:00-07:00", missed="catch_up", overlap="queue", jitter_seconds=60,
                policy="open",
            ),
        ),
        ("add 盯着 11 小王", added("", "盯着 11 小王")),
        ("add --quiet 22:00-07:00 watch: #vip", added("", "watch #vip", quiet="22:00-07:00")),
        ("add 值守 -d S1 11 小王 --quiet 22:00-07:00", added("", "值守 11 小王", serial="S1", quiet="22:00-07:00")),
        ("add 每天9点 -d S1 --tz Asia/Tokyo 回复11", added("每天9点", "回复11", serial="S1", timezone="Asia/Tokyo")),
        ("pause #3", ScheduleRequest("pause", schedule_id="3")),
        ("暂停3", ScheduleRequest("pause", schedule_id="3")),
        ("删除 3", ScheduleRequest("remove", schedule_id="3")),
        ("立即执行 3", ScheduleRequest("run", schedule_id="3")),
        ("#3", ScheduleRequest("show", schedule_id="3")),
        ("0 9 * * 1-5 回复11", added("0 9 * * 1-5", "回复11")),
        ("@daily 回复11", added("@daily", "回复11")),
        ("add at 18:30 tomorrow 回复11", added("at 18:30 tomorrow", "回复11")),
        ("add 每天9点\n18点开会", added("每天9点", "18点开会")),
        ("add 0 9 * * 1-5\n11号桌", added("0 9 * * 1-5", "11号桌")),
        ("add “每天9点” 18点开会", added("每天9点", "18点开会")),
        ("edit 3 每天10点", edited(expression="每天10点")),
        ("edit 3 每天9点 18点", edited(expression="每天9点 18点")),
        ("edit 3 at 18:30 on weekdays", edited(expression="at 18:30 on weekdays")),
        ("edit 3 每5分钟 9点到6点", edited(expression="每5分钟 9点到6点")),
        ("edit 3 每天10点；任务：回复 12", edited(expression="每天10点", task="回复 12")),
        ("修改 3 时间：每天10点 任务：回复 12", edited(expression="每天10点", task="回复 12")),
        ("修改3 安静时段：无；错过：补做", edited(quiet="", missed="catch_up")),
        ("edit #3 when daily at 10:00", edited(expression="daily at 10:00")),
        ("edit 3 --phone any --chat here --jitter 90", edited(serial="", here=True, jitter_seconds=90)),
        ("edit 3 policy: none", edited(rules=TaskRules())),
        ("pause", None),
        ("edit 3", None),
        ("edit", None),
        ("add every 5m", None),
        ('add "* * * *', None),
        ("add 回复11", None),
        ("dance", None),
    ],
)  # fmt: skip
def test_read_schedule(rest: str, request_: ScheduleRequest | None) -> None:
    assert read_schedule(rest) == request_


def test_a_length_of_time_that_is_none() -> None:
    with pytest.raises(BadRequest):
        read_schedule("edit 3 jitter: much")


@pytest.mark.parametrize(
    ("rest", "key"),
    [
        ("edit 3 每天10点 回复 12", "schedule_unnamed"),
        ("edit 3 每天9点之前", "schedule_unnamed"),
        ("edit 3 “每天10点” 回复 12", "schedule_unnamed"),
        ("edit 3 每天10点：回复 12 错过：补做", "schedule_unnamed"),
        ("add @daily at 9 回复11", "schedule_unclear"),
        ("add 0 0 9 * * 1-5 回复11", "schedule_unclear"),
        ("add every 5m --jitter 60 9:00-18:00 回复11", "schedule_unclear"),
    ],
)
def test_where_time_and_task_are_not_told_apart(rest: str, key: str) -> None:
    with pytest.raises(PhonedeskError) as caught:
        read_schedule(rest)
    assert caught.value.key == key
    for lang in LANGUAGES:
        assert str(caught.value.values["rest"]) in texts(lang).error(caught.value)


async def test_from_add_to_undo(shop: Shop) -> None:
    owner = await member(shop, Role.OWNER, "Chief")
    said = await owner.say("定时 工作日 9:00-18:00 每5分钟 QQ回复联系人11")
    assert said.startswith(
        "已添加定时任务 #1\n时间: 工作日 9:00-18:00 每5分钟\n记为: 每周一至周五 09:00–18:00 之间每 5 分钟\n"
    )
    assert "时段: 09:00 开始，18:00 之前；最后一次 17:55" in said
    assert "接下来: 03-02 09:00、03-02 09:05、03-02 09:10" in said
    assert "接下来: 03-01 17:00:30、03-01 17:01:00、03-01 17:01:30\n" in await owner.say(
        "/schedule 添加 每30秒 QQ回复11"
    )
    await owner.say("/schedule 删除 2")
    await owner.say("/schedule 1")
    assert "已暂停" in await owner.tap(owner.action("暂停"))
    assert "已暂停" not in await owner.tap(owner.action("恢复"))
    said = await owner.say("/schedule 修改 1 时间：明天9点 错过：补做 重叠：排队 安静时段：22:00-07:00")
    assert "记为: 2026-03-02 09:00，一次" in said
    assert "安静时段: 22:00-07:00\n方式: 错过的补做一次 · 上一次没结束就排队" in said
    assert "工作日 9:00-18:00 每5分钟" in await owner.tap(owner.action("撤销"))
    await owner.say("/schedule 修改 1 时间：明天9点 错过：补做 重叠：排队 安静时段：22:00-07:00")
    listed = await owner.say("/schedule")
    assert "#1: 明天9点" in listed
    assert "明天9点" in await owner.tap(owner.action("#1"))
    assert "QQ回复联系人11" in await owner.tap(owner.action("立即执行"))
    (run,) = await Runs(shop.db).find(schedule_id=1)
    assert (run.task, run.planned_at, run.requested_by) == ("QQ回复联系人11", None, owner.actor.id)
    assert "上一次: 03-01 17:00 手动启动 → ⏳ 排队中" in await owner.say("/schedule 1")
    assert "已删除定时任务 #1" in await owner.tap(owner.action("删除"))
    undo = owner.action("撤销")
    assert "还没有定时任务" in await owner.say("/schedule")
    assert "明天9点" in await owner.tap(undo)
    assert "工作日 9:00-18:00 每5分钟" in await owner.tap(undo), "what was changed before it was removed"
    assert "后来又改过" in await owner.tap(undo)


async def test_the_last_outcome_and_the_counts(shop: Shop) -> None:
    owner = await member(shop, Role.OWNER, "Chief")
    await owner.say("/schedule add 每5分钟 打开设置")
    clock = Clock(shop.db)
    for _ in range(2):
        shop.clock.move(minutes=5)
        await clock.look()
    said = await owner.say("/schedule list")
    assert "上一次: 03-01 17:10 跳过：上一次还没结束\n次数: 启动 1 · 上一次没结束而跳过 1" in said
    for run in await Runs(shop.db).find(schedule_id=1):
        await Runs(shop.db).request_stop(run.id)
    shop.clock.move(minutes=5)
    await clock.look()
    assert "上一次: 03-01 17:15 已启动 → ⏳ 排队中\n次数: 启动 2" in await owner.say("/schedule list")


async def test_who_sees_which_buttons(shop: Shop) -> None:
    owner = await member(shop, Role.OWNER, "Chief")
    await owner.say("/schedule add 每5分钟 打开设置")
    operator = await member(shop, Role.OPERATOR, "Anna")
    viewer = await member(shop, Role.VIEWER, "Li")
    labels = []
    for who in (operator, viewer):
        await who.say("/schedule 1")
        labels.append([button.label for button in who.buttons])
    assert labels == [["立即执行", "全部"], ["全部"]]
    assert "操作员" in await viewer.tap("schedule:run:1") or "权限" in shown(viewer.said)
    assert "管理员" in await operator.tap("schedule:remove:1")


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("add 工作日差不多9点 打开设置", "看懂了：工作日。还差几点。"),
        ("add “工作日差不多9点” 打开设置", "看懂了：工作日\n没看懂：差不多9点"),
        ("add 周五9点 打开设置", "每周写 每周五9点"),
        ("add 工作日 9:00-18:00 打开设置", "还差多久一次"),
        ("add 今天8点 打开设置", "这个时间已经过去了：今天8点"),
        ("add --tz Mars/Base 每天9点 打开设置", "没有这个时区：Mars/Base"),
        ("add --quiet night 每天9点 打开设置", "没看懂安静时段：night"),
        ("add --missed maybe 每天9点 打开设置", "maybe"),
        ("add --jitter 5m 每5分钟 打开设置", "0 到 299 秒"),
        ("add --phone S99 每天9点 打开设置", "没有连接手机 S99"),
        ("undo 7", "没有可以恢复的定时任务 #7"),
        ("edit 3", "/schedule 修改 3 时间：每天10点"),
        ("run", "写上定时任务的编号"),
    ],
)
async def test_what_is_wrong_is_said(shop: Shop, written: str, told: str) -> None:
    owner = await member(shop, Role.OWNER, "Chief")
    assert told in await owner.say(f"/schedule {written}")


async def test_what_was_missed_is_told(shop: Shop) -> None:
    owner = await member(shop, Role.OWNER, "Chief")
    await owner.say(f"/schedule add --phone {PHONE} 每小时 打开设置")
    shop.clock.move(hours=8)
    shop.clock.time -= timedelta(minutes=30)
    await Clock(shop.db).look()
    (event,) = [event for event in await Events(shop.db).after(0) if event.kind == "schedule"]
    news = await shop.desk.schedules.news(event.data)
    assert news is not None
    assert (news.chat, news.count, news.caught_up) == (owner.chat, 7, False)
    card = news_card(news, texts("zh"))
    assert card.title == "⏰ 定时任务 #1 错过了执行时间"
    assert "错过 7 次：03-01 18:00 – 03-02 00:00" in card.lines[1].text
    boss = await member(shop, Role.OWNER, "Boss")
    await shop.desk.team.remove(boss.actor, f"#{owner.actor.id}")
    news = await shop.desk.schedules.news(event.data)
    assert news is not None
    assert news.chat == boss.chat  # whoever is gone is told nothing
    await boss.say("/schedule remove 1")
    assert await shop.desk.schedules.news(event.data) is None


async def test_a_watch_by_command_and_in_words(shop: Shop) -> None:
    owner = await member(shop, Role.OWNER, "Chief")
    assert "现在没有盯着谁" in await owner.say("/watch")
    assert "没有联系人带标签 #vip" in await owner.say("/watch 11 #vip")
    await owner.say("/contacts add 11 #vip")
    made = await owner.say("/watch --quiet 22:00-07:00 11 #vip")
    assert made.startswith("开始盯着（定时任务 #1）\n时间: 一来消息就回复\n任务: 盯着 11 #vip\n安静时段: 22:00-07:00")
    assert "开始盯着（定时任务 #2）" in await owner.say("盯着 所有")
    assert "#2" in await owner.say("/watch")
    assert "一来消息就回复 · 已暂停" in await owner.say("/schedule pause 2")
    assert "盯着谁？" in await owner.say("/schedule add 盯着")
    assert "盯着没有时间" in await owner.say("/schedule add every 5m 盯着 11")


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize(("written", "advised"), [('add "friday 9" QQ回复11', False), ("add @daily at 9 回复11", True)])
def test_who_has_put_the_time_in_quotes_is_not_told_to(lang: Lang, written: str, advised: bool) -> None:
    with pytest.raises(PhonedeskError) as caught:  # noqa: PT012 - either of them refuses it
        found = read_schedule(written)
        assert found is not None
        understand(found.expression, "UTC", datetime(2026, 3, 1, tzinfo=UTC))
    assert any(word in texts(lang).error(caught.value) for word in ("引号", "quotes")) is advised


@pytest.mark.parametrize(
    ("expression", "zh", "en"),
    [
        ("every 5m", "每 5 分钟", "every 5 minutes"),
        ("every 1h", "每 1 小时", "every 1 hour"),
        ("every 30s", "每 30 秒", "every 30 seconds"),
        ("every 2d", "每 2 天", "every 2 days"),
        ("every 5m 09:00-18:00", "09:00–18:00 之间每 5 分钟", "every 5 minutes, from 09:00 to 18:00"),
        (
            "every 10m 09:00-18:00 * * 1-5",
            "每周一至周五 09:00–18:00 之间每 10 分钟",
            "Monday to Friday: every 10 minutes, from 09:00 to 18:00",
        ),
        ("every 5m 00:00-24:00 * * 6,7", "每周六、周日 每 5 分钟", "Saturday, Sunday: every 5 minutes"),
        ("at 18:30", "每天 18:30", "daily at 18:30"),
        ("at 2026-03-02 09:00", "2026-03-02 09:00，一次", "once, at 09:00 on 2026-03-02"),
        ("30 9 * * *", "每天 09:30", "daily at 09:30"),
        ("0 9,18 * * 0", "每周日 09:00、18:00", "Sunday: 09:00, 18:00"),
        (
            "0 9 * * 0,1,2,3,5",
            "每周一至周三、周五、周日 09:00",
            "Monday to Wednesday, Friday, Sunday: 09:00",
        ),
        ("every 120m", "每 2 小时", "every 2 hours"),
        ("5 * * * *", "每小时 05 分", "every hour at :05"),
        ("0 18 L * *", "每月最后一天 18:00", "on the last day of each month at 18:00"),
        ("0 9 1 * *", "每月 1 日 09:00", "on day 1 of each month at 09:00"),
        ("0 9 * * * | 30 12 * * *", "每天 09:00；每天 12:30", "daily at 09:00; daily at 12:30"),
        *(
            (rest, rest, rest)
            for rest in ("", "*/5 * * * *", "0 9 1 * 1", "@daily", "0 9 * * 5-1", "0 9 * * * | @daily")
        ),
    ],
)
def test_stored_times_are_told_in_words_and_cron_without_words_as_it_is(expression: str, zh: str, en: str) -> None:
    assert in_words(expression, texts("zh")) == zh
    assert in_words(expression, texts("en")) == en
