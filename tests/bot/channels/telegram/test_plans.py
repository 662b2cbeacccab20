"""A plan in Telegram: one card, from the command to what came of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from bot.app.settings.sections import PlannerSettings
from bot.channels.telegram.adapter import TelegramAdapter
from bot.channels.telegram.options import TelegramOptions
from simulator.telegram import FakeTelegram
from storage.chats import TopicTable
from storage.leases import Leases
from storage.messages import InboxTable, OutboxTable
from tests.support.model_server import Hang
from tests.support.plans import act, asks, calls, finish, plan_house
from tests.support.talker import talker

FAST: dict[str, Any] = {"edit_private": 0.05, "edit_group": 0.05, "retry": (0.02, 0.05), "poll_seconds": 5}


async def test_one_card_from_the_command_to_the_end(tmp_path: Path, tg: FakeTelegram) -> None:
    phone_says: list[Any] = [act('do(action="Launch", app="微信")'), finish("微信已打开"), finish("没找到"), Hang()]
    async with plan_house(tmp_path, [calls(("list_devices", {}))], phone_says) as house:
        device = house.serials[0]
        house.planner.script += [
            asks(device, "打开微信"),
            asks("nowhere", "看看"),
            asks(device, "找<b>张三</b>"),
            "<i>做完了</i> & 好",
            asks(device, "再打开一次"),
        ]
        db = house.core.db
        options = TelegramOptions(tg.token, base_url=tg.url, base_file_url=tg.file_url, **FAST)
        async with TelegramAdapter(
            house.desk, InboxTable(db), OutboxTable(db), options, topics=TopicTable(db)
        ) as adapter:
            await asyncio.wait_for(adapter.ready.wait(), 10)
            user = tg.user(11, "小王", "zh")
            await user.send(f"/start {await house.desk.people.first_code()}")
            await user.sees(lambda chat: chat.saying("小王"))
            assert "/plan: " in await talker(house.desk, "11", "小王").say("/help")
            await user.send("/plan")
            await user.sees(lambda chat: chat.saying("/plan 打开微信"))
            await user.send("/plan 打开微信,找张三")
            await user.sees(lambda chat: chat.saying("计划完成"))
            card = user.chat.saying("计划完成")[-1]
            for line in (
                "✓ 查看有哪些手机",
                "✓ 打开微信",
                "✗ 看看",
                "没有 id 为 nowhere 的手机",
                "✓ 找<b>张三</b>",
                "<i>做完了</i> & 好",
            ):
                assert line in card.words, card.words
            assert card.photo is not None
            assert user.chat.saying("打开微信,找张三") == [card]  # one message from the beginning to the end
            await user.send("再来", reply_to=card)  # in the same conversation
            await user.sees(lambda chat: chat.saying("… 再打开一次"))
            card = user.chat.saying("… 再打开一次")[-1]
            said = [message.get("content") for message in house.planner.requests[-1]["messages"]]
            assert [one for one in said if one in {"打开微信,找张三", "再来"}] == ["打开微信,找张三", "再来"]
            await user.tap(card, "停止")
            await user.sees(lambda chat: chat.saying("计划已停止"))
            assert "✗ 再打开一次" in user.chat.saying("计划已停止")[-1].words
            assert await Leases(db).held() == []
            await user.send("/history")
            await user.sees(lambda chat: chat.saying("属于计划 #1"))
            house.core.settings = house.core.settings.model_copy(update={"planner": PlannerSettings()})
            await user.send("规划 再来")
            await user.sees(lambda chat: chat.saying("PHONEDESK_PLANNER__BASE_URL"))
