"""Text through ADB Keyboard, and the owner's keyboard back afterwards."""

from __future__ import annotations

import asyncio

import pytest

from agent_core.devices.adb.keyboard import CHUNK_BYTES, Keyboard
from agent_core.devices.base import Key, TextInput
from agent_core.errors import DeviceOffline, LeaseLost, TextInputFailed
from agent_core.geometry import Point
from tests.agent_core.devices.adb.conftest import ADB_KEYBOARD, SOGOU, Bench

MARKER = ("global", "phonedesk_previous_ime")


def current(bench: Bench) -> str:
    return bench.phone.report()["input_method"]


@pytest.mark.parametrize(
    "text",
    [
        "你好，请问几天能发货？",
        "two\nlines",
        'it\'s "quoted" $(reboot) `id` ; input keyevent 26 # \\ %s',
        "😀👨‍👩‍👧 e\u0301",
        " leading and trailing ",
        "a" * 3,
    ],
)
async def test_text_arrives_as_it_is(bench: Bench, text: str) -> None:
    await bench.open_chat()
    async with bench.device.keyboard() as keyboard:
        await keyboard.type(text)
    assert bench.draft() == text


async def test_long_text_goes_in_parts_below_the_limit(bench: Bench) -> None:
    text = "很长的回答。" * 5000
    await bench.open_chat()
    async with bench.device.keyboard() as keyboard:
        await keyboard.type(text)
    assert bench.draft() == text
    assert max(len(call.encode()) for call in bench.calls) < 65_535


async def test_clear_then_type_replaces(bench: Bench) -> None:
    await bench.open_chat()
    async with bench.device.keyboard() as keyboard:
        await keyboard.type("old")
        await keyboard.clear()
        await keyboard.type("new")
    assert bench.draft() == "new"


async def test_clearing_by_keys(bench: Bench) -> None:
    await bench.open_chat()
    async with bench.device.keyboard() as keyboard:
        await keyboard.type("old text")
        assert isinstance(keyboard, Keyboard)
        await keyboard.clear_by_keys()
    assert bench.draft() == ""


@pytest.mark.parametrize(("enter_acts", "left"), [(True, ""), (False, "在的")])
async def test_the_send_action_is_what_the_keyboards_own_key_does(bench: Bench, enter_acts: bool, left: str) -> None:
    await bench.open_chat()
    field = bench.phone.chat_field()
    assert field is not None
    field.enter_acts = enter_acts
    async with bench.device.keyboard() as keyboard:
        await keyboard.type("在的")
        await keyboard.send_action()
    assert bench.draft() == left  # never a new line
    assert bench.phone.report()["sent"] == ({"11": ["在的"]} if enter_acts else {})


async def test_nothing_is_sent_for_an_empty_text(bench: Bench) -> None:
    async with bench.device.keyboard() as keyboard:
        before = bench.device.round_trips
        await keyboard.type("")
        assert bench.device.round_trips == before


async def test_the_keyboard_is_ours_inside_and_the_owners_outside(bench: Bench) -> None:
    async with bench.device.keyboard():
        assert current(bench) == ADB_KEYBOARD
        assert bench.phone.settings[MARKER].startswith(f"{SOGOU}#")
        async with bench.device.keyboard():
            pass
        assert current(bench) == ADB_KEYBOARD
    assert current(bench) == SOGOU
    assert MARKER not in bench.phone.settings


async def test_taking_and_giving_back_takes_three_calls(bench: Bench) -> None:
    await bench.device.look()
    before = bench.device.round_trips
    async with bench.device.keyboard():
        pass
    assert bench.device.round_trips == before + 3


async def test_back_after_an_error(bench: Bench) -> None:
    with pytest.raises(ZeroDivisionError):
        async with bench.device.keyboard():
            raise ZeroDivisionError
    assert current(bench) == SOGOU


@pytest.mark.rotating(parts=3)
@pytest.mark.parametrize("later", [0, 3, 40])
@pytest.mark.parametrize("calls", range(4))  # none, read, changed, typed
async def test_back_whenever_a_run_is_cancelled(bench: Bench, calls: int, later: int) -> None:
    async def run() -> None:
        async with bench.device.keyboard() as keyboard:
            await keyboard.type("half a text")
            await asyncio.Event().wait()

    await bench.open_chat()
    before = len(bench.calls)
    task = asyncio.create_task(run())
    while len(bench.calls) < before + calls:
        await asyncio.sleep(0)
    for _ in range(later):
        await asyncio.sleep(0)
    for _ in range(4):  # somebody insists, in the middle of giving back
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert current(bench) == SOGOU
    assert MARKER not in bench.phone.settings


