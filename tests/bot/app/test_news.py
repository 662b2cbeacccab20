"""The whole server: a digest that was due while it was off goes out once, however often it starts."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

import pytest

from bot.app.server import server
from bot.app.settings.sections import DigestSettings, TelegramSettings
from bot.tools.demo.world import demo_world
from simulator.telegram import Chat, FakeTelegram
from tests.bot.app.yesterday import ZONE, what_was_yesterday


def _told_of_themselves(chat: Chat, times: int) -> bool:
    return len(chat.saying("语言：")) == times


@pytest.mark.device
async def test_a_digest_that_was_missed_goes_out_once() -> None:
    due = datetime.now(ZoneInfo(ZONE)) - timedelta(hours=1)
    async with FakeTelegram() as tg, demo_world() as world:
        telegram = TelegramSettings(token=tg.token, api_base_url=tg.url.removesuffix("/bot"))
        changes = {"telegram": telegram, "digest": DigestSettings(daily=f"{due:%H:%M}", weekly="off"), "timezone": ZONE}
        settings = world.settings.model_copy(update=changes)
        await what_was_yesterday(settings)
        owner = tg.user(11, "Anna", "zh")
        await owner.send("/start")
        for times in (1, 2):
            async with server(settings):
                await owner.sees(lambda chat: chat.saying("每日小结")[0])
                await owner.send("/whoami")  # when that is answered, what came before is written down as sent
                await owner.sees(partial(_told_of_themselves, times=times))
        (digest,) = owner.chat.saying("每日小结")
        assert "（100%）" in digest.words
        assert digest.photo is not None
