"""What people write for a time. Now is Saturday, 2026-11-21, 12:00:30 in Shanghai."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_core.errors import InputRejected
from scheduler.times import parse_schedule
from scheduler.times.natural import understand, windows_of
from scheduler.times.splitting import split
from tests.support.days import examples

ZONE = "Asia/Shanghai"
NOW = datetime(2026, 11, 21, 12, 0, 30, tzinfo=ZoneInfo(ZONE))
MEANT = {
    "每5分钟": "every 5m",
    "每隔 10 分钟": "every 10m",
    "每二十分钟": "every 20m",
    "5分钟一次": "every 5m",
    "每15分钟执行一次": "every 15m",
    "每30秒": "every 30s",
    "每半小时": "every 30m",
    "每半个小时": "every 30m",
    "每一个半小时": "every 90m",
    "每两小时": "every 2h",
    "每小时": "0 * * * *",
    "每3天": "every 3d",
    "每天9点": "0 9 * * *",
    "每天9点钟": "0 9 * * *",
    "每天早上9点半": "30 9 * * *",
    "每天九点一刻": "15 9 * * *",
    "每天９：３０": "30 9 * * *",
    "每天9点10分": "10 9 * * *",
    "每天九點三十分": "30 9 * * *",
    "每天中午12点半": "30 12 * * *",
    "每天凌晨12点": "0 0 * * *",
    "每天9:00和18:00": "0 9,18 * * *",
    "每天9:00和18:30": "0 9 * * * | 30 18 * * *",
    "每天 8点、12点、18点": "0 8,12,18 * * *",
    "每天早上9点和晚上6点": "0 9,18 * * *",
    "每天晚上8点和10点": "0 20,22 * * *",
    "每晚8点": "0 20 * * *",
    "每周一三五 9点": "0 9 * * 1,3,5",
    "每周一、三、五　９点": "0 9 * * 1,3,5",
    "每周一三五九点半": "30 9 * * 1,3,5",
    "每周一到周五 9点": "0 9 * * 1-5",
    "周六、周日 10:00": "0 10 * * 0,6",
    "每星期天十点": "0 10 * * 0",
    "每周五到周一 9点": "0 9 * * 0,1,5,6",
    "每周二和周四 下午3点": "0 15 * * 2,4",
    "工作日9点": "0 9 * * 1-5",
    "周末10点": "0 10 * * 0,6",
    "工作日9点，周末10点": "0 9 * * 1-5 | 0 10 * * 0,6",
    "每月1号9点": "0 9 1 * *",
    "每月1、15号9点": "0 9 1,15 * *",
    "每月最后一天18点": "0 18 L * *",
    "每月底18点": "0 18 L * *",
    "每年1月1日 0点": "0 0 1 1 *",
    "工作日 9:00-18:00 每5分钟": "every 5m 09:00-18:00 * * 1-5",
    "每5分钟 工作日 9:00～18:00": "every 5m 09:00-18:00 * * 1-5",
    "工作日每5分钟": "every 5m 00:00-24:00 * * 1-5",
    "9点到18点每10分钟": "every 10m 09:00-18:00",
    "9-18点每小时": "every 1h 09:00-18:00",
    "每天8点到20点之间每20分钟": "every 20m 08:00-20:00",
    "下午2点到5点每15分钟": "every 15m 14:00-17:00",
    "晚上8点到2点每小时": "every 1h 20:00-02:00",
    "22:00-02:00 每30分钟": "every 30m 22:00-02:00",
    "明天9点": "at 2026-11-22 09:00",
    "明早9点": "at 2026-11-22 09:00",
    "后天下午3点": "at 2026-11-23 15:00",
    "今晚8点": "at 2026-11-21 20:00",
    "下周一9点": "at 2026-11-23 09:00",
    "本周日9点": "at 2026-11-22 09:00",
    "12月24日18:30": "at 2026-12-24 18:30",
    "11月20日9点": "at 2027-11-20 09:00",
    "2月29日9点": "at 2028-02-29 09:00",
    "2026年12月24日 18:30": "at 2026-12-24 18:30",
    "2026-12-24 18:30": "at 2026-12-24 18:30",
    "明天9点和18点": "at 2026-11-22 09:00 | at 2026-11-22 18:00",
    "10分钟后": "at 2026-11-21 12:11",
    "every 5m": "every 5m",
    "every five minutes": "every 5m",
    "every half an hour": "every 30m",
    "hourly": "0 * * * *",
    "daily at 9:30": "30 9 * * *",
    "every day at noon": "0 12 * * *",
    "at 9 every day": "0 9 * * *",
    "every monday at 9": "0 9 * * 1",
    "every mon, wed and fri at 9:15": "15 9 * * 1,3,5",
    "mon-fri 9:00": "0 9 * * 1-5",
    "every friday at 5pm": "0 17 * * 5",
    "weekdays at 9am and 5:30pm": "0 9 * * 1-5 | 30 17 * * 1-5",
    "on weekends at 10:00": "0 10 * * 0,6",
    "weekdays 9:00-18:00 every 5m": "every 5m 09:00-18:00 * * 1-5",
    "monday to friday between 9 and 18 every 10 minutes": "every 10m 09:00-18:00 * * 1-5",
    "8am-5pm every 30 minutes on weekdays": "every 30m 08:00-17:00 * * 1-5",
    "every month on the 1st at 9:00": "0 9 1 * *",
    "on the last day of every month at 18:00": "0 18 L * *",
    "tomorrow 9am": "at 2026-11-22 09:00",
    "tonight at 8": "at 2026-11-21 20:00",
    "dec 24 18:30": "at 2026-12-24 18:30",
    "in 30 minutes": "at 2026-11-21 12:31",
    "＊／５ ９－１７ ＊ ＊ １－５": "*/5 9-17 * * 1-5",
    "@daily": "@daily",
    "at 18:30": "at 18:30",
    "at 18:30 tomorrow": "at 2026-11-22 18:30",
    "at 18:30 on weekdays": "30 18 * * 1-5",
    "at 18:30 every monday": "30 18 * * 1",
    "每天9点 18点": "0 9,18 * * *",
    "每天早8点晚8点": "0 8,20 * * *",
    "明天9点 18点": "at 2026-11-22 09:00 | at 2026-11-22 18:00",
    "weekdays at 9:00 12:00 18:00": "0 9,12,18 * * 1-5",
    "weekdays at 9, 12 and 18": "0 9,12,18 * * 1-5",
    "daily at 9 and 18": "0 9,18 * * *",
    "每周一早上9点、周三下午3点": "0 9 * * 1 | 0 15 * * 3",
    "每周一、周三 9:00 和 周五 10:00": "0 9 * * 1,3 | 0 10 * * 5",
    "every monday at 9 and friday at 10": "0 9 * * 1 | 0 10 * * 5",
    "每月1号9点和15号9点": "0 9 1 * * | 0 9 15 * *",
    "每月1号9点、15号18点": "0 9 1 * * | 0 18 15 * *",
    "每小时30分": "30 * * * *",
    "工作日每小时30分": "30 * * * 1-5",
    "每天8点零5分": "5 8 * * *",
    "每天8点过5分": "5 8 * * *",
    "每天八点五十": "50 8 * * *",
    "每天八点零五": "5 8 * * *",
    "每天9点30和18点": "0 18 * * * | 30 9 * * *",
    "每5分钟 早上9点到晚上12点": "every 5m 09:00-24:00",
    "每天晚上8点到12点每小时": "every 1h 20:00-24:00",
    "晚上10点到12点半每5分钟": "every 5m 22:00-00:30",
    "daily 8pm-12 every hour": "every 1h 20:00-24:00",
    "daily 8pm to midnight every hour": "every 1h 20:00-24:00",
    "每天8点到零点每小时": "every 1h 08:00-24:00",
    "8:00-0:00 每小时": "every 1h 08:00-24:00",
    "noon to 2 every 10m": "every 10m 12:00-14:00",
    "daily 10pm-6 every hour": "every 1h 22:00-06:00",
    "晚上6点到早上9点每小时": "every 1h 18:00-09:00",
    "18:00-09:00 每小时": "every 1h 18:00-09:00",
    "每天晚上12点": "0 0 * * *",
    "今晚12点": "at 2026-11-22 00:00",
    "tonight at 12": "at 2026-11-22 00:00",
    "tomorrow evening at 12": "at 2026-11-23 00:00",
    "tomorrow night at 11": "at 2026-11-22 23:00",
    "tomorrow afternoon at 3": "at 2026-11-22 15:00",
    "tonight at 20:00": "at 2026-11-21 20:00",
}
UNCLEAR = {
    "": "bad_schedule",
    "随便": "bad_schedule",
    "every x": "bad_schedule",
    "每两周": "bad_schedule",
    "工作日差不多9点": "schedule_partly",
    "每天9点半左右": "schedule_partly",
    "每天9点 每5分钟": "schedule_partly",
    "每天9点18点": "schedule_partly",
    "每两天9点": "schedule_partly",
    "every 2 days at 9": "schedule_partly",
    "每天一点一": "schedule_partly",
    "工作日9点到12点和13点到18点每5分钟": "schedule_partly",
    "明天每周一9点": "schedule_partly",
    "周五9点": "schedule_which_week",
    "monday at 9": "schedule_which_week",
    "on monday at 9": "schedule_which_week",
    "tomorrow at 9 and friday at 10": "schedule_which_week",
    "9点": "schedule_which_day",
    "18:30": "schedule_which_day",
    "工作日 9:00-18:00": "schedule_how_often",
    "每天": "schedule_what_time",
    "明天": "schedule_what_time",
    "9点到6点每10分钟": "schedule_half_day",
    "9am to 5 every 10m": "schedule_half_day",
    "下午2点到12点每5分钟": "schedule_half_day",
    "13点到5点每10分钟": "schedule_half_day",
    "8pm to noon every hour": "schedule_half_day",
    "daily 1pm-12pm every hour": "schedule_half_day",
    "8点到6点每小时": "schedule_half_day",
    "weekdays at 9am and 6": "schedule_half_day",
    "每周一晚上12点": "schedule_half_day",  # that night, or the one before?
    "tonight at 1": "schedule_half_day",
    "tonight at 9am": "schedule_half_day",
    "tomorrow night at 2": "schedule_half_day",
    "tomorrow morning at 12": "schedule_half_day",
    "tomorrow morning at 15:00": "schedule_half_day",
    "今晚2点": "schedule_half_day",
    "每天下午9点": "schedule_half_day",
    "每天上午9点和2点": "schedule_half_day",
    "明天每5分钟": "schedule_once_often",
    "every 5s": "schedule_interval",
    "每1秒": "schedule_interval",
    "每天25点": "schedule_no_such",
    "每小时60分": "schedule_no_such",
    "每小时30分 9点到18点": "schedule_once_often",
    "2月30日9点": "schedule_no_such",
    "2026-02-30 9:00": "schedule_no_such",
    "61 9 * * *": "schedule_minute",
    "0 9 * * 8": "schedule_day_of_week",
    "* * *": "schedule_fields",
    "0 0 30 2 *": "schedule_never",
}


@pytest.mark.parametrize(("written", "kept"), MEANT.items(), ids=MEANT)
def test_what_is_meant(written: str, kept: str) -> None:
    assert understand(written, ZONE, NOW) == kept
    assert understand(kept, ZONE, NOW) == kept, "the form that is kept means itself"
    assert parse_schedule(kept, ZONE).next(NOW)


@pytest.mark.parametrize(("written", "key"), UNCLEAR.items(), ids=UNCLEAR)
def test_what_is_not_clear_is_refused_and_says_what_was_understood(written: str, key: str) -> None:
    with pytest.raises(InputRejected) as caught:
        understand(written, ZONE, NOW)
    assert caught.value.key == key
    assert caught.value.values["said"] == written


def test_nothing_is_left_out_of_a_long_text() -> None:
    written = "每天" + "、".join(f"{hour}:{minute:02}" for hour in range(10, 14) for minute in range(0, 60, 5))
    with pytest.raises(InputRejected) as caught:
        understand(written, ZONE, NOW)
    assert caught.value.key == "bad_schedule"
    with pytest.raises(InputRejected):
        split(f"{written} 巡检")


def test_the_parts_that_were_understood() -> None:
    with pytest.raises(InputRejected) as caught:
        understand("工作日 9:00-18:00 大概每5分钟", ZONE, NOW)
    assert (caught.value.values["understood"], caught.value.values["rest"]) == ("工作日 · 9:00-18:00", "大概每5分钟")


@pytest.mark.parametrize(
    ("written", "when"),
    [
        ("每天9点 QQ回复联系人11", "每天9点"),
        ("每天9点QQ回复联系人11", "每天9点"),
        ("every monday at 9 QQ回复联系人11", "every monday at 9"),
        ("工作日 9:00-18:00 每5分钟 回复 11 和 12", "工作日 9:00-18:00 每5分钟"),
        ("每天9点 每周汇总发给11", "每天9点"),
        ("每天9点 11号桌", "每天9点"),
        ("tomorrow 9am 打开设置", "tomorrow 9am"),
        ("mon/wed at 9 /sweep 11", "mon/wed at 9"),  # the command, not one more day
        ("周五9点 打开设置", "周五9点"),  # the error says what is missing
        ("QQ回复联系人11", ""),
    ],
)
def test_where_the_time_ends_and_the_task_begins(written: str, when: str) -> None:
    assert split(written) == (when, written.removeprefix(when).strip())


# A whole message: the form that is kept and the task, or, where that is not sure, the key of the refusal.
TOLD_APART = {
    "每天9点 11号桌": ("0 9 * * *", "11号桌"),
    "每天9点，QQ回复联系人11": ("0 9 * * *", "QQ回复联系人11"),
    "每天9点在QQ回复联系人11": ("0 9 * * *", "在QQ回复联系人11"),
    "每天9点一起回复QQ联系人11": ("0 9 * * *", "一起回复QQ联系人11"),
    "每天9点一并回复未读": ("0 9 * * *", "一并回复未读"),
    "每天十点一键巡检": ("0 10 * * *", "一键巡检"),
    "每天9点3位客户": ("0 9 * * *", "3位客户"),
    "每天9点 早上好发给11": ("0 9 * * *", "早上好发给11"),
    "每天9点 截图发给11": ("0 9 * * *", "截图发给11"),
    "每天9点：18点开会，提醒11": ("0 9 * * *", "18点开会，提醒11"),
    "每天9点\n明天的天气发给11": ("0 9 * * *", "明天的天气发给11"),
    "every day at 9 QQ reply to 11 at 5": ("0 9 * * *", "QQ reply to 11 at 5"),
    "at 18:30 tomorrow QQ回复联系人11": ("at 2026-11-22 18:30", "QQ回复联系人11"),
    "每周一早上9点、周三下午3点 QQ回复联系人11": ("0 9 * * 1 | 0 15 * * 3", "QQ回复联系人11"),
    "每5分钟 早上9点到晚上12点 巡检": ("every 5m 09:00-24:00", "巡检"),
    "每5分钟 9点到18点 周末除外 巡检": "schedule_unclear",
    "每5分钟（工作日） 巡检": "schedule_unclear",
    "每两天9点 QQ回复联系人11": "schedule_unclear",
    "每3天上午9点 QQ回复联系人11": "schedule_unclear",
    "every 2 days at 9 QQ回复联系人11": "schedule_unclear",
    "every hour at 15 QQ回复联系人11": "schedule_unclear",
    "every hour and a half QQ回复联系人11": "schedule_unclear",
    "每天9点1刻钟 巡检": "schedule_unclear",
    "daily at 9 in the evening QQ回复联系人11": "schedule_unclear",
    "tomorrow at 9 in the evening QQ回复联系人11": "schedule_unclear",
    "daily at 9 o'clock QQ回复联系人11": "schedule_unclear",
    "工作日每5分钟 9:00-12:00, 13:00-18:00 巡检": "schedule_unclear",
    "工作日9点到12点每5分钟，13点到18点每10分钟 巡检": "schedule_unclear",
    "每天9点 1刻 巡检": "schedule_unclear",
    "工作日9点到18点每5分钟，其他时间每小时 巡检": "schedule_unclear",
    "每天9点，周末除外 QQ回复联系人11": "schedule_unclear",
    "每天9点除周末 巡检": "schedule_unclear",
    "每天9点 持续一周 巡检": "schedule_unclear",
    "weekdays 9:00-18:00 every 5m except 12:00-13:00 巡检": "schedule_unclear",
    "every monday at 9 except holidays QQ回复联系人11": "schedule_unclear",
    "每天9点之前 QQ回复联系人11": "schedule_unclear",
    "每天9点起每5分钟 巡检": "schedule_unclear",
    "每天9点开始每5分钟 巡检": "schedule_unclear",
    "每5分钟到18点 巡检": "schedule_unclear",
    "每5分钟直到18点 巡检": "schedule_unclear",
    "every 5m until 18:00 巡检": "schedule_unclear",
    "every 5m during business hours QQ回复联系人11": "schedule_unclear",
    "每天9点 18点开会提醒11": "schedule_unclear",
    "每天9点11的消息要回": "schedule_unclear",
    "每天9点 明天的天气发给11": "schedule_unclear",
    "每天9点和11确认": "schedule_unclear",
    "每天9点，11的消息": "schedule_unclear",
    "每周一9点每隔一周 巡检": "schedule_unclear",
    "每天9点左右 巡检": "schedule_unclear",
    "每天一点一 巡检": "schedule_unclear",
    "every 5m 9 to 5 QQ回复联系人11": "schedule_half_day",
    "每5分钟 9点到6点 巡检": "schedule_half_day",
    "每天9点到18点 巡检": "schedule_how_often",
    "on monday at 9 QQ回复联系人11": "schedule_which_week",
    "从明天开始每天9点 巡检": "schedule_what_time",
    "下周起每天9点 巡检": "bad_schedule",
}


@pytest.mark.parametrize(("written", "expected"), TOLD_APART.items(), ids=TOLD_APART)
def test_nothing_that_was_said_of_the_time_goes_into_the_task(written: str, expected: tuple[str, str] | str) -> None:
    found: tuple[str, str] | str
    try:
        when, task = split(written)
        found = understand(when, ZONE, NOW), task
    except InputRejected as error:
        found = error.key
    assert found == expected


def test_the_end_of_a_window_is_not_in_it() -> None:
    times = parse_schedule("every 20m 09:30-10:30 * * 1-5", ZONE).next(NOW, 4)
    assert [f"{moment.astimezone(ZoneInfo(ZONE)):%a %H:%M}" for moment in times] == [
        "Mon 09:30", "Mon 09:50", "Mon 10:10", "Tue 09:30",
    ]  # fmt: skip
    assert windows_of("every 5m 09:00-18:00 * * 1-5", ZONE) == (("09:00-18:00", "17:55"),)
    assert windows_of("every 30m 22:00-02:00 | 0 9 * * *", ZONE) == (("22:00-02:00", "01:30"),)
    assert windows_of("every 5m 00:00-24:00 * * 6", ZONE) == ()


@settings(deadline=None, max_examples=examples(200))
@given(st.lists(st.sampled_from([*MEANT, *UNCLEAR, " ", "和", "每", "周", "9", ":", "点", "to", "|", "*"]), max_size=4))
def test_whatever_is_written_is_understood_or_refused(parts: list[str]) -> None:
    written = "".join(parts)
    with suppress(InputRejected):
        split(written)
    try:
        parse_schedule(understand(written, ZONE, NOW), ZONE).next(NOW, 3)
    except InputRejected as error:
        said = error.key
    else:
        said = "understood"
    assert said
