"""The shell without adb: its grammar, and every command that clients of a phone use."""

from __future__ import annotations

import asyncio
import base64
import io
import struct
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from agent_core.devices.base import Notification, ScreenState, Window, WindowKind
from simulator.phone.files import FileTree
from simulator.phone.port import ShellPhone
from simulator.phone.shell import Shell, ShellResult
from tests.simulator.phone.small_phone import ADB_KEYBOARD, HOME, QQ, SOGOU, SmallPhone
from tests.support.days import examples


class Desk:
    """A phone and its shell, as a test speaks to them."""

    def __init__(self) -> None:
        self.phone = SmallPhone()
        fitting: ShellPhone = self.phone
        self.files = FileTree(clock=lambda: 1_700_000_000.0)
        self.shell = Shell(fitting, self.files)

    async def run(self, line: str, stdin: bytes = b"") -> ShellResult:
        return await self.shell.run(line, stdin=stdin)

    async def out(self, line: str, stdin: bytes = b"") -> str:
        result = await self.run(line, stdin)
        assert result.err == b"", result.err
        return result.out.decode()


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("echo a  b", "a b\n"),
        ("echo 'a  b'\"  c\"\\ d", "a  b  c d\n"),
        ("echo one; echo two", "one\ntwo\n"),
        ("echo one & echo two", "one\ntwo\n"),
        ("false && echo no; echo $?", "1\n"),
        ("false || echo yes; echo $?", "yes\n0\n"),
        ("true && false || echo last", "last\n"),
        ("! false && echo turned", "turned\n"),
        ("echo a b | cat | cat", "a b\n"),
        ("(echo a; echo b) | grep b", "b\n"),
        ("{ echo a; echo b; } | wc -l", "2\n"),
        ("X=5; echo $X ${X}6 '$X' \"$X\"", "5 56 $X 5\n"),
        ("X='a  b'; echo $X; echo \"$X\"", "a b\na  b\n"),
        ("echo $(echo inner; echo two)", "inner two\n"),
        ('echo "$(echo \'a  b\')"', "a  b\n"),
        ("echo a#b # comment", "a#b\n"),
        ("echo $ 5$", "$ 5$\n"),
        ("echo -n x; echo -e 'a\\tb'", "xa\tb\n"),
        ("exit 3; echo no", ""),
        ("cd /sdcard; pwd; ls -d Download", "/sdcard\nDownload\n"),
        ("echo ';|&>' \";&&\" \\;", ";|&> ;&& ;\n"),
        ("sh -c 'echo in; exit 4'; echo $?", "in\n4\n"),
        ("echo a > /sdcard/x; echo b >> /sdcard/x; cat < /sdcard/x", "a\nb\n"),
        ("cat /nothing 2>/dev/null; echo $?", "1\n"),
        ("cat /nothing 2>&1 | grep -c 'No such file'", "1\n"),
        ("cat /nothing >/sdcard/e 2>&1; cat /sdcard/e", "cat: /nothing: No such file or directory\n"),
        ("cat /nothing &>/dev/null || echo gone", "gone\n"),
        ("echo hi 1>&2 2>/dev/null | cat", ""),
        ("cd /sdcard; echo ?.x; touch b.x a.x; echo /sdcard/*.x '*'", "?.x\n/sdcard/a.x /sdcard/b.x *\n"),
        ("[ -f /sdcard/f ] || echo absent; test 3 -gt 2 && echo more", "absent\nmore\n"),
        ("echo aGk= | base64 -d; echo; echo -n hi | base64", "hi\naGk=\n"),
        ("date +%s; date '+%Y-%m-%d %H'", "1700000000\n2023-11-14 22\n"),
        ("printf 'a\\nb\\nc\\n' | head -n 1; printf 'a\\nb\\nc\\n' | tail -1", "a\nc\n"),
        ("printf 'Ab\\nxy\\nab3\\n' | grep -i 'ab' | grep -v 3", "Ab\n"),
        ("printf 'a=1\\nb=2\\n' | grep -oE '[ab]=[0-9]'", "a=1\nb=2\n"),
        ("printf 'x1\\ny2\\n' | grep 'x\\|y2'", "x1\ny2\n"),
        ("id -u; whoami", "2000\nshell\n"),
        ("cd /sdcard; mkdir -p a/b && cp none a 2>/dev/null; ls a; rm -rf a; ls", "b\nDownload\n"),
    ],
)  # fmt: skip
async def test_grammar_and_small_programs(desk: Desk, line: str, wanted: str) -> None:
    result = await desk.run(line)
    assert result.out.decode() == wanted
    if "1>&2" not in line:
        assert result.err == b""


