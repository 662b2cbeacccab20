"""``/devices learn`` in the chat, on a virtual phone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from agent_core.apps.learnt import LearntApp
from agent_core.perception.readings import DoubtKind
from bot.app.core import Core, open_core
from bot.app.learning import CoreLearning
from bot.app.settings.loading import load
from bot.channels.chat.cards import Card
from bot.channels.chat.conversation import Conversation
from bot.channels.chat.learning import LearnCommand, asked
from bot.channels.chat.turn import Incoming, Person, Said
from bot.desk.actors import ChatRef, Role
from bot.desk.context import DeskContext
from bot.desk.desk import Desk
from bot.desk.people import new_code
from scheduler.runs.service import RunService
from simulator.phone.apps.looks import LOOKS
from simulator.phone.phone import VirtualPhone
from simulator.phone.scenario import ContactPart, MessagePart, Scenario
from simulator.phone.server import serve
from simulator.phone.world import Side
from storage.ledger import StoredLedger
from tests.support.adb import adb_server
from tests.support.ocr import needs_ocr

FRIEND = "小号"
CHAT = ChatRef("telegram", "11")


@pytest.mark.parametrize(
    ("rest", "meant"),
    [
        ("", None),
        ("S1", None),
        ("learn", ("", "", "", False)),
        ("learn wechat 小号", ("", "wechat", "小号", False)),
        ("认识 微信 小 号", ("", "wechat", "小 号", False)),
        ("学习 S1 QQ “小号”", ("S1", "qq", "小号", False)),
        ("learn 127.0.0.1:16001 qq here", ("127.0.0.1:16001", "qq", "", True)),
        ("认识 微信 这里", ("", "wechat", "", True)),
    ],
)
def test_what_is_meant(rest: str, meant: tuple[str, str, str, bool] | None) -> None:
    wanted = asked(rest)
    assert (wanted and _said(wanted)) == meant


def _said(wanted: LearnCommand) -> tuple[str, str, str, bool]:
    return (wanted.serial, wanted.app.key if wanted.app else "", wanted.contact, wanted.here)


@dataclass
class Talk:
    core: Core
    phone: VirtualPhone
    serial: str
    conversation: Conversation
    number: int = 0

    async def say(self, text: str = "", action: str = "") -> Said:
        self.number += 1
        kind = "button" if action else "text"
        return await self.conversation.handle(
            Incoming(kind, Person("11", "A"), CHAT, f"k{self.number}", text, action=action)  # type: ignore[arg-type]  # one of its kinds
        )

    async def card(self, text: str = "", action: str = "") -> Card:
        return (await self.say(text, action)).messages[0].card

    async def known(self, app: str) -> LearntApp | None:
        look = next(look for look in LOOKS.values() if look.app == app and look.version)
        version = self.phone.apps[{"qq": "com.tencent.mobileqq", "wechat": "com.tencent.mm"}[look.app]].version
        return await StoredLedger(self.core.db).learnt(self.serial, app, version)


@asynccontextmanager
async def talk(
    look: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    role: Role = Role.OWNER,
    *,
    others: Sequence[str] = (),
) -> AsyncIterator[Talk]:
    name = LOOKS[look].app
    history = [MessagePart(side=Side.ME, text="在的", ago=500), MessagePart(side=Side.THEM, text="明天见", ago=60)]
    more = [ContactPart(name=who, app=name, history=[MessagePart(text="在吗", ago=30)]) for who in others]
    contacts = [*more, ContactPart(name=FRIEND, app=name, history=history)]
    scenario = Scenario(look=look, contacts=contacts)
    async with serve(scenario) as running, adb_server() as adb:
        monkeypatch.setenv("PHONEDESK_DEVICE__ADB_PORT", str(adb.port))
        monkeypatch.setenv("PHONEDESK_DATA_DIR", str(folder))
        monkeypatch.setenv("PHONEDESK_LANG", "zh")
        await adb.connect(running.adb_port)
        async with open_core(load()) as core:
            house = DeskContext(
                core.db,
                RunService(core.db),
                core.attached.phones,
                core.attached.device,
                "Asia/Shanghai",
                page=core.page,
            )
            desk = Desk(replace(house, learning=CoreLearning(core)))
            if role is not Role.OWNER:
                await desk.people.pair(
                    "telegram", "1", "Chief", "zh", await new_code(core.db, Role.OWNER, created_by="test")
                )
            await desk.people.pair("telegram", "11", "A", "zh", await new_code(core.db, role, created_by="test"))
            yield Talk(core, running.phone, running.address, Conversation(desk))


@needs_ocr
async def test_owner_confirms_by_buttons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with talk("wechat-light", tmp_path, monkeypatch) as chat:
        shown = await chat.card(f"/devices 认识 微信 {FRIEND}")
        assert shown.picture is not None
        assert shown.lines[0].text.startswith(f"微信：标题 {FRIEND}，2 条消息，最新一条来自客户：明天见")
        yes, send, wrong = (row[0] for row in shown.buttons)
        assert [line.text for line in shown.lines if line.label == FRIEND], "the list is shown, too"
        assert (await chat.card(action=wrong.action)).title == "哪里读错了？"
        assert await chat.known("wechat") is None
        done = await chat.card(action=yes.action)
        assert "已记住" in done.title
        learnt = await chat.known("wechat")
        assert learnt is not None
        assert (learnt.sends_by, learnt.confirmed_by, len(learnt.looks)) == ("button", "A", 1)
        assert chat.phone.report()["sent"] == {}
        await chat.card(action=send.action)
        assert list(chat.phone.report()["sent"].values()) == [["测试"]]


@needs_ocr
async def test_what_was_read_wrongly_is_said_by_buttons_and_stays_in_doubt_until_all_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with talk("wechat-light", tmp_path, monkeypatch) as chat:
        shown = await chat.card(f"/devices 认识 微信 {FRIEND}")
        asks = await chat.card(action=shown.buttons[2][0].action)
        labels = [row[0].label for row in asks.buttons]
        assert labels[:2] == ["第 1 条是客户发的", "第 2 条是我们发的"]
        assert labels[2:] == ["标题", "消息的文字或种类", "输入框或发送按钮", "聊天列表", "其他"]
        noted = await chat.card(action=asks.buttons[0][0].action)
        assert "已记下：消息是谁发的读错了" in noted.title
        await chat.card(action=asks.buttons[2][0].action)
        learnt = await chat.known("wechat")
        assert learnt is not None
        assert (learnt.wrong, learnt.looks, learnt.confirmed_by) == (("sides", "title"), (), "A")
        page = (await chat.core.page(await chat.core.attached.device(chat.serial))).page
        assert page.chat is not None
        assert (page.chat.sure, page.chat.title_sure) == (False, False)
        assert {(doubt.kind, doubt.text) for doubt in page.chat.doubts} == {
            (DoubtKind.SAID_WRONG, "sides"),
            (DoubtKind.SAID_WRONG, "title"),
        }
        again = await chat.card(action=noted.buttons[1][0].action)
        assert any("有人说这里读错了：标题" in line.text for line in again.lines)
        assert "已记住" in (await chat.card(action=again.buttons[0][0].action)).title
        learnt = await chat.known("wechat")
        assert learnt is not None
        assert (learnt.wrong, len(learnt.looks)) == ((), 1)


@needs_ocr
async def test_a_chat_further_down_the_list_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = [f"客户{number}" for number in range(20)]
    async with talk("qq-plain", tmp_path, monkeypatch, others=others) as chat:
        shown = await chat.card(f"/devices learn qq {FRIEND}")
        assert shown.lines[0].text.startswith(f"QQ：标题 {FRIEND}")
        assert set(chat.phone.report()["chats_opened"]) == {FRIEND}
        assert "没有没有的人" in str(await chat.say("/devices learn qq 没有的人"))


@pytest.mark.rotating(parts=3)
@needs_ocr
async def test_owner_says_what_sends_if_no_button_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with talk("wechat-enter", tmp_path, monkeypatch) as chat:
        shown = await chat.card(f"/devices learn wechat {FRIEND}")
        asks = await chat.card(action=shown.buttons[0][0].action)
        assert await chat.known("wechat") is None
        assert ["看起来是" in row[0].label for row in asks.buttons] == [False, True, False]
        await chat.card(action=asks.buttons[0][0].action)
        learnt = await chat.known("wechat")
        assert learnt is not None
        assert learnt.sends_by == "enter"


@needs_ocr
async def test_what_is_not_named_or_forgotten_is_told_and_only_owners_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with talk("qq-plain", tmp_path, monkeypatch) as chat:
        assert "请写应用" in (await chat.card("/devices learn qq")).title
        assert "重新开始" in str(await chat.say(action="learn:12345678 yes"))
        assert "没有连接手机 S9" in str(await chat.say(f"/devices learn S9 qq {FRIEND}"))
        assert chat.phone.report()["taps"] == []
    async with talk("qq-plain", tmp_path / "other", monkeypatch, Role.OPERATOR) as chat:
        assert "管理员" in str(await chat.say(f"/devices learn qq {FRIEND}"))
        assert chat.phone.report()["taps"] == []
