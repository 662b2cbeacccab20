"""Schedules over Telegram: what is echoed, what is refused, and a tick that starts a run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from scheduler.times import parse_schedule
from tests.acceptance.stage import PATIENCE, QUICK_TASK, TASK, ZONE, Stage

CRON = "*/5 9-18 * * 1-5"


def workday_times(after: datetime, count: int = 3) -> list[str]:
    """The next times of CRON, minute by minute: every five minutes from 9:00 to 18:55, Monday to Friday."""
    found: list[str] = []
    minute = after.astimezone(ZoneInfo(ZONE)).replace(second=0, microsecond=0)
    while len(found) < count:
        minute += timedelta(minutes=1)
        if minute.minute % 5 == 0 and 9 <= minute.hour <= 18 and minute.isoweekday() <= 5:
            found.append(f"{minute:%m-%d %H:%M}")
    return found


def coming_in(seconds: float) -> str:
    """An ``every …`` of at least ten minutes whose next time is so many seconds from now, or a little later."""
    now = datetime.now(UTC)
    for length in range(600, 400_000):
        [coming] = parse_schedule(f"every {length}s", ZONE).next(now)
        if timedelta(seconds=seconds) <= coming - now <= timedelta(seconds=seconds + 8):  # 2 s have none at times
            return f"every {length}s"
    raise AssertionError("no interval fits")


@pytest.mark.rotating(parts=2)
async def test_schedules_are_echoed_refused_and_kept_and_a_tick_starts_one_run(on: Stage) -> None:
    server = await on.serve()
    owner = await on.owner(server)

    every = coming_in(8)
    await owner.send(f'/schedule add "{every}" {QUICK_TASK}')
    added = await on.sees(owner, "已添加定时任务 #1")
    assert every in added.words

    before = workday_times(datetime.now(UTC))
    await owner.send(f'/schedule add "{CRON}" {TASK}')
    added = await on.sees(owner, "已添加定时任务 #2")
    after = workday_times(datetime.now(UTC))
    assert CRON in added.words
    assert TASK in added.words
    assert f"接下来：{'、'.join(before)}" in added.words or f"接下来：{'、'.join(after)}" in added.words

    await owner.send(f'/schedule add "61 9 * * *" {TASK}')
    refused = await on.sees(owner, "没看懂这个时间")
    assert "61 9 * * *" in refused.words
    await owner.send(f'/schedule add "every 5s" {TASK}')
    refused = await on.sees(owner, "这个间隔不行：every 5s")
    assert "30" in refused.words  # the shortest that is allowed

    await owner.send("/schedule pause 2")
    await on.sees(owner, "已暂停定时任务 #2")
    await owner.send("/schedule list")
    listed = (await on.sees(owner, "定时任务\n#1")).words
    assert f"#2 {CRON} · 已暂停" in listed
    assert every in listed
    await owner.send("/schedule resume 2")
    assert "接下来" in (await on.sees(owner, "已恢复定时任务 #2")).words
    await owner.send("/schedule remove 2")
    await on.sees(owner, "已删除定时任务 #2")

    # The tick: a card of its own in the chat where the schedule was made, and one run.
    shown = f"任务：{QUICK_TASK}"
    [card] = await owner.sees(
        lambda chat: [m for m in chat.saying(shown) if m.reply_to is None],  # echo and list answer what was written
        timeout=PATIENCE,
    )
    await on.shows(owner, card, "已完成")
    [run] = await on.runs()
    assert (run.task, run.status) == (QUICK_TASK, "succeeded")
    assert on.report["opened"] == ["com.android.settings"]
    await owner.send("/schedule remove 1")
    await on.sees(owner, "已删除定时任务 #1")
    await owner.send("/schedule list")
    await on.sees(owner, "还没有定时任务")