async def test_what_is_not_there_is_said_as_android_says_it(desk: Desk) -> None:
    result = await desk.run("foo 1 2")
    assert (result.exit_code, result.err) == (127, b"/system/bin/sh: foo: inaccessible or not found\n")
    assert (
        await desk.run("echo x > /system/x")
    ).err == b"/system/bin/sh: can't create /system/x: Read-only file system\n"
    assert (await desk.run("cat < /nope")).err == b"/system/bin/sh: can't open /nope: No such file or directory\n"
    assert (await desk.run("echo 'open")).exit_code == 1
    for bad in ("echo |", "&& echo", "(echo", "for x in a; do echo; done", "echo `id`", "echo ${x", ")"):
        assert (await desk.run(bad)).err.startswith(b"/system/bin/sh: syntax error: "), bad


async def test_both_outputs_keep_their_order_and_the_exit_code_is_the_last(desk: Desk) -> None:
    result = await desk.run("echo a; cat /no; echo b; false")
    assert result.chunks == [(1, b"a\n"), (2, b"cat: /no: No such file or directory\n"), (1, b"b\n")]
    assert result.exit_code == 1
    assert result.merged() == b"a\ncat: /no: No such file or directory\nb\n"


@settings(max_examples=examples(300), deadline=None)
@given(st.text(alphabet="ab $(){};|&<>'\"\\!#*?=\n2xecho", max_size=40))
def test_any_line_is_answered(line: str) -> None:
    async def once() -> ShellResult:
        async with asyncio.timeout(5):
            return await Desk().run(line)

    result = asyncio.run(once())
    assert 0 <= result.exit_code <= 255
    assert b"RuntimeException" not in result.err


@given(st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=60))
def test_a_quoted_argument_arrives_as_it_is(text: str) -> None:
    import shlex

    assert asyncio.run(Desk().run(f"echo -n {shlex.quote('x' + text)}")).out.decode() == "x" + text


async def test_deep_nesting_is_an_error_not_a_crash(desk: Desk) -> None:
    for opening in ("(", "$(", "{ ", "echo $(", '"$('):
        assert (await desk.run(opening * 5000)).exit_code == 1


async def test_a_cancelled_command_stops(desk: Desk) -> None:
    for line in ("sleep 1000", "logcat", "echo a; sleep 1000 | cat"):
        task = asyncio.create_task(desk.run(line))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_session_remembers(desk: Desk) -> None:
    session = desk.shell.session()
    await session.run("cd /sdcard; NAME=value")
    assert (await session.run("pwd; echo $NAME")).out == b"/sdcard\nvalue\n"
    assert not session.left
    await session.run("exit 5")
    assert (session.left, session.code) == (True, 5)


# -- several commands in one line, as our client joins them


async def test_a_look_at_the_phone_in_one_line(desk: Desk) -> None:
    await desk.phone.launch(QQ)
    line = "dumpsys window displays | grep -E 'mCurrentFocus|mFocusedApp'; echo ::; dumpsys power | grep mWakefulness="
    focus, _, power = (await desk.out(line)).partition("::\n")
    assert f"u0 {QQ}/{QQ}.activity.SplashActivity}}\n" in focus.splitlines(keepends=True)[0]
    assert f"u0 {QQ}/.activity.SplashActivity t12}}" in focus.splitlines()[1]
    assert power == "  mWakefulness=Awake\n"


