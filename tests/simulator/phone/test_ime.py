from __future__ import annotations

import base64

import pytest

from simulator.phone import ime
from simulator.phone.port import InputRefused
from tests.simulator.phone.hand import Hand, chat


async def focused(scenario: str = "") -> Hand:
    hand = Hand(scenario or chat("在吗"))
    await hand.open_chat()
    await hand.tap("input")
    return hand


async def draft(hand: Hand) -> str:
    return (await hand.node("input")).text


def b64(text: str) -> dict[str, str]:
    return {"msg": base64.b64encode(text.encode()).decode()}


async def test_broadcasts_type_nothing_unless_adb_keyboard_is_the_current_one() -> None:
    hand = await focused()
    await hand.phone.broadcast("ADB_INPUT_B64", b64("您好"), ime.ADB_PACKAGE)
    assert await draft(hand) == ""
    assert hand.phone.choose_input_method(ime.ADB)
    assert (await hand.node("input")).focused  # the field keeps the focus
    await hand.phone.broadcast("ADB_INPUT_B64", b64("您好"), ime.ADB_PACKAGE)
    assert await draft(hand) == "您好"


async def test_the_words_of_adb_keyboard() -> None:
    hand = await focused()
    hand.phone.choose_input_method(ime.ADB)
    await hand.phone.broadcast("ADB_INPUT_TEXT", {"msg": "a'b\"c "}, None)
    await hand.phone.broadcast("ADB_INPUT_B64", b64("好\n😊"), None)
    await hand.phone.broadcast("ADB_INPUT_B64", {"msg": "%%%"}, None)
    await hand.phone.broadcast("ADB_INPUT_CHARS", {"chars": "33,128522"}, None)
    assert await draft(hand) == "a'b\"c 好\n😊!😊"
    await hand.phone.broadcast("ADB_INPUT_CODE", {"code": "67"}, None)
    assert await draft(hand) == "a'b\"c 好\n😊!"
    await hand.phone.broadcast("ADB_CLEAR_TEXT", {}, None)
    assert await draft(hand) == ""


async def test_newer_phones_drop_broadcasts_without_the_package() -> None:
    hand = await focused(chat("在吗", extra="[keyboard]\nneeds_package = true\ncurrent = 'adb'"))
    await hand.phone.broadcast("ADB_INPUT_B64", b64("您好"), None)
    assert await draft(hand) == ""
    await hand.phone.broadcast("ADB_INPUT_B64", b64("您好"), ime.ADB_PACKAGE)
    assert await draft(hand) == "您好"


async def test_a_stuck_keyboard_types_nothing_though_it_is_the_current_one() -> None:
    hand = await focused()
    hand.phone.set_fault("stuck_keyboard")
    await hand.type("您好")
    assert await draft(hand) == ""
    assert hand.phone.report()["input_method"] == ime.ADB


async def test_without_a_focused_field_nothing_is_typed() -> None:
    hand = Hand()
    await hand.open_chat()
    await hand.type("您好")
    await hand.phone.text("abc")
    assert await draft(hand) == ""
    assert hand.phone.report()["typed"] == []


async def test_input_text_is_ascii_only() -> None:
    hand = await focused()
    await hand.phone.text("ok 好 1")
    assert await draft(hand) == "ok  1"


async def test_another_keyboard_can_be_refused_or_missing() -> None:
    hand = await focused(chat("在吗", extra="[keyboard]\nadb_installed = false"))
    assert not hand.phone.choose_input_method(ime.ADB)
    assert ime.ADB_PACKAGE not in hand.phone.apps
    hand.phone.set_fault("ime_refused")
    with pytest.raises(InputRefused):
        hand.phone.choose_input_method(ime.SOGOU)


@pytest.mark.parametrize("sends", [True, False])
async def test_enter_sends_or_makes_a_new_line_as_the_scenario_says(sends: bool) -> None:
    hand = await focused(chat("在吗", extra=f"enter_sends = {str(sends).lower()}"))
    await hand.type("一")
    await hand.phone.broadcast("ADB_EDITOR_CODE", {"code": "4"}, None)
    await hand.type("二")
    await hand.phone.key("ENTER")
    assert hand.phone.report()["sent"] == ({"11": ["一", "二"]} if sends else {})
    assert await draft(hand) == ("" if sends else "一二\n")


async def test_the_drawn_keyboard_moves_the_input_up_and_types() -> None:
    hand = Hand(chat("在吗"))
    await hand.open_chat()
    low = (await hand.node("input")).box
    await hand.tap("input")
    high = (await hand.node("input")).box
    assert high.bottom < 1560 < low.top
    assert hand.phone.keyboard_shown()
    await hand.phone.tap(60, 1750)  # q, the first key
    assert await draft(hand) == "q"
    await hand.phone.key("BACK")
    assert not hand.phone.keyboard_shown()
    assert (await hand.node("input")).box.top == low.top


async def test_the_input_grows_to_five_lines_and_no_further() -> None:
    hand = await focused()
    heights = []
    for _ in range(7):
        heights.append((await hand.node("input")).box.height)
        await hand.type("字\n")
    assert heights[0] < heights[1] < heights[2] < heights[3] < heights[4]
    assert heights[4] == heights[5] == heights[6]
