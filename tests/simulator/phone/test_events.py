"""What a scenario lets happen: a person at the phone, chats that open by themselves, and the triggers."""

from __future__ import annotations

import asyncio

import pytest
from pydantic import ValidationError

from simulator.phone.adbd import AdbdServer
from simulator.phone.apps.looks import LOOKS
from simulator.phone.files import FileTree
from simulator.phone.panel import InputEvent, TouchPanel
from simulator.phone.scenario import EventPart, Faults
from simulator.phone.server import serve
from simulator.phone.shell import Shell
from tests.simulator.phone.hand import QQ, Hand
from tests.support.adb import AdbServerProcess

WECHAT = "com.tencent.mm"
WORLD = """
[[contacts]]
name = "11"
history = [{ side = "them", text = "几天能发货？", ago = 60 }]

[[contacts]]
name = "22"
history = [{ side = "them", text = "在吗", ago = 600 }]

[[contacts]]
app = "wechat"
name = "11"
history = [{ side = "them", text = "你好", ago = 600 }]
"""


def world(*events: str, extra: str = "") -> Hand:
    return Hand(f"{extra}\n{WORLD}" + "".join(f"\n[[events]]\n{event}" for event in events))


class Glass:
    """Listens to the panel of a phone."""

    def __init__(self, panel: TouchPanel) -> None:
        self.seen: list[InputEvent] = []
        self._panel = panel
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Glass:
        self._task = asyncio.create_task(self._listen())
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait({self._task})

    async def _listen(self) -> None:
        async for events in self._panel.events():
            self.seen += events

    async def places(self) -> list[tuple[int, int]]:
        """Where fingers came down so far, in pixels."""
        await asyncio.sleep(0)
        xs = [event.value for event in self.seen if event.code == 0x35]
        ys = [event.value for event in self.seen if event.code == 0x36]
        return list(zip(xs, ys, strict=True))


def what(hand: Hand) -> list[tuple[str, str]]:
    return [(item["what"], item["detail"]) for item in hand.phone.report()["actions"]]


# -- a person


async def test_a_person_taps_a_place() -> None:
    hand = world('at = 5\ndo = "person_tap"\nx = 500\ny = 180')  # the first row
    await hand.phone.launch(QQ)
    async with Glass(hand.phone.panel) as glass:
        hand.wait(4)
        hand.phone.window()
        assert await glass.places() == []
        hand.wait(1)
        hand.phone.window()
        assert await glass.places() == [(540, 432)]
    report = hand.phone.report()
    assert report["chats_opened"] == ["11"]
    assert report["taps"] == []  # those are a client's


async def test_a_person_taps_what_says_something() -> None:
    hand = world('at = 5\ndo = "person_tap"\non = "22"', 'at = 6\ndo = "person_tap"\non = "没有的字"')
    await hand.phone.launch(QQ)
    async with Glass(hand.phone.panel) as glass:
        hand.wait(10)
        assert hand.phone.report()["chats_opened"] == ["22"]
        assert len(await glass.places()) == 1
    assert what(hand)[-1] == ("person_missed", "没有的字")


async def test_a_fault_of_injected_taps_does_not_hold_for_fingers() -> None:
    hand = world('at = 5\ndo = "person_tap"\non = "22"', extra="faults = { ignored_taps = true, input_denied = true }")
    await hand.phone.launch(QQ)
    hand.wait(5)
    assert hand.phone.report()["chats_opened"] == ["22"]


@pytest.mark.parametrize("fault", ["locked", "asleep", "popup"])
async def test_a_person_opens_a_chat_whatever_is_in_front(fault: str) -> None:
    hand = world('at = 5\ndo = "person_open"\ncontact = "22"', extra=f"faults = {{ {fault} = true }}")
    async with Glass(hand.phone.panel) as glass:
        hand.wait(5)
        report = hand.phone.report()
        assert report["window"]["package"] == QQ
        assert len(await glass.places()) == 1
    assert await hand.texts("title") == ["22"]