@pytest.mark.parametrize("part", ["", "windows", "displays"])
async def test_every_kind_of_window(desk: Desk, part: str) -> None:
    async def focus() -> list[str]:
        wanted = ("mCurrentFocus", "mFocusedApp")
        lines = (line.strip() for line in (await desk.out(f"dumpsys window {part}")).splitlines())
        return sorted({line for line in lines if line.startswith(wanted)})

    desk.phone.front = Window(None, kind=WindowKind.NONE)
    assert await focus() == ["mCurrentFocus=null", "mFocusedApp=null"]
    desk.phone.front = Window(QQ, ".activity.ChatActivity", WindowKind.SHADE)
    shade = await focus()
    assert shade[0].endswith(" u0 NotificationShade}")
    assert f" {QQ}/.activity.ChatActivity " in shade[1]


async def test_the_lock_screen_and_sleep(desk: Desk) -> None:
    assert "mDreamingLockscreen=false" in await desk.out("dumpsys window")
    desk.phone.state = ScreenState(awake=False, locked=True)
    everything = await desk.out("dumpsys window")
    assert "mDreamingLockscreen=true" in everything
    assert "isKeyguardShowing=true" in everything
    assert "mDreamingLockscreen=true" in await desk.out("dumpsys window displays")
    assert "isKeyguardShowing=true" in await desk.out("dumpsys window policy")
    assert "mWakefulness=Asleep\n" in await desk.out("dumpsys power")
    assert "mScreenState=OFF" in await desk.out("dumpsys display")
    assert "topResumedActivity" not in await desk.out("dumpsys activity activities")


async def test_other_services(desk: Desk) -> None:
    await desk.phone.launch(QQ)
    activities = await desk.out("dumpsys activity activities")
    assert f" u0 {QQ}/.activity.SplashActivity t12}}" in activities.split("topResumedActivity=")[1].split("\n")[0]
    assert "mResumedActivity: ActivityRecord{" in activities
    assert f"ACTIVITY {QQ}/.activity.SplashActivity " in await desk.out("dumpsys activity top")
    assert "deviceWidth=120, deviceHeight=240" in await desk.out("dumpsys display")
    assert "level: 87" in await desk.out("dumpsys battery")
    keyboard = await desk.out("dumpsys input_method")
    assert f"mCurMethodId={SOGOU}\n" in keyboard
    assert "mInputShown=true" in keyboard
    assert "versionName=9.1.25\n" in await desk.out(f"dumpsys package {QQ}")
    assert "Unable to find package: com.none" in await desk.out("dumpsys package com.none")
    assert (await desk.run("dumpsys nothing")).err == b"Can't find service: nothing\n"


async def test_notifications_are_redacted_unless_asked(desk: Desk) -> None:
    desk.phone.notes.append(Notification(QQ, "11", "什么时候发货？", "0|qq|7|null|10123"))
    plain = await desk.out("dumpsys notification --noredact")
    record = plain.split("NotificationRecord(")[1]
    assert f"pkg={QQ} " in record
    assert "key=0|qq|7|null|10123" in record
    assert "android.title=String (11)\n" in record
    assert "android.text=String (什么时候发货？)\n" in record
    assert "发货" not in await desk.out("dumpsys notification")
    assert "android.text=String [length=7]" in await desk.out("dumpsys notification")


# -- picture and tree


async def test_screencap(desk: Desk) -> None:
    picture = Image.open(io.BytesIO((await desk.run("screencap -p")).out))
    assert (picture.size, picture.convert("RGB").getpixel((5, 5))) == ((120, 240), (10, 20, 30))
    raw = (await desk.run("screencap")).out
    assert struct.unpack("<4I", raw[:16]) == (120, 240, 1, 1)
    assert raw[16:20] == bytes((10, 20, 30, 255))
    assert len(raw) == 16 + 120 * 240 * 4
    assert await desk.out("screencap -p /sdcard/s.png; screencap /sdcard/t.png; screencap /sdcard/u") == ""
    assert desk.files.read("/sdcard/s.png") == desk.files.read("/sdcard/t.png")
    assert desk.files.read("/sdcard/u") == raw
    display = (await desk.out("dumpsys SurfaceFlinger --display-id")).split()[1]
    assert (await desk.run(f"screencap -d {display}")).out == raw
    assert (await desk.run("screencap -d 7 -p")).exit_code == 1


