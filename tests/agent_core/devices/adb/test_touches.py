"""A person's touches, seen through adb."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable

import pytest
from structlog.testing import capture_logs

from agent_core.devices.adb.touches import Touches, parse_panels
from agent_core.devices.adb.transport import Transport
from agent_core.devices.base import Key, TouchWatch
from agent_core.geometry import Point
from simulator.phone.adbd import AdbdServer
from simulator.phone.scenario import EventPart
from tests.agent_core.devices.adb.conftest import QQ, Bench

PANELS = """add device 1: /dev/input/event0
  name:     "gpio-keys"
  events:
    KEY (0001): KEY_VOLUMEDOWN        KEY_VOLUMEUP
  input props:
    <none>
add device 2: /dev/input/event5
  name:     "inner_ts"
  events:
    ABS (0003): ABS_MT_SLOT           : value 0, min 0, max 9, fuzz 0, flat 0, resolution 0
                ABS_MT_POSITION_X     : value 0, min 0, max 1079, fuzz 0, flat 0, resolution 0
  input props:
    INPUT_PROP_DIRECT
add device 3: /dev/input/event12
  name:     "outer_ts"
  events:
    ABS (0003): ABS_MT_POSITION_X     : value 0, min 0, max 1079, fuzz 0, flat 0, resolution 0
"""


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.001)


def touch(bench: Bench) -> None:
    bench.phone.panel.touch(500, 900)


def listeners(bench: Bench) -> int:
    return bench.phone.panel.listeners


def services(bench: Bench) -> int:
    assert isinstance(bench.phone.link, AdbdServer)
    return bench.phone.link.running_services


def test_the_panels_that_a_phone_names() -> None:
    assert parse_panels(PANELS) == ("/dev/input/event5", "/dev/input/event12")
    assert parse_panels("could not open /dev/input/event0, Permission denied\n") == ()


async def test_a_finger_is_seen_and_forgotten(bench: Bench) -> None:
    async with bench.device.touch_watch() as watch:
        await until(lambda: listeners(bench) == 1)
        assert not watch.touched
        touch(bench)
        await until(lambda: watch.touched)
        watch.forget()
        assert not watch.touched
        touch(bench)
        await until(lambda: watch.touched)


async def test_what_is_injected_is_no_finger(bench: Bench) -> None:
    async with bench.device.touch_watch() as watch:
        await until(lambda: listeners(bench) == 1)
        await bench.device.tap(Point(500, 900))
        await bench.device.swipe(Point(500, 900), Point(500, 300))
        await bench.device.key(Key.HOME)
        await bench.device.launch(QQ)
        assert not watch.touched


async def test_a_touch_is_known_as_soon_as_what_it_changed(bench: Bench) -> None:
    """A person taps just before the phone is looked at: the look's answer does not overtake it."""
    async with bench.device.touch_watch() as watch:
        await until(lambda: listeners(bench) == 1)
        touch(bench)  # the first thing on a new connection may be held back for 40 ms (Nagle)
        await until(lambda: watch.touched)
        watch.forget()
        for _ in range(20):
            event = EventPart.model_validate({"at": 0, "do": "person_tap", "x": 1, "y": 500})
            bench.phone._script._planned.append((bench.phone.now(), event))
            await bench.device.look()
            assert watch.touched
            watch.forget()


