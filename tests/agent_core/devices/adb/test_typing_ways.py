"""The three ways to type, each alone, one after the other, and what is remembered of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from agent_core.devices.adb.device import AdbDevice
from agent_core.devices.adb.keyboard import MARKER, Keyboard
from agent_core.devices.adb.paste import PASTE_MILLISECONDS, PROGRAM, remote_path
from agent_core.devices.adb.server import open_adb
from agent_core.devices.adb.typing_ways import FILE, PUT_BACK_SECONDS, TypingMemory, TypingWay
from agent_core.devices.base import Device, Key
from agent_core.errors import InputDenied, LeaseLost, TextInputFailed
from simulator.phone.adbd import AdbdServer
from simulator.phone.files import FileTree
from simulator.phone.scenario import KeyboardPart
from simulator.phone.scenario_file import default_scenario
from simulator.phone.server import serve
from tests.agent_core.devices.adb.conftest import SOGOU, Bench, FastTime
from tests.support.adb import adb_server

KEYBOARD, PASTE, ASCII = TypingWay
NASTY = '您好，"it\'s" $(reboot) `id` ; input keyevent 26 # \\ %s %d\n第二行 😀👨‍👩‍👧 e\u0301 end '
PLAIN = '"it\'s" $(reboot) `id` ; input keyevent 26 # \\ %s%%s % s ~ -n '
LONG = "很长的回答。\n" * 1500 + "完"  # 10,501 characters


@pytest.fixture
async def bare() -> AsyncIterator[Bench]:
    """A phone without ADB Keyboard."""
    scenario = default_scenario().model_copy(update={"keyboard": KeyboardPart(adb_installed=False)})
    async with adb_server() as adb, serve(scenario) as running, await open_adb(port=adb.port) as server:
        await server.connect(running.address)
        clock = FastTime()
        device: Device = server.device(running.address, clock=clock.clock, sleep=clock.sleep)
        assert isinstance(device, AdbDevice)
        yield Bench(running, server, device, clock)


def way_of(keyboard: object) -> TypingWay:
    assert isinstance(keyboard, Keyboard)
    return keyboard.way


def tree_of(bench: Bench) -> FileTree:
    assert isinstance(bench.phone.link, AdbdServer)
    return bench.phone.link.files


def files(bench: Bench) -> dict[str, bytes]:
    tree = tree_of(bench)
    return {name: tree.read(f"/data/local/tmp/{name}") for name, _ in tree.names("/data/local/tmp")}


@pytest.mark.parametrize("text", [NASTY, LONG, "a", "  "], ids=["nasty", "long", "letter", "blanks"])
async def test_a_phone_without_adb_keyboard_takes_any_text(bare: Bench, text: str) -> None:
    await bare.open_chat()
    bare.phone.clipboard = "the owner's"
    async with bare.device.keyboard() as keyboard:
        await keyboard.type(text)
        assert way_of(keyboard) is PASTE
    assert bare.draft() == text
    assert bare.phone.clipboard == "the owner's"
    assert bare.phone.report()["input_method"] == SOGOU
    assert ("global", MARKER) not in bare.phone.settings
    assert files(bare)[remote_path().rpartition("/")[2]] == PROGRAM.read_bytes()
    assert not any(action["what"] == "input_method" for action in bare.phone.report()["actions"])


async def test_a_text_is_pasted_in_one_call_and_the_program_pushed_once(bare: Bench) -> None:
    await bare.open_chat()
    async with bare.device.keyboard() as keyboard:
        before = bare.device.round_trips
        await keyboard.type(LONG)
        assert bare.device.round_trips == before + 1
    async with bare.device.keyboard():
        pass
    assert sum(call.startswith("shell") and "echo UEsDB" in call for call in bare.calls) == 1
    assert max(len(call.encode()) for call in bare.calls) < 65_535


@pytest.mark.parametrize("sdk", [33, 30], ids=["selected", "by keys"])
async def test_a_field_is_emptied_without_adb_keyboard(bare: Bench, sdk: int) -> None:
    bare.phone.properties["ro.build.version.sdk"] = str(sdk)
    await bare.open_chat()
    async with bare.device.keyboard() as keyboard:
        await keyboard.type("旧的" * 100)
        await keyboard.clear()
        assert bare.draft() == ""
        await keyboard.clear()
        await keyboard.type("新的")
        await keyboard.key(Key.DELETE)
    assert bare.draft() == "新"


async def test_enter_is_the_send_action_without_adb_keyboard(bare: Bench) -> None:
    await bare.open_chat()
    field = bare.phone.chat_field()
    assert field is not None
    field.enter_acts = True
    async with bare.device.keyboard() as keyboard:
        await keyboard.type("在的")
        await keyboard.send_action()
    assert bare.phone.report()["sent"] == {"11": ["在的"]}


@pytest.mark.parametrize("fault", ["denied", "ignored"])
async def test_ascii_is_typed_without_a_clipboard(bare: Bench, fault: str) -> None:
    bare.phone.set_fault("clipboard", fault)
    bare.phone.clipboard = "a secret"
    await bare.open_chat()
    async with bare.device.keyboard() as keyboard:
        await keyboard.type(PLAIN)
        assert way_of(keyboard) is ASCII
        assert bare.draft() == PLAIN
        await keyboard.clear()
        assert bare.draft() == ""
        for text in ("两个字", "two\nlines"):  # a new line as a key may send
            with pytest.raises(TextInputFailed, match="SecurityException"):
                await keyboard.type(text)
    assert bare.draft() == ""
    assert bare.phone.clipboard == "a secret"


async def test_a_way_that_fails_gives_way_to_the_next(bench: Bench) -> None:
    """Of what the screen shows, ``confirm`` is told; each text is typed once."""
    bench.phone.set_fault("clipboard", "cut")
    await bench.open_chat()
    text = "a text of more than twenty characters"
    ways = []
    async with bench.device.keyboard() as keyboard:
        bench.phone.set_fault("stuck_keyboard")
        await keyboard.type(text)
        await keyboard.confirm(arrived=False)
        await keyboard.confirm(arrived=False)  # of nothing
        bench.phone.set_fault("stuck_keyboard", False)
        for _ in range(2):
            await keyboard.clear()
            ways.append(way_of(keyboard))
            await keyboard.type(text)
            await keyboard.confirm(arrived=bench.draft() == text)
        assert bench.draft() == text
        assert [one["text"] for one in bench.phone.report()["typed"]] == [text[:20], text]
    assert ways == [PASTE, ASCII]
    async with bench.another().keyboard() as keyboard:
        assert way_of(keyboard) is ASCII  # another process knows it


async def test_a_maker_who_refuses_keyboards_is_got_round(bench: Bench) -> None:
    bench.phone.set_fault("ime_refused")
    await bench.open_chat()
    async with bench.device.keyboard() as keyboard:
        await keyboard.type("旧的")
        await keyboard.clear()
        await keyboard.type(NASTY)
    assert bench.draft() == NASTY
    assert bench.phone.report()["input_method"] == SOGOU
    bench.phone.set_fault("ime_refused", False)
    async with bench.another().keyboard() as keyboard:
        assert way_of(keyboard) is PASTE  # put back for a day


async def test_a_phone_that_keeps_no_settings_is_pasted_on(bare: Bench) -> None:
    bare.phone.set_fault("settings_denied")
    await bare.open_chat()
    async with bare.device.keyboard() as keyboard:
        await keyboard.type(NASTY)
    assert bare.draft() == NASTY


async def test_a_phone_that_takes_no_program_is_typed_on_in_ascii(bare: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_of(bare), "check_writable", lambda path: tree_of(bare).read("/none"))
    await bare.open_chat()
    async with bare.device.keyboard() as keyboard:
        await keyboard.type(PLAIN)
        with pytest.raises(TextInputFailed, match="No such file"):
            await keyboard.type("你好")
    assert bare.draft() == PLAIN


async def test_adb_keyboard_is_taken_in_the_middle_and_the_owners_is_back_afterwards(bench: Bench) -> None:
    memory = TypingMemory(worked=PASTE)
    tree_of(bench).write(FILE, memory.written().encode())
    bench.phone.set_fault("clipboard")
    await bench.open_chat()
    async with bench.device.keyboard() as keyboard:
        assert way_of(keyboard) is PASTE
        await keyboard.type(NASTY)
        assert way_of(keyboard) is not PASTE
        assert bench.phone.report()["input_method"] != SOGOU
    assert bench.draft() == NASTY
    assert bench.phone.report()["input_method"] == SOGOU
    assert ("global", MARKER) not in bench.phone.settings


@pytest.mark.parametrize("fault", ["killed", "killed_late"])
async def test_nothing_is_typed_again_after_a_program_that_was_killed(bare: Bench, fault: str) -> None:
    """It may have pasted. Whoever reads the field knows, and empties it."""
    await bare.open_chat()
    bare.phone.set_fault("clipboard", fault)
    async with bare.device.keyboard() as keyboard:
        with pytest.raises(TextInputFailed, match="Killed") as failed:
            await keyboard.type("plain")
        assert not failed.value.may_repeat
        assert bare.draft() == ("plain" if fault == "killed_late" else "")
        assert way_of(keyboard) is ASCII
        await keyboard.clear()
        await keyboard.type("plain")
    assert bare.draft() == "plain"


async def test_a_program_that_is_broken_or_gone_types_nothing(bare: Bench) -> None:
    await bare.open_chat()
    tree = tree_of(bare)
    for content in (None, b"x"):
        async with bare.device.keyboard() as keyboard:
            tree.remove(remote_path())
            if content is not None:
                tree.write(remote_path(), content)
            with pytest.raises(TextInputFailed, match="ClassNotFoundException") as failed:
                await keyboard.type("你好")
            assert failed.value.may_repeat
            assert bare.draft() == ""
            await keyboard.type("你好")  # it was pushed anew
            await keyboard.confirm(arrived=True)
            assert way_of(keyboard) is ASCII  # for what it can type; paste is back where it was from the next time on
        assert bare.draft() == "你好"
        async with bare.device.keyboard() as keyboard:
            await keyboard.clear()


async def test_refused_keys_are_the_owners_to_allow(bare: Bench) -> None:
    await bare.open_chat()
    bare.phone.set_fault("input_denied")
    async with bare.device.keyboard() as keyboard:
        with pytest.raises(InputDenied):
            await keyboard.type("你好")
    assert bare.phone.clipboard == ""


@pytest.mark.parametrize("text", ["您好，", "plain"])
async def test_who_lost_the_phone_pastes_nothing(bare: Bench, text: str) -> None:
    await bare.open_chat()
    stands_still = bare.another().keyboard()
    late = await stands_still.__aenter__()
    async with bare.device.keyboard() as keyboard:
        await keyboard.type("可以退货。")
        for act in (late.type(text), late.clear(), late.key(Key.ENTER), late.send_action()):
            with pytest.raises(LeaseLost):
                await act
        assert bare.draft() == "可以退货。"


async def test_who_loses_the_phone_while_the_program_starts_pastes_nothing(
    bare: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The phone is asked again directly before the key."""
    await bare.open_chat()
    fault = bare.phone.clipboard_fault

    def taken() -> str:
        bare.phone.set_setting("global", MARKER, f"{SOGOU}#another")
        return fault()

    async with bare.device.keyboard() as keyboard:
        monkeypatch.setattr(bare.phone, "clipboard_fault", taken)
        with pytest.raises(LeaseLost):
            await keyboard.type("您好")
    assert bare.draft() == ""
    assert bare.phone.settings["global", MARKER].endswith("#another")