async def test_a_screencap_that_fails_leaves_the_old_file(desk: Desk) -> None:
    failed = await desk.run("screencap -p /sdcard/none/s.png")
    assert (failed.exit_code, failed.out) == (1, b"")
    assert b"No such file or directory" in failed.err


async def test_the_tree(desk: Desk) -> None:
    assert await desk.out("uiautomator dump") == "UI hierchary dumped to: /sdcard/window_dump.xml\n"
    root = ET.fromstring(desk.files.read("/sdcard/window_dump.xml"))
    nodes = list(root.iter("node"))
    assert nodes[0].get("text") == '客服 & "11" <b>\n.'
    assert (nodes[1].get("resource-id"), nodes[1].get("bounds")) == (f"{QQ}:id/input", "[0,200][100,240]")
    direct = await desk.out("uiautomator dump --compressed /dev/tty")
    assert direct.endswith("</hierarchy>UI hierchary dumped to: /dev/tty\n")
    assert direct.encode().startswith(desk.files.read("/sdcard/window_dump.xml"))


async def test_a_dump_that_fails_leaves_the_old_file(desk: Desk) -> None:
    await desk.run("uiautomator dump /sdcard/ui.xml")
    before = desk.files.read("/sdcard/ui.xml")
    desk.phone.nodes.clear()
    for words in ("ERROR: could not get idle state.", "ERROR: null root node returned by UiTestAutomationBridge."):
        desk.phone.tree_failure = words
        result = await desk.run("uiautomator dump /sdcard/ui.xml")
        assert (result.out, result.err.decode()) == (b"", words + "\n")
    assert desk.files.read("/sdcard/ui.xml") == before


# -- touch, text, keyboard


async def test_touches_and_keys(desk: Desk) -> None:
    line = (
        "input tap 10 20.5; input touchscreen -d 0 swipe 1 2 3 4 250; input swipe 5 5 5 5; "
        "input draganddrop 1 1 2 2 2000; input keyevent 4 KEYCODE_HOME ENTER; input keyevent --longpress 26"
    )
    assert await desk.out(line) == ""
    assert desk.phone.events == [
        ("tap", 10.0, 20.5),
        ("swipe", 1.0, 2.0, 3.0, 4.0, 0.25),
        ("swipe", 5.0, 5.0, 5.0, 5.0, 0.3),
        ("swipe", 1.0, 1.0, 2.0, 2.0, 2.0),
        ("key", "BACK"),
        ("key", "HOME"),
        ("key", "ENTER"),
        ("key", "POWER"),
    ]


@pytest.mark.parametrize(
    "line", ["input tap 1", "input tap a b", "input keyevent", "input keyevent FOO", "input jump", "input"]
)
async def test_bad_input_calls(desk: Desk, line: str) -> None:
    assert (await desk.run(line)).exit_code == 255
    assert desk.phone.events == []


async def test_the_traps_of_input_text(desk: Desk) -> None:
    await desk.run("input text a b; input text 'c%sd'")
    assert desk.phone.field_text == "ac d"
    refused = await desk.run("input text 你好")
    assert refused.exit_code == 255
    assert b"Exception occurred while executing 'text':\njava.lang.NullPointerException" in refused.err
    assert desk.phone.field_text == "ac d"


async def test_refused_input_is_a_security_exception(desk: Desk) -> None:
    desk.phone.refusing = True
    for line in ("input tap 1 1", "input swipe 1 1 2 2", "input keyevent 4", "input text a", f"ime set {ADB_KEYBOARD}"):
        result = await desk.run(line)
        verb = line.split()[1]
        assert result.exit_code == 255
        assert f"Exception occurred while executing '{verb}':\njava.lang.SecurityException: ".encode() in result.err
        assert b"INJECT_EVENTS" in result.err
    assert desk.phone.events == []


