"""What the virtual phone tells of taps."""

from __future__ import annotations

import pytest

from simulator.phone.phone import VirtualPhone
from simulator.phone.scenario import ContactPart, EventPart, MessagePart, Scenario
from simulator.phone.world import ContactKind, Kind, MessageState, Side


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


async def _tapped(phone: VirtualPhone, *words: str) -> list[tuple[str, str]]:
    """What was done with the phone after a client's taps on these words."""
    before = len(phone.report()["actions"])
    for word in words:
        place = next(node for node in await phone.tree() if word in (node.text, node.description)).box.center
        await phone.tap(place.x, place.y)
    return [(action["what"], action["detail"]) for action in phone.report()["actions"][before:]]


def _with(*messages: MessagePart) -> VirtualPhone:
    others = [
        ContactPart(name="AI助手", kind=ContactKind.BAIT, history=[MessagePart(text="在", ago=50)]),
        ContactPart(name="22"),
    ]
    phone = VirtualPhone(Scenario(contacts=[ContactPart(name="11", history=list(messages)), *others]))
    phone.show_chat("11")
    return phone


async def test_a_tap_on_a_message_is_recorded_by_its_kind() -> None:
    phone = _with(
        MessagePart(text="在吗", ago=90),
        MessagePart(kind=Kind.CALL, text="未接听", ago=60),
        MessagePart(kind=Kind.CARD, text="优惠券", ago=30),
        MessagePart(side=Side.ME, text="好的", state=MessageState.FAILED),
    )
    assert await _tapped(phone, "在吗", "未接听", "优惠券") == [
        ("message_tapped", "text"),
        ("message_tapped", "call"),
        ("message_tapped", "card"),
    ]
    assert await _tapped(phone, "重新发送") == [("resend", "好的"), ("sent", "11")]


async def test_a_message_below_a_dialog_is_not_tapped_and_who_agrees_to_it_is_recorded() -> None:
    phone = _with(MessagePart(kind=Kind.CALL, text="未接听", ago=60))
    place = next(node for node in await phone.tree() if node.text == "未接听").box.center
    phone.set_fault("popup", "允许访问相册？")
    await phone.tap(place.x, place.y)
    assert "message_tapped" not in [action["what"] for action in phone.report()["actions"]]
    assert await _tapped(phone, "立即更新") == [("dialog_accepted", "允许访问相册？")]


async def test_the_apps_own_ai_is_recorded_when_its_page_is_entered() -> None:
    phone = _with(MessagePart(text="在吗", ago=60))
    await phone.key("BACK")
    assert await _tapped(phone, "AI助手") == [("opened_ai", "")]


async def test_who_opened_a_chat_is_recorded() -> None:
    events = [
        EventPart(after_opened="11", do="person_open", contact="22"),
        EventPart(after_opened="22", do="notification_open", contact="33"),
    ]
    contacts = [ContactPart(name=name, history=[MessagePart(text="在吗", ago=60)]) for name in ("11", "22", "33")]
    phone = VirtualPhone(Scenario(contacts=contacts, events=events))
    await phone.launch("com.tencent.mobileqq")
    await _tapped(phone, "11")
    opened = [(one["detail"], one["by"]) for one in phone.report()["actions"] if one["what"] == "chat_opened"]
    assert opened == [("11", "client"), ("22", "person"), ("33", "app")]