async def test_the_stream_ends_on_the_phone_with_the_watch(bench: Bench) -> None:
    async def watched() -> None:
        async with bench.device.touch_watch():
            await until(lambda: listeners(bench) == 1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await watched()
    await until(lambda: listeners(bench) == 0 and services(bench) == 0)


async def test_an_error_inside_comes_out_as_it_is(bench: Bench) -> None:
    with pytest.raises(TimeoutError):
        async with bench.device.touch_watch():
            raise TimeoutError


async def test_a_watch_costs_one_call_and_one_more_for_the_first(bench: Bench) -> None:
    before = bench.device.round_trips
    async with bench.device.touch_watch():
        assert bench.device.round_trips == before + 2
        await bench.device.look()  # goes on beside it
        assert bench.device.round_trips == before + 3
    async with bench.device.touch_watch():
        assert bench.device.round_trips == before + 4


async def test_two_watches_at_once(bench: Bench) -> None:
    async with bench.device.touch_watch() as outer, bench.device.touch_watch() as inner:
        await until(lambda: listeners(bench) == 2)
        touch(bench)
        await until(lambda: outer.touched and inner.touched)


async def test_a_phone_that_refuses_sees_none_and_says_so_once(bench: Bench) -> None:
    bench.phone.set_fault("getevent_denied")
    with capture_logs() as logs:
        for _ in range(2):
            async with bench.device.touch_watch() as watch:
                touch(bench)
                await bench.device.look()
                assert not watch.touched
    assert [(entry["event"], entry["words"]) for entry in logs] == [
        ("adb.touches_unseen", "could not open /dev/input/event0, Permission denied")
    ]
    assert sum("getevent" in call for call in bench.calls) == 1


async def test_a_phone_that_refuses_later_on(bench: Bench) -> None:
    async with bench.device.touch_watch():
        pass
    bench.phone.set_fault("getevent_denied")
    with capture_logs() as logs:
        async with bench.device.touch_watch() as watch:
            await until(lambda: bool(logs))
            assert not watch.touched
    assert logs[0]["words"].endswith("Permission denied")


async def test_a_cable_that_is_pulled_is_no_touch_and_no_error(bench: Bench) -> None:
    with capture_logs() as logs:
        async with bench.device.touch_watch() as watch:
            await until(lambda: listeners(bench) == 1)
            bench.phone.set_fault("dropped")
            await until(lambda: bool(logs))
            assert not watch.touched
    bench.phone.set_fault("dropped", False)
    await bench.server.connect(bench.running.address)
    async with bench.device.touch_watch() as watch:
        await until(lambda: listeners(bench) == 1)
        touch(bench)
        await until(lambda: watch.touched)


async def test_of_several_panels_each_is_heard(bench: Bench) -> None:
    bench.device._touches._panels = ("/dev/input/event2", "/dev/input/event9")
    async with bench.device.touch_watch() as watch:
        await until(lambda: listeners(bench) == 1)
        assert bench.calls[-1].endswith("getevent -q")
        touch(bench)
        await until(lambda: watch.touched)


@pytest.mark.parametrize(
    ("lines", "touched"),
    [
        ([b"0003 0039 0000002a\r\n"], True),
        ([b"0003 0035 0000021c\n"], True),
        ([b"0001 014a 00000001\n"], True),
        ([b"00", b"03 0036 000", b"004b0\n"], True),  # in pieces
        ([b"0001 0072 00000001\n0000 0000 00000000\n0003 0036 000004b0\n"], True),
        ([b"/dev/input/event5: 0003 0035 0000021c\n"], True),
        ([b"/dev/input/event1: 0003 0035 0000021c\n"], False),  # another device's
        ([b"0003 0039 ffffffff\n0001 014a 00000000\n0000 0000 00000000\n"], False),  # a finger that goes
        ([b"0001 0072 00000001\n", b"0001 0074 00000001\n"], False),  # keys
        ([b"0003 0000 00000011\n"], False),  # a sensor
        ([b"0003 0035 0000021c"], False),  # not yet whole
        ([b"could not open /dev/input/event5, Permission denied\n"], False),
    ],
)
async def test_what_is_a_touch(lines: list[bytes], touched: bool) -> None:
    async def pieces() -> AsyncGenerator[bytes, None]:
        for line in lines:
            yield line

    watch = TouchWatch()
    touches = Touches(Transport("127.0.0.1", 1, "none"))
    await touches._follow(pieces(), ("/dev/input/event5", "/dev/input/event12"), watch)
    assert watch.touched is touched