async def test_after_a_broken_connection_the_next_run_puts_it_back(bench: Bench) -> None:
    async def run() -> None:
        async with bench.device.keyboard() as keyboard:
            bench.phone.set_fault("dropped")
            await keyboard.type("never arrives")

    with pytest.raises(DeviceOffline):
        await run()
    assert current(bench) == ADB_KEYBOARD
    bench.phone.set_fault("dropped", False)
    await bench.server.connect(bench.running.address)
    assert await bench.another().restore_keyboard() == SOGOU
    assert current(bench) == SOGOU
    assert MARKER not in bench.phone.settings
    assert await bench.another().restore_keyboard() is None


async def test_a_run_after_a_dead_one_puts_back_the_owners_keyboard_itself(bench: Bench) -> None:
    dead = bench.another().keyboard()
    await dead.__aenter__()  # and never left
    async with bench.device.keyboard():
        pass
    assert current(bench) == SOGOU


@pytest.mark.parametrize("recovers", [True, False])
async def test_who_lost_the_phone_leaves_the_keyboard_to_who_has_it(bench: Bench, *, recovers: bool) -> None:
    await bench.open_chat()
    lost = bench.another().keyboard()
    await lost.__aenter__()
    if recovers:
        assert await bench.device.restore_keyboard() == SOGOU
    async with bench.device.keyboard() as keyboard:
        await keyboard.type("您好，")
        await lost.__aexit__(None, None, None)
        assert current(bench) == ADB_KEYBOARD
        await keyboard.type("可以退货。")
        assert bench.draft() == "您好，可以退货。"
    assert current(bench) == SOGOU
    assert MARKER not in bench.phone.settings


@pytest.mark.parametrize("how", ["taken", "put back", "chosen by the owner"])
async def test_what_a_holder_of_before_does_too_late_is_left_undone(bench: Bench, how: str) -> None:
    """However long its process stood still: the phone decides, in the same call."""
    await bench.open_chat()
    if how == "chosen by the owner":
        bench.phone.choose_input_method(ADB_KEYBOARD)
    stands_still = bench.another().keyboard()
    late = await stands_still.__aenter__()
    if how == "put back":
        await bench.device.recover()
        before = bench.draft()
        await attempts_of(late, await bench.input_point())
        assert bench.draft() == before
        return
    async with bench.device.keyboard() as keyboard:
        await keyboard.type("可以退货。")
        await attempts_of(late, await bench.input_point())
        assert bench.draft() == "可以退货。"
        calls = bench.device.round_trips
        await keyboard.tap(await bench.input_point())
        await keyboard.key(Key.DELETE)
        assert bench.device.round_trips == calls + 3, "one of them the tree"


async def attempts_of(late: TextInput, point: Point) -> None:
    for act in (late.type("您好，"), late.clear(), late.tap(point), late.key(Key.ENTER), late.send_action()):
        with pytest.raises(LeaseLost):
            await act


async def test_a_marker_without_our_keyboard_changes_nothing_but_itself(bench: Bench) -> None:
    bench.phone.set_setting(*MARKER, ADB_KEYBOARD)
    assert await bench.device.restore_keyboard() is None
    assert current(bench) == SOGOU
    assert MARKER not in bench.phone.settings


async def test_an_owner_who_uses_adb_keyboard_keeps_it(bench: Bench) -> None:
    bench.phone.choose_input_method(ADB_KEYBOARD)
    before = bench.device.round_trips
    async with bench.device.keyboard():
        pass
    assert bench.device.round_trips == before + 3
    assert current(bench) == ADB_KEYBOARD
    assert MARKER not in bench.phone.settings


async def test_a_phone_that_keeps_no_marker_is_typed_on_all_the_same(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some makers let nobody write settings; their owners choose ADB Keyboard by hand."""
    await bench.open_chat()
    bench.phone.choose_input_method(ADB_KEYBOARD)
    monkeypatch.setattr(bench.phone, "set_setting", lambda *_: None)
    async with bench.device.keyboard() as keyboard:
        await keyboard.type("可以退货。")
    assert bench.draft() == "可以退货。"


async def test_not_held_while_it_is_restored(bench: Bench) -> None:
    async with bench.device.keyboard():
        assert await bench.device.restore_keyboard() is None
        assert current(bench) == ADB_KEYBOARD


async def test_refused_by_the_maker_and_no_clipboard_either(bench: Bench) -> None:
    bench.phone.set_fault("ime_refused")
    bench.phone.set_fault("clipboard")
    async with bench.device.keyboard() as keyboard:
        with pytest.raises(TextInputFailed, match=r"SecurityException.*USB debugging"):
            await keyboard.type("你好")
    assert current(bench) == SOGOU


def test_a_part_fits_a_command_line() -> None:
    assert CHUNK_BYTES * 4 / 3 + 200 < 65_535
