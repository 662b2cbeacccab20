"""What the virtual phone tells of taps."""

from __future__ import annotations

import pytest

from agent_core.devices.virtual.phone import VirtualPhone
from agent_core.devices.virtual.scenario import ContactPart, MessagePart, Scenario


async def test_a_tap_on_a_message_is_told_by_its_words_and_one_on_nothing_by_none() -> None:
    history = [MessagePart(text="看 http://shop.example/x", ago=60)]
    phone = VirtualPhone(Scenario(contacts=[ContactPart(name="11", history=history)]))
    phone.show_chat("11")
    message = next(node for node in await phone.tree() if node.text == "看 http://shop.example/x").box.center
    await phone.tap(message.x, message.y)
    await phone.tap(500, 1500)
    assert [tap["on"] for tap in phone.report()["taps"]] == ["看 http://shop.example/x", ""]


async def _with_draft() -> tuple[VirtualPhone, float, float]:
    """A chat with a draft, and where Send stands."""
    phone = VirtualPhone(Scenario(contacts=[ContactPart(name="11", draft="好的")]))
    phone.show_chat("11")
    send = next(node for node in await phone.tree() if node.text == "发送").box.center
    return phone, send.x, send.y


@pytest.mark.parametrize("seconds", [0.1, 1.0], ids=["short", "held"])
@pytest.mark.parametrize(("x", "y"), [(0, 0), (5, -8), (60, 0)], ids=["still", "trembling", "along_the_button"])
async def test_a_swipe_that_stays_on_a_button_clicks_it(x: float, y: float, seconds: float) -> None:
    phone, left, top = await _with_draft()
    await phone.swipe(left, top, left + x, top + y, seconds)
    assert phone.report()["sent"] == {"11": ["好的"]}


@pytest.mark.parametrize(("x", "y"), [(-300, 0), (0, -600)], ids=["aside", "up"])
async def test_a_swipe_that_leaves_a_button_clicks_nothing(x: float, y: float) -> None:
    phone, left, top = await _with_draft()
    await phone.swipe(left, top, left + x, top + y, 0.1)
    assert phone.report()["sent"] == {}
    assert phone.report()["taps"] == []


@pytest.mark.parametrize(("seconds", "opened"), [(0.1, ["11"]), (1.0, [])], ids=["tap", "long_press"])
async def test_a_swipe_that_stands_on_a_row_opens_it_unless_it_is_held(seconds: float, opened: list[str]) -> None:
    phone = VirtualPhone(Scenario(contacts=[ContactPart(name="11", history=[MessagePart(text="在吗", ago=60)])]))
    await phone.launch("com.tencent.mobileqq")
    row = next(node for node in await phone.tree() if node.text == "11").box.center
    await phone.swipe(row.x, row.y, row.x, row.y, seconds)
    assert phone.report()["chats_opened"] == opened
    assert [one["what"] for one in phone.report()["actions"]].count("long_press") == (not opened)