@pytest.mark.parametrize("later", [0, 3, 40, 400])
async def test_a_cancelled_paste_leaves_the_owners_clipboard(bare: Bench, later: int) -> None:
    await bare.open_chat()
    bare.phone.clipboard = "the owner's"

    async def run() -> None:
        async with bare.device.keyboard() as keyboard:
            await keyboard.type("您好")

    task = asyncio.create_task(run())
    while not any("app_process" in call for call in bare.calls):
        await asyncio.sleep(0)
    for _ in range(later):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(10):
        while bare.phone.clipboard != "the owner's":
            await asyncio.sleep(0.01)
    assert bare.draft() in ("", "您好")
    assert ("global", MARKER) not in bare.phone.settings


def test_what_worked_is_first_and_what_failed_is_last_for_a_day() -> None:
    memory = TypingMemory()
    assert memory.order(installed=True, now=0) == [KEYBOARD, PASTE, ASCII]
    assert memory.order(installed=False, now=0) == [PASTE, ASCII]
    memory.note(PASTE, worked=True, now=1000)
    assert memory.order(installed=True, now=1000) == [PASTE, KEYBOARD, ASCII]
    memory.note(PASTE, worked=False, now=1000)
    assert memory.worked is None
    assert memory.order(installed=True, now=1000) == [KEYBOARD, ASCII, PASTE]
    assert memory.order(installed=True, now=1000 + PUT_BACK_SECONDS) == [KEYBOARD, PASTE, ASCII]
    memory.note(KEYBOARD, worked=False, now=1000)
    memory.note(ASCII, worked=False, now=1000)
    assert memory.order(installed=True, now=1000) == [KEYBOARD, PASTE, ASCII]
    assert TypingMemory.read(memory.written()) == memory


@pytest.mark.parametrize("text", ["", "x", "[]", "{}", '{"worked":"x","failed":{}}', '{"worked":"","failed":{"a":1}}'])
def test_a_memory_that_is_none_counts_for_nothing(text: str) -> None:
    assert TypingMemory.read(text) == TypingMemory()


def test_the_app_has_time_to_fetch_the_text() -> None:
    assert PASTE_MILLISECONDS >= 200