async def test_the_adb_keyboard(desk: Desk) -> None:
    text = base64.b64encode("您好，'两天'内发货。\n".encode()).decode()
    typed = f"am broadcast -a ADB_INPUT_B64 --es msg {text} -p com.android.adbkeyboard"
    answer = await desk.out(typed)
    assert answer.startswith("Broadcasting: Intent { act=ADB_INPUT_B64 ")
    assert answer.endswith("Broadcast completed: result=0\n")
    assert desk.phone.field_text == ""  # not the current input method: answered ok, typed nothing
    assert await desk.out(f"ime enable {ADB_KEYBOARD}; ime set {ADB_KEYBOARD}") == (
        f"Input method {ADB_KEYBOARD}: already enabled for user #0\nInput method {ADB_KEYBOARD} selected for user #0\n"
    )
    assert await desk.out("settings get secure default_input_method") == ADB_KEYBOARD + "\n"
    await desk.out(typed)
    assert desk.phone.field_text == "您好，'两天'内发货。\n"
    await desk.out("am broadcast -a ADB_CLEAR_TEXT")
    await desk.out("am broadcast -a ADB_INPUT_TEXT --es msg 'a b'")
    assert desk.phone.field_text == "a b"
    await desk.out("am broadcast -a ADB_EDITOR_CODE --ei code 4")
    assert desk.phone.events[-1] == ("broadcast", "ADB_EDITOR_CODE", {"code": "4"}, None)
    assert desk.phone.events[0] == ("broadcast", "ADB_INPUT_B64", {"msg": text}, "com.android.adbkeyboard")


@pytest.mark.parametrize("ending", ["--es msg", "--es msg ''", '--es msg ""'])
async def test_an_empty_text_cannot_be_broadcast(desk: Desk, ending: str) -> None:
    result = await desk.run(f"am broadcast -a ADB_INPUT_TEXT {ending}")
    assert result.exit_code == 255
    assert b'IllegalArgumentException: Argument expected after "msg"' in result.err
    assert desk.phone.events == []


async def test_input_methods(desk: Desk) -> None:
    assert await desk.out("ime list -s -a") == f"{SOGOU}\n{ADB_KEYBOARD}\n"
    await desk.out(f"ime disable {ADB_KEYBOARD}")
    assert await desk.out("ime list -s") == f"{SOGOU}\n"
    assert (await desk.run(f"ime set {ADB_KEYBOARD}")).exit_code == 255
    assert await desk.out(f"ime enable {ADB_KEYBOARD}") == f"Input method {ADB_KEYBOARD}: now enabled for user #0\n"
    assert await desk.out("ime list -s") == f"{SOGOU}\n{ADB_KEYBOARD}\n"
    unknown = await desk.run("ime set com.none/.Ime")
    assert unknown.err == b"Unknown input method com.none/.Ime cannot be selected for user #0\n"
    assert f"{SOGOU}:\n  mId={SOGOU}" in await desk.out("ime list")


async def test_settings_and_properties(desk: Desk) -> None:
    assert await desk.out("settings get system nothing") == "null\n"
    assert (
        await desk.out("settings put system a 'b c'; settings get system a; settings delete system a")
        == "b c\nDeleted 1 rows\n"
    )
    assert await desk.out("settings get system a; settings list system") == "null\nscreen_brightness=128\n"
    assert (await desk.run("settings get nowhere a")).exit_code == 255
    assert (
        await desk.out("getprop ro.build.version.sdk; getprop none; setprop debug.x 1; getprop debug.x") == "33\n\n1\n"
    )
    assert "[ro.product.model]: [Small_Phone]\n" in await desk.out("getprop")
    await desk.out("svc power stayon true")
    assert desk.phone.settings["global", "stay_on_while_plugged_in"] == "7"
    await desk.out("svc power stayon false")
    assert desk.phone.settings["global", "stay_on_while_plugged_in"] == "0"
    assert await desk.out("wm size; wm density") == "Physical size: 120x240\nPhysical density: 440\n"
    await desk.out("wm dismiss-keyguard; cmd statusbar expand-notifications")
    assert desk.phone.front == Window(HOME, desk.phone.front.activity, WindowKind.SHADE)
    await desk.out("cmd statusbar collapse; logcat -d; logcat -c")
    assert desk.phone.front == Window(HOME, desk.phone.front.activity, WindowKind.APP)