async def test_a_person_types_into_the_chat_in_front() -> None:
    hand = world('at = 5\ndo = "person_type"\ntext = "我来回"', 'after_typed = "11"\ndo = "fault"\nfault = "slow"')
    await hand.open_chat("11")
    async with Glass(hand.phone.panel) as glass:
        hand.wait(5)
        assert hand.phone.report()["drafts"] == {"11": "我来回"}
        assert len(await glass.places()) == 1
    report = hand.phone.report()
    assert report["keyboard_shown"]
    assert report["typed"] == []
    assert report["faults"]["slow"] == 0


async def test_a_person_types_where_no_chat_is() -> None:
    hand = world('at = 5\ndo = "person_type"\ntext = "我来回"')
    hand.wait(5)
    assert hand.phone.report()["drafts"] == {}


async def test_a_notification_opens_a_chat_without_a_finger() -> None:
    hand = world('at = 5\ndo = "notification_open"\ncontact = "22"')
    await hand.open_chat("11")
    async with Glass(hand.phone.panel) as glass:
        hand.wait(5)
        assert hand.phone.report()["chats_opened"] == ["11", "22"]
        assert await glass.places() == []
    assert await hand.texts("title") == ["22"]


async def test_a_notification_of_another_app() -> None:
    hand = world('at = 5\ndo = "notification_open"\ncontact = "wechat:11"')
    await hand.open_chat("11")
    hand.wait(5)
    assert hand.phone.window().package == WECHAT


# -- triggers


async def test_before_the_model_is_asked() -> None:
    hand = world(
        'after_model = 2\ncontact = "11"\ntext = "第二次"',
        'after_model = 1\ndelay = 3\ncontact = "11"\ntext = "三秒后"',
    )

    def texts() -> list[str]:
        return [message["text"] for message in hand.phone.report()["chats"]["11"]][1:]

    hand.phone.model_asked()
    assert texts() == []
    hand.phone.model_asked()
    assert texts() == ["第二次"]
    hand.wait(3)
    assert texts() == ["第二次", "三秒后"]


async def test_after_a_picture_of_the_list_and_of_a_chat() -> None:
    hand = world(
        'after_looked = "list"\ncount = 2\ncontact = "22"\ntext = "插队"',
        'after_looked = "11"\ndo = "notification_open"\ncontact = "22"',
    )
    await hand.phone.picture()  # of the launcher
    await hand.phone.launch(QQ)
    await hand.phone.picture()
    assert await hand.texts("row_name") == ["11", "22"]
    await hand.phone.shown()  # nobody took that
    assert await hand.texts("row_name") == ["11", "22"]
    await hand.phone.picture()
    assert await hand.texts("row_name") == ["22", "11"]
    await hand.tap("11")
    assert hand.phone.report()["chats_opened"] == ["11"]
    await hand.phone.picture()
    assert hand.phone.report()["chats_opened"] == ["11", "22"]


async def test_a_black_picture_shows_nothing() -> None:
    hand = world('after_looked = "list"\ncontact = "22"\ntext = "插队"', extra="faults = { black = true }")
    await hand.phone.launch(QQ)
    await hand.phone.picture()
    assert await hand.texts("row_name") == ["11", "22"]


