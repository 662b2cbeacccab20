"""Typing and deleting while an app is learnt: what a touch or an error leaves in the input is told."""

from __future__ import annotations

import pytest

from agent_core.apps.learning import AppLearning
from agent_core.apps.profile import profile
from agent_core.errors import LearningFailed, LeaseLost, TextInputFailed
from agent_core.loop.defaults import FreeLease
from agent_core.perception.observer import Observer
from agent_core.perception.readings import Side
from bot.channels.chat.texts import texts
from tests.agent_core.paper import QQ, Chat, Clock, Flaws, Message, PaperReader
from tests.agent_core.reply.paper_desk import WatchedPhone


def desk(**flaws: object) -> tuple[WatchedPhone, AppLearning]:
    chat = Chat("小号", [Message(Side.THEM, "在吗"), Message(Side.ME, "在的")])
    clock = Clock()
    phone = WatchedPhone([chat], Flaws(**flaws), clock)  # type: ignore[arg-type]  # flaws of it
    phone.front, phone.page, phone.open = QQ, "chat", "小号"
    return phone, AppLearning(Observer(phone, PaperReader(phone)), profile("qq"), FreeLease(), clock)


async def test_a_text_is_typed_and_deleted() -> None:
    phone, learning = desk()
    tried = await learning.type_and_delete(await learning.in_front(), "测试")
    assert (tried.sends_by, tried.sent) == ("button", None)
    assert phone.facts.typed == [("小号", "测试")]
    assert phone.chats["小号"].draft == ""


@pytest.mark.parametrize("send", [False, True])
async def test_after_a_touch_nothing_is_deleted_and_the_text_is_told(send: bool) -> None:
    phone, learning = desk()
    phone.on_type = [phone.touch]
    with pytest.raises(LearningFailed) as failed:
        await learning.type_and_delete(await learning.in_front(), "测试", send=send)
    assert failed.value.key == "learn_text_left"
    assert phone.chats["小号"].draft == "测试", "the input is the person's now"
    said = texts("zh").error(failed.value)
    assert "有人碰了手机" in said
    assert "测试" in said
    assert phone.chats["小号"].messages[-1].text == "在的", "nothing was sent"


async def test_a_touch_after_the_text_has_arrived_changes_nothing() -> None:
    phone, learning = desk()
    phone.on_send = [phone.touch]
    tried = await learning.type_and_delete(await learning.in_front(), "测试", send=True)
    assert tried.sent
    assert phone.chats["小号"].draft == ""


async def test_the_first_error_is_told_though_the_text_cannot_be_deleted() -> None:
    phone, learning = desk(types=("cut",))
    phone.clears = False
    with pytest.raises(LearningFailed) as failed:
        await learning.type_and_delete(await learning.in_front(), "测试一下")
    assert failed.value.key == "learn_text_left"
    assert isinstance(failed.value.__cause__, LearningFailed)
    assert failed.value.__cause__.key == "learn_not_typed"
    assert "ADB Keyboard" in texts("en").error(failed.value)


async def test_the_first_error_stays_if_the_input_is_empty() -> None:
    phone, learning = desk()
    phone.type_errors = [TextInputFailed("scripted")]
    with pytest.raises(TextInputFailed):
        await learning.type_and_delete(await learning.in_front(), "测试")
    phone.tap_errors = [LeaseLost("taken")]
    with pytest.raises(LeaseLost):
        await learning.type_and_delete(await learning.in_front(), "测试")
