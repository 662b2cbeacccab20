"""An Android phone over adb."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import structlog
from pydantic import SecretStr

from agent_core.devices.adb import parse
from agent_core.devices.adb.brands import input_denied
from agent_core.devices.adb.capture import Capture, CapturedPicture, CaptureHistory, Way, extract_xml, parse_tree
from agent_core.devices.adb.keyboard import Keyboard
from agent_core.devices.adb.launching import WINDOW_COMMAND, Launcher
from agent_core.devices.adb.power import Power
from agent_core.devices.adb.touches import Touches
from agent_core.devices.adb.transport import Elsewhere, ShellResult, Transport, require
from agent_core.devices.base import (
    Battery,
    DeviceInfo,
    Frame,
    Key,
    Look,
    LookedPicture,
    Node,
    Notification,
    ScreenState,
    System,
    TextInput,
    TouchWatch,
    Window,
    WindowKind,
)
from agent_core.devices.checks import check_package, check_point, check_properties, check_seconds, check_url
from agent_core.devices.installed import PACKAGES_SECONDS, InstalledApps
from agent_core.devices.shell import PIPE, Raw, command_line
from agent_core.devices.waiting import Time
from agent_core.errors import (
    AppNotFound,
    CommandFailed,
    ScreenOff,
    ScreenshotFailed,
    TreeUnavailable,
)
from agent_core.geometry import Point
from agent_core.retry import Sleep, with_retries

log = structlog.get_logger(__name__)

TREE_SECONDS = 3.0
_TREE_FILE = "/data/local/tmp/phonedesk-tree.xml"

LOOK_LINE = command_line(
    WINDOW_COMMAND,
    ("dumpsys", "power", PIPE, "grep", "-E", parse.POWER_LINES),
)
_ACTIVITY_LINE = command_line(("dumpsys", "activity", "activities", PIPE, "grep", "-E", parse.ACTIVITY_LINES))


class Address(Protocol):
    """The address that an adb server listens on."""

    host: str
    port: int


class AdbDevice:
    """An Android phone over adb; implements ``Device``.

    Reads are retried by the retry table. An action is never repeated once the phone was asked to do it.
    """

    def __init__(
        self,
        server: Address,
        serial: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Sleep = asyncio.sleep,
        apps: InstalledApps | None = None,
        pictures: CaptureHistory | None = None,
        at: str = "",
        elsewhere: Elsewhere | None = None,
    ) -> None:
        """at, elsewhere: see ``Transport``."""
        self._serial = serial
        self._time = Time(clock, sleep)
        self._transport = Transport(server.host, server.port, serial, sleep=sleep, at=at, elsewhere=elsewhere)
        self._capture = Capture(self._transport, self._time, pictures or CaptureHistory())
        self._keyboard = Keyboard(self._transport, self._time)
        self.tree_seconds = TREE_SECONDS
        self._apps = apps or InstalledApps()
        self._versions: dict[str, tuple[float, str | None]] = {}
        self._touches = Touches(self._transport)
        self._launcher = Launcher(self._transport, self._time, self.window, self._apps.components)
        self._power = Power(self._transport, self._time, self.look)

    @property
    def serial(self) -> str:
        return self._serial

    @property
    def system(self) -> System:
        return System.ANDROID

    @property
    def round_trips(self) -> int:
        """The number of calls made to the phone so far."""
        return self._transport.round_trips

    @property
    def capture_way(self) -> Way:
        """The way in which the next picture would be taken: the faster one, once both were tried."""
        return self._capture.way

    # -- identity and state

    async def info(self) -> DeviceInfo:
        displays = ("dumpsys", "window", "displays", PIPE, "grep", "cur=")
        result = await self._read(
            ("getprop", "ro.product.model"), ("getprop", "ro.build.version.sdk"), ("wm", "size"), displays
        )
        lines = [*result.out.splitlines(), "", ""]
        size = parse.parse_size(result.out) or self._capture.size
        if size is None:
            raise CommandFailed(
                f"The phone did not tell the size of its screen: {parse.first_line(result.text)}",
                key="no_screen_size",
                why=parse.first_line(result.text),
            )
        sdk = lines[1].strip()
        return DeviceInfo(
            serial=self._serial,
            model=lines[0].strip(),
            size=size,
            sdk=int(sdk) if sdk.isdecimal() else 0,
            connection=parse.connection_of(self._transport.at),
        )

    async def properties(self, *names: str) -> Mapping[str, str]:
        check_properties(names)
        if not names:
            return {}
        result = await self._read(*(("getprop", name) for name in names))
        lines = [line.strip() for line in result.out.splitlines()]
        return dict(zip(names, lines + [""] * (len(names) - len(lines)), strict=False))

    async def battery(self) -> Battery:
        """Read the charge, and whether the phone is being charged."""
        return parse.parse_battery((await self._read(("dumpsys", "battery"))).out)

    async def packages(self, *, fresh: bool = False, also: Sequence[str] = ()) -> Sequence[str]:
        return await self._apps.packages(self._time.clock(), self._listed, fresh=fresh)

    async def _listed(self) -> Sequence[str]:
        result = await self._read(("pm", "list", "packages"))
        names = parse.parse_packages(result.out)
        if not names:
            error = CommandFailed(
                f"The phone did not list its apps: {parse.first_line(result.text)}",
                key="no_app_list",
                why=parse.first_line(result.text),
            )
            error.may_repeat = True
            raise error
        self._versions.clear()  # an app may have been updated
        return names

    async def app_version(self, package: str) -> str | None:
        """Return the version. It is kept for an hour, and no longer than the list of packages."""
        check_package(package)
        now = self._time.clock()
        asked_at, version = self._versions.get(package, (now - PACKAGES_SECONDS, None))
        if now - asked_at >= PACKAGES_SECONDS:
            result = await self._read(("dumpsys", "package", package, PIPE, "grep", "versionName="))
            version = parse.parse_version(result.out)
            self._versions[package] = (now, version)
        return version

    # -- the screen

    async def look(self) -> Look:
        """Return the window in front and the state of the screen, in one call."""
        return await self._look_of((await self._read_line(LOOK_LINE)).out)

    async def window(self) -> Window:
        return (await self.look()).window

    async def screen(self) -> ScreenState:
        return (await self.look()).screen

    async def screenshot(self) -> Frame:
        return (await self._shot_again("")).frame

    async def observe(self) -> LookedPicture:
        """Return a picture and the look, in one call.

        Raises ScreenOff if the screen is off, whatever the picture shows.
        """
        shot = await self._shot_again(LOOK_LINE)
        return LookedPicture(shot.frame, await self._look_of(shot.before))

    async def tree(self) -> Sequence[Node]:
        try:
            async with asyncio.timeout(self.tree_seconds):
                xml = await self._dump()
        except TimeoutError as error:
            raise TreeUnavailable(
                f"The accessibility tree took over {self.tree_seconds:g} s.",
                key="tree_late",
                seconds=f"{self.tree_seconds:g}",
            ) from error
        return await asyncio.to_thread(parse_tree, xml, self._capture.size)

    async def notifications(self) -> Sequence[Notification]:
        result = await self._read(("dumpsys", "notification", "--noredact"))
        if result.code != 0 or parse.dump_refused(result.out):
            raise CommandFailed(
                f"The phone does not tell its notifications: {parse.first_line(result.text)}",
                key="no_notifications",
                why=parse.first_line(result.text),
            )
        return parse.parse_notifications(result.out)

    # -- actions

    async def tap(self, point: Point) -> None:
        await self._act(("input", "tap", *_pair(point)))

    async def double_tap(self, point: Point) -> None:
        await self._act(("input", "tap", *_pair(point)), ("input", "tap", *_pair(point)))

    async def long_press(self, point: Point, seconds: float = 1.0) -> None:
        await self.swipe(point, point, seconds)

    async def swipe(self, start: Point, end: Point, seconds: float = 0.4) -> None:
        check_seconds(seconds)
        milliseconds = str(max(1, round(seconds * 1000)))
        await self._act(("input", "swipe", *_pair(start), *_pair(end), milliseconds), seconds=15 + seconds)

    async def key(self, key: Key) -> None:
        await self._act(("input", "keyevent", f"KEYCODE_{Key(key).value}"))

    def keyboard(self) -> AbstractAsyncContextManager[TextInput]:
        return self._keyboard.hold()

    async def restore_keyboard(self) -> str | None:
        """Put back the keyboard that a dead run left behind. Call this when a phone is taken.

        Returns the id of the keyboard; None if there was nothing to do.
        """
        return await self._keyboard.restore()

    async def launch(self, package: str) -> None:
        """Bring the app to the front. Raises CommandFailed if something else is in front 10 s after it was started."""
        self._versions.pop(package, None)  # an app that has to be started may have been updated
        try:
            await self._launcher.launch(package)
        except AppNotFound:
            self._apps.forget()
            raise

    def start_apps_afresh(self) -> None:
        """Restart each app at its next first launch from now on, so that nothing of what it showed before is left."""
        self._launcher.start_afresh()

    async def open_url(self, url: str, package: str) -> None:
        check_package(package)
        self._versions.pop(package, None)
        check_url(url)
        args = ("am", "start", "-a", "android.intent.action.VIEW", "-d", url, "-p", package)
        result = await self._transport.shell(command_line(args))
        require(result)
        refusal = re.search(r"^Error[: ].*", result.text, re.MULTILINE)  # older Androids give exit status 0 with it
        if refusal:
            raise CommandFailed(
                f"{package} does not open {url[:100]}: {refusal[0].strip()[:200]}",
                key="url_refused",
                package=package,
                url=url[:100],
                why=refusal[0].strip()[:200],
            )

    async def recover(self) -> None:
        await self.restore_keyboard()
        await self.restore_awake()
        await self._power.screen_lock.recover()

    async def wake(self) -> None:
        """Turn the screen on and unlock the phone.

        Raises ScreenOff if the screen stays off, CommandFailed if the lock screen asks for a secret that we do not
        have.
        """
        await self._power.wake()

    def kept_awake(self) -> AbstractAsyncContextManager[None]:
        return self._power.hold()

    def unlock_with(self, pin: SecretStr | None) -> None:
        """Have ``wake`` type this PIN if the lock screen asks for one; ``leave`` then locks the phone again."""
        self._power.screen_lock.pin = pin

    def touch_watch(self, watch: TouchWatch | None = None) -> AbstractAsyncContextManager[TouchWatch]:
        return self._touches.watch(watch or TouchWatch())

    async def restore_awake(self) -> bool:
        """Put back the settings that a dead run changed to keep the screen on. Return whether there were any."""
        return await self._power.restore()

    async def leave(self) -> None:
        await self._power.lock_again()

    async def close(self) -> None:
        self._capture.forget()

    # -- pictures

    async def _shot_again(self, before: str) -> CapturedPicture:
        return await with_retries(lambda: self._shot(before), sleep=self._time.sleep)

    async def _shot(self, before: str) -> CapturedPicture:
        shot = await self._capture.take(before)
        if shot.several_displays and self._capture.display is None and await self._choose_display():
            shot = await self._capture.take(before)
        awake = parse.parse_awake(shot.before) if before else not shot.black or (await self.look()).screen.awake
        if not awake:
            raise ScreenOff("The screen of the phone is off.", key="screen_off")
        if shot.black and await self._choose_display():
            shot = await self._capture.take(before)
        if shot.black:
            raise ScreenshotFailed("The picture of the screen is black.", key="black_screenshot")
        return shot

    async def _choose_display(self) -> bool:
        """Look for the display that is on. Return whether it is not the one used so far."""
        result = await self._read(("dumpsys", "display"))
        displays = parse.parse_display_count(result.out)
        found = parse.parse_active_display(result.out) if displays > 1 else None
        changed = found is not None and found != self._capture.display
        self._capture.display = found or self._capture.display
        return changed

    async def _look_of(self, text: str) -> Look:
        look = parse.parse_look(text)
        if look.window.kind is not WindowKind.NONE or "mCurrentFocus" in text or "mFocusedApp" in text:
            return look
        # Some makers print neither; then the activity manager is asked for the app in front.
        return parse.parse_look(text + (await self._read_line(_ACTIVITY_LINE)).out)

    async def _dump(self) -> str:
        # The time-out of the whole is the caller's; these are only an upper bound.
        line = command_line(("uiautomator", "dump", "--compressed", "/dev/tty"))
        try:
            output = await self._transport.exec_out(line, seconds=60)
            if b"</hierarchy>" not in output and b"ERROR" not in output:
                # If there is no terminal to print to, use a file, but never one of an earlier dump.
                remove = ("rm", "-f", _TREE_FILE)
                dump = ("uiautomator", "dump", "--compressed", _TREE_FILE)
                line = command_line(remove, (*dump, Raw("&&"), "cat", _TREE_FILE), remove)
                output = await self._transport.exec_out(line, seconds=60)
        except CommandFailed as error:
            raise TreeUnavailable(
                f"The accessibility tree could not be read: {error.message}", key="tree_unread", why=error
            ) from error
        return extract_xml(output)

    # -- calls

    async def _read(self, *commands: Sequence[str | Raw]) -> ShellResult:
        """Run commands that may be run twice without harm."""
        return await self._read_line(command_line(*commands))

    async def _read_line(self, line: str) -> ShellResult:
        return await self._transport.shell(line, safe=True)

    async def _act(self, *commands: Sequence[str | Raw], seconds: float = 15.0) -> None:
        result = await self._transport.shell(command_line(*commands), seconds=seconds)
        if parse.denies_input(result.text):
            raise input_denied(await self._transport.brand())
        require(result)


def _pair(point: Point) -> tuple[str, str]:
    check_point(point)
    return str(int(point.x)), str(int(point.y))