@pytest.mark.parametrize(
    "event",
    [
        {"at": 1, "after_model": 1, "contact": "11", "text": "x"},
        {"after_model": 0, "contact": "11", "text": "x"},
        {"at": 1, "do": "person_tap"},
        {"at": 1, "do": "person_tap", "x": 5},
        {"at": 1, "do": "person_tap", "x": 5, "y": 1001},
        {"at": 1, "do": "person_tap", "x": 5, "y": 5, "on": "11"},
        {"at": 1, "do": "person_open"},
        {"at": 1, "do": "person_type"},
        {"at": 1, "do": "notification_open"},
        {"at": 1, "contact": "11", "kind": "file"},
        {"at": 1, "contact": "11", "kind": "card", "text": " "},
    ],
)
def test_what_is_no_event(event: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        EventPart.model_validate(event)


def test_who_is_looked_at_must_be_there() -> None:
    assert world('after_looked = "list"\ncontact = "11"\ntext = "x"')
    with pytest.raises(Exception, match="33"):
        world('after_looked = "33"\ncontact = "11"\ntext = "x"')


# -- the banner


async def test_without_a_network_the_apps_say_so_and_still_send() -> None:
    hand = world(extra="faults = { banner = true }")
    await hand.phone.launch(QQ)
    assert await hand.texts("network_tips") == ["当前网络不可用，请检查网络设置"]
    await hand.tap("22")  # the rows stand lower
    assert hand.phone.report()["chats_opened"] == ["22"]
    assert await hand.texts("network_tips") == ["当前网络不可用，请检查网络设置"]
    await hand.say("在的")
    assert hand.phone.report()["sent"] == {"22": ["在的"]}
    hand.phone.set_fault("banner", False)
    assert await hand.nodes("network_tips") == []


# -- versions


async def test_versions_of_the_apps() -> None:
    usual, other = world(), world(extra='[phone]\napp_versions = { qq = "9.9.9" }')
    assert usual.phone.apps[QQ].version == LOOKS["qq-plain"].version
    assert (other.phone.apps[QQ].version, other.phone.apps[WECHAT].version) == ("9.9.9", LOOKS["wechat-light"].version)


# -- getevent


async def test_a_finger_through_real_adb(adb: AdbServerProcess) -> None:
    async with serve(None) as running:
        serial = await adb.connect(running.adb_port)
        names = await adb.run("-s", serial, "shell", "getevent -lp")
        assert "ABS_MT_POSITION_X" in names.text
        process = await asyncio.create_subprocess_exec(
            adb.program,
            *("-P", str(adb.port), "-s", serial, "shell", "getevent -q"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            env=adb.environment,
        )
        try:
            async with asyncio.timeout(10):
                while not running.phone.panel.listeners:
                    await asyncio.sleep(0.002)
                await running.phone.tap(10, 20)
                running.phone.panel.touch(540, 1200)
                assert process.stdout is not None
                lines = [(await process.stdout.readline()).decode().strip() for _ in range(8)]
        finally:
            process.terminate()
            await process.wait()
        assert lines[2:4] == ["/dev/input/event2: 0003 0035 0000021c", "/dev/input/event2: 0003 0036 000004b0"]
        async with asyncio.timeout(10):
            link = running.phone.link
            assert isinstance(link, AdbdServer)
            while running.phone.panel.listeners or link.running_services:
                await asyncio.sleep(0.002)


async def test_getevent_by_itself() -> None:
    hand = world()
    shell = Shell(hand.phone, FileTree())
    first = asyncio.create_task(shell.run("getevent -q -c 2 /dev/input/event2"))
    while not hand.phone.panel.listeners:
        await asyncio.sleep(0)
    hand.phone.panel.touch(1, 2)
    assert (await first).out == b"0003 0039 00000001\n0001 014a 00000001\n"
    assert b"add device 2: /dev/input/event2" in (await shell.run("getevent -p")).out
    assert (await shell.run("getevent /dev/input/event7")).exit_code == 1
    assert (await shell.run("getevent -x")).exit_code == 1
    result = await shell.run("exec getevent -p | grep -c ABS; echo after")
    assert result.out == b"1\nafter\n"


async def test_getevent_that_is_refused() -> None:
    hand = world(extra="faults = { getevent_denied = true }")
    shell = Shell(hand.phone, FileTree())
    listed = await shell.run("getevent -lp")
    assert (listed.out, listed.exit_code) == (b"", 0)
    assert b"Permission denied" in listed.err
    assert (await shell.run("getevent /dev/input/event2")).exit_code == 1
    assert "getevent_denied" in Faults.model_fields


async def test_a_listener_that_does_not_read_holds_nobody_up() -> None:
    panel = TouchPanel((100, 100))
    events = panel.events()
    waiting = asyncio.ensure_future(anext(events))
    await asyncio.sleep(0)
    for _ in range(2000):
        panel.touch(1, 1)
    assert len(await waiting) <= 4096
    await events.aclose()
    assert panel.listeners == 0
