"""Text through WebDriverAgent's keys."""

from __future__ import annotations

import asyncio

import pytest

from agent_core.devices.base import Key
from agent_core.devices.wda.input import CHUNK
from agent_core.errors import CommandFailed, LeaseLost, TextInputFailed
from agent_core.geometry import Point
from tests.agent_core.devices.wda.conftest import Bench

TEXTS = ["您好，48小时内发货。", "a\"b'c\\d $(x) `y`", "👨‍👩‍👧 😀 é ñ ß", "一\n二\r\n三", "字" * (2 * CHUNK + 7)]


@pytest.mark.parametrize("text", TEXTS)
async def test_any_text_is_typed(bench: Bench, text: str) -> None:
    await bench.open_chat()
    async with bench.device.keyboard() as keyboard:
        await keyboard.type(text)
    assert bench.draft() == text.replace("\r\n", "\n")
    assert bench.phone.report()["sent"] == {}


async def test_a_new_line_never_presses_a_key_that_sends(bench: Bench) -> None:
    await bench.open_chat()
    assert bench.phone.focus is not None
    bench.phone.focus.enter_acts, bench.phone.focus.action_key = True, "发送"
    async with bench.device.keyboard() as keyboard:
        await keyboard.type("第一行\n 第二行")
        assert (bench.draft(), bench.phone.report()["sent"]) == ("第一行 第二行", {})
        await keyboard.send_action()
    assert bench.phone.report()["sent"] == {"11": ["第一行 第二行"]}


async def test_a_field_is_emptied(bench: Bench) -> None:
    await bench.open_chat()
    async with bench.device.keyboard() as keyboard:
        await keyboard.type("旧的字 😀")
        await keyboard.clear()
        assert bench.draft() == ""
        await keyboard.clear()
        await keyboard.type("新")
    assert bench.draft() == "新"


async def test_keys_of_the_keyboard(bench: Bench) -> None:
    await bench.open_chat()
    async with bench.device.keyboard() as keyboard:
        await keyboard.type("ab")
        await keyboard.key(Key.DELETE)
        await keyboard.key(Key.ENTER)
    assert bench.draft() == "a\n"


async def test_without_a_field_nothing_is_typed(bench: Bench) -> None:
    async with bench.device.keyboard() as keyboard:
        with pytest.raises(TextInputFailed):
            await keyboard.type("x")
        with pytest.raises(TextInputFailed) as caught:
            await keyboard.clear()
    assert caught.value.key == "wda_no_field"


async def test_who_has_lost_the_phone_types_and_taps_nothing(bench: Bench) -> None:
    await bench.open_chat()
    async with bench.device.keyboard() as keyboard:
        await keyboard.type("a")
        await bench.another().recover()
        before = len(bench.taps())
        for act in (keyboard.type("b"), keyboard.clear(), keyboard.tap(Point(100, 300)), keyboard.send_action()):
            with pytest.raises(LeaseLost):
                await act
    assert bench.draft() == "a"
    assert len(bench.taps()) == before


async def test_a_webdriveragent_that_was_started_anew_is_no_other_owner(bench: Bench) -> None:
    await bench.open_chat()
    async with bench.device.keyboard() as keyboard:
        bench.wda.end_session()
        with pytest.raises(CommandFailed) as caught:
            await keyboard.type("b")
    assert caught.value.may_repeat
    async with bench.device.keyboard() as keyboard:
        await keyboard.type("b")
    assert bench.draft() == "b"


async def test_a_cancelled_text_ends_where_it_was(bench: Bench) -> None:
    await bench.open_chat()
    text = "字" * (20 * CHUNK)

    async def typing() -> None:
        async with bench.device.keyboard() as keyboard:
            await keyboard.type(text)

    task = asyncio.create_task(typing())
    while not bench.draft():
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert 0 < len(bench.draft()) < len(text)
    typed = bench.draft()
    await bench.device.screenshot()
    assert bench.draft() == typed