# -- apps


async def test_packages(desk: Desk) -> None:
    assert await desk.out("pm list packages -3") == f"package:{QQ}\n"
    assert await desk.out("cmd package list packages tencent; pm path com.none") == f"package:{QQ}\n"
    assert f"package:{HOME}\n" in await desk.out("pm list packages")
    assert (await desk.run("pm path com.none")).exit_code == 1
    assert (await desk.out(f"pm path {QQ}")).endswith(f"{QQ}-1/base.apk\n")
    resolved = await desk.out(f"cmd package resolve-activity --brief -c android.intent.category.LAUNCHER {QQ}")
    assert resolved.splitlines()[-1] == f"{QQ}/.activity.SplashActivity"
    assert await desk.out("cmd package resolve-activity --brief com.none") == "No activity found\n"
    found = await desk.out(
        "cmd package query-activities --brief -a android.intent.action.MAIN -c android.intent.category.LAUNCHER"
    )
    assert found.startswith("2 activities found:\n  Activity #0:\n")
    assert f"    {QQ}/.activity.SplashActivity\n" in found
    assert HOME not in found


async def test_starting_and_stopping(desk: Desk) -> None:
    launched = await desk.run(f"monkey -p {QQ} -c android.intent.category.LAUNCHER 1")
    assert launched.out.startswith(b"Events injected: 1\n")
    assert desk.phone.front.package == QQ
    assert (await desk.run("monkey -p com.none 1")).exit_code == 252
    await desk.out(f"am force-stop {QQ}")
    assert desk.phone.front.package == HOME
    assert await desk.out(f"am start -n {QQ}/.activity.SplashActivity") == (
        f"Starting: Intent {{ cmp={QQ}/.activity.SplashActivity }}\n"
    )
    assert desk.phone.front.package == QQ
    assert (await desk.run(f"am start -n {QQ}/{QQ}.activity.SplashActivity")).exit_code == 0
    for wrong in ("com.none/.Main", f"{QQ}/.Main"):
        missing = await desk.run(f"am start -n {wrong}")
        assert (missing.exit_code, b"Error type 3" in missing.err) == (1, True)
    assert "Status: ok" in await desk.out("am start -W -a android.settings.WIFI_SETTINGS")
    await desk.out("am start -a android.intent.action.MAIN -c android.intent.category.HOME")
    assert desk.phone.events[-1] == ("key", "HOME")


async def test_links(desk: Desk) -> None:
    await desk.out(f"am start -a android.intent.action.VIEW -d 'https://example.com/?a=1&b=2' {QQ}")
    assert desk.phone.events == [("url", "https://example.com/?a=1&b=2")]
    for line in ("-d foo:bar", "-d https://example.com com.none", "-a android.intent.action.DIAL"):
        refused = await desk.run(f"am start -a android.intent.action.VIEW {line}")
        assert refused.exit_code == 1
        assert b"unable to resolve Intent" in refused.err


# -- files


async def test_files_stay_inside_the_phone(desk: Desk) -> None:
    for path in ("/etc/passwd", "/sdcard/../../../etc/passwd", "../etc/passwd"):
        assert (await desk.run(f"cat {path}")).err.endswith(b"No such file or directory\n")
    assert (await desk.run("echo x > /sdcard/../../etc/x")).exit_code == 1
    assert (await desk.run("rm -rf /data")).exit_code == 1
    await desk.out("echo y > /storage/emulated/0/y")
    assert desk.files.read("/sdcard/y") == b"y\n"


async def test_a_full_phone_says_so() -> None:
    desk = Desk()
    desk.files = FileTree(max_bytes=1000)
    desk.shell = Shell(desk.phone, desk.files)
    result = await desk.run("screencap /sdcard/a")
    assert result.exit_code == 1
    assert b"No space left on device" in result.err


async def test_standard_input(desk: Desk) -> None:
    assert await desk.out("cat > /sdcard/in; md5sum /sdcard/in | head -c 8", b"abc") == "90015098"
    assert await desk.out("cat; cat", b"once") == "once"
