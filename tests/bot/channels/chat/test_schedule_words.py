"""The stored times of a schedule in both languages."""

from __future__ import annotations

import pytest

from bot.channels.chat.schedule_words import in_words
from bot.channels.chat.texts import texts


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
