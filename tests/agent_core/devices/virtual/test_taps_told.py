"""What the virtual phone tells of taps."""

from __future__ import annotations

from agent_core.devices.virtual.phone import VirtualPhone
from agent_core.devices.virtual.scenario import ContactPart, MessagePart, Scenario


async def test_a_tap_on_a_message_is_told_by_its_words_and_one_on_nothing_by_none() -> None:
    history = [MessagePart(text="看 http://shop.example/x", ago=60)]
    phone = VirtualPhone(Scenario(contacts=[ContactPart(name="11", history=history)]))
    phone.show_chat("11")
    await phone.tap(300, 400)
    await phone.tap(500, 1500)
    assert [tap["on"] for tap in phone.report()["taps"]] == ["看 http://shop.example/x", ""]
