"""``app_process`` runs the program that is shipped and no other, as its source says."""

from __future__ import annotations

import base64

import pytest

from agent_core.devices.adb.paste import CLASS, DONE, NOT_RUN, PROGRAM
from simulator.phone.commands.app_process import ABORTED, KILLED
from simulator.phone.files import FileTree
from simulator.phone.shell import Shell, ShellResult
from tests.simulator.phone.hand import Hand, chat

PATH = "/data/local/tmp/p.jar"
TEXT = base64.b64encode("您好".encode()).decode()
PASTE = "input keyevent 279"


class Desk:
    """A chat whose input has the focus, and the phone's shell."""

    def __init__(self, hand: Hand) -> None:
        self.hand, self.phone = hand, hand.phone
        self.files = FileTree()
        self.files.write(PATH, PROGRAM.read_bytes())
        self.shell = Shell(hand.phone, self.files)

    async def run(self, arguments: str = f"{CLASS} {TEXT} 0 '{PASTE}'", *, path: str = PATH) -> ShellResult:
        return await self.shell.run(f"CLASSPATH={path} app_process / {arguments}")

    async def draft(self) -> str:
        return (await self.hand.node("input")).text


@pytest.fixture
async def desk() -> Desk:
    hand = Hand(chat("在吗"))
    await hand.open_chat()
    await hand.tap("input")
    hand.phone.clipboard = "the owner's"
    return Desk(hand)


async def test_the_command_runs_with_the_text_in_the_clipboard_and_its_status_is_the_programs(desk: Desk) -> None:
    done = await desk.run()
    assert (done.exit_code, done.out.decode()) == (0, f"{DONE}\n")
    assert await desk.draft() == "您好"
    done = await desk.run(f"{CLASS} {TEXT} 0 'echo said; exit 9'")
    assert (done.exit_code, done.out.decode()) == (9, f"said\n{DONE}\n")
    assert desk.phone.clipboard == "the owner's"


async def test_any_other_program_has_no_such_class(desk: Desk) -> None:
    desk.files.write("/data/local/tmp/other.jar", PROGRAM.read_bytes() + b"\0")
    for result in (
        await desk.run(path="/data/local/tmp/other.jar"),
        await desk.run(path="/data/local/tmp/none.jar"),
        await desk.run("com.example.Main"),
        await desk.shell.run(f"app_process / {CLASS} {TEXT} 0 '{PASTE}'"),  # the variable was that command's alone
    ):
        assert result.exit_code == ABORTED
        assert b"ClassNotFoundException" in result.err
    assert await desk.draft() == ""


@pytest.mark.parametrize("arguments", ["", "%%% 0 true", f"{TEXT} soon true", f"{TEXT} 0"])
async def test_what_it_does_not_understand_is_not_run(desk: Desk, arguments: str) -> None:
    assert (await desk.run(f"{CLASS} {arguments}")).exit_code == NOT_RUN


@pytest.mark.parametrize(
    ("fault", "code", "draft", "clipboard"),
    [
        ("denied", NOT_RUN, "", "the owner's"),
        ("ignored", NOT_RUN, "", "the owner's"),
        ("no_paste", 0, "", "the owner's"),
        ("killed", KILLED, "", "the owner's"),
        ("killed_late", KILLED, "您好", "您好"),
        ("cut", 0, "您好", "the owner's"),
    ],
)
async def test_its_faults(desk: Desk, fault: str, code: int, draft: str, clipboard: str) -> None:
    desk.phone.set_fault("clipboard", fault)
    assert (await desk.run()).exit_code == code
    assert (await desk.draft(), desk.phone.clipboard) == (draft, clipboard)


async def test_ctrl_a_selects_what_is_in_the_field_on_newer_phones(desk: Desk) -> None:
    await desk.run()
    assert b"Unknown command" not in (await desk.shell.run("input keycombination 113 29")).merged()
    await desk.shell.run("input text x")
    assert await desk.draft() == "x"
    desk.phone.properties["ro.build.version.sdk"] = "32"
    result = await desk.shell.run("input keycombination 113 29")
    assert b"Unknown command" in result.err
    assert result.exit_code == 255
