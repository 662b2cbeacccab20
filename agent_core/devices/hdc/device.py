"""A HarmonyOS phone over hdc. Not tried on a real phone: the forms are those of OpenHarmony's sources and documents."""

from __future__ import annotations

import asyncio
import base64
import math
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext

import structlog

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
)
from agent_core.devices.checks import check_package, check_point, check_properties, check_seconds, check_url
from agent_core.devices.hdc import parse
from agent_core.devices.hdc.keyboard import HOLDER_FILE, KEYS, HdcKeyboard, refusal, ui_input
from agent_core.devices.hdc.power import RESTORE, HdcPower
from agent_core.devices.hdc.transport import HdcProgram, HdcTransport
from agent_core.devices.installed import PACKAGES_SECONDS, InstalledApps
from agent_core.devices.pictures import decoded, digest, is_black
from agent_core.devices.shell import AND, Raw
from agent_core.devices.waiting import Time
from agent_core.errors import AppNotFound, CommandFailed, DeviceError, ScreenOff, ScreenshotFailed, TreeUnavailable
from agent_core.geometry import Point
from agent_core.retry import Sleep, with_retries

log = structlog.get_logger(__name__)

FOLDER = "/data/local/tmp"  # the only place where hdc's user may write
TREE_SECONDS = 5.0
LAUNCH_SECONDS = 10.0
MIN_SPEED, MAX_SPEED = 200, 40_000  # pixels a second that uitest takes
STILL = 5  # pixels: a swipe that moves less is a touch that is held
LONG_SECONDS = 0.5  # a touch that is held for longer is a long press, of 1.5 s: uitest has no other
STARTED = "start ability successfully"
_LOOK = (
    ("aa", "dump", "-l"),
    ("hidumper", "-s", "PowerManagerService", "-a", "-s"),
    ("hidumper", "-s", "ScreenlockService", "-a", "-all"),
    ("hidumper", "-s", "WindowManagerService", "-a", "-a"),
)


class HdcDevice:
    """A HarmonyOS phone over hdc; implements ``Device``.

    Reads are retried by the retry table. An action is never repeated once the phone was asked to do it.
    """

    def __init__(
        self,
        program: HdcProgram,
        key: str,
        *,
        sleep: Sleep,
        apps: InstalledApps,
    ) -> None:
        """key: the phone's connect key, as ``hdc list targets`` has it: a serial number, or host:port."""
        self._transport = HdcTransport(program, key, sleep=sleep)
        self._time = Time(time.monotonic, sleep)
        self._apps = apps
        self._keyboard = HdcKeyboard(self._transport, self.tree, lambda point: (ui_input("click", *_pair(point)),))
        self._power = HdcPower(self._transport, self._time, self.look, self._swipe_up)
        self._bundles: dict[str, tuple[float, parse.Bundle | None]] = {}
        self._token = secrets.token_hex(4)
        self._size: tuple[int, int] | None = None
        self._last: tuple[bytes, Frame] | None = None  # the newest picture, as it came
        self._left_file = False  # a picture of ours may be on the phone
        # None: apps go on as they were; else the packages that were restarted already
        self._afresh: set[str] | None = None

    @property
    def serial(self) -> str:
        return self._transport.serial

    @property
    def system(self) -> System:
        return System.HARMONYOS

    @property
    def round_trips(self) -> int:
        return self._transport.round_trips

    # -- identity and state

    async def info(self) -> DeviceInfo:
        parameters = await self.properties("const.product.model", "const.ohos.apiversion")
        model, api = parameters["const.product.model"], parameters["const.ohos.apiversion"]
        size = self._size or parse.picture_size((await self._snapshot(before=()))[1])
        if size is None:
            raise CommandFailed(
                "The phone did not tell the size of its screen: snapshot_display names none.",
                key="no_screen_size",
                why="snapshot_display",
            )
        return DeviceInfo(
            serial=self.serial,
            model=model,
            size=size,
            sdk=int(api) if api.isdecimal() else 0,
            connection="tcp" if ":" in self._transport.key else "usb",
            system=System.HARMONYOS,
        )

    async def properties(self, *names: str) -> Mapping[str, str]:
        """Read parameters of HarmonyOS (``const.product.model``); "" for one that the phone does not have."""
        check_properties(names)
        if not names:
            return {}
        values = [part.strip() for part in await self._parts(*(("param", "get", name) for name in names))]
        return {
            name: "" if value.startswith("Get parameter") else value for name, value in zip(names, values, strict=True)
        }

    async def battery(self) -> Battery:
        return parse.parse_battery((await self._read(("hidumper", "-s", "BatteryService", "-a", "-i")))[1])

    async def packages(self, *, fresh: bool = False, also: Sequence[str] = ()) -> Sequence[str]:
        return await self._apps.packages(self._time.clock(), self._listed, fresh=fresh)

    async def _listed(self) -> Sequence[str]:
        _, output = await self._read(("bm", "dump", "-a"))
        names = parse.parse_packages(output)
        if not names:
            why = output.strip()[:300]
            error = CommandFailed(f"The phone did not list its apps: {why}", key="no_app_list", why=why)
            error.may_repeat = True
            raise error
        self._bundles.clear()  # an app may have been updated
        return names

    async def app_version(self, package: str) -> str | None:
        """Return the version. It is kept for an hour, and no longer than the list of packages."""
        bundle = await self._bundle(package)
        return None if bundle is None else bundle.version

    async def _bundle(self, package: str, *, fresh: bool = False) -> parse.Bundle | None:
        """Return the phone's record of an app, which is long; None if the app is not installed."""
        check_package(package)
        now = self._time.clock()
        asked_at, bundle = self._bundles.get(package, (now - PACKAGES_SECONDS, None))
        if fresh or now - asked_at >= PACKAGES_SECONDS:
            bundle = parse.parse_bundle((await self._read(("bm", "dump", "-n", package)))[1])
            self._bundles[package] = (now, bundle)
        return bundle

    # -- the screen

    async def look(self) -> Look:
        return parse.parse_look(*await self._parts(*_LOOK))

    async def window(self) -> Window:
        return (await self.look()).window

    async def screen(self) -> ScreenState:
        return (await self.look()).screen

    async def screenshot(self) -> Frame:
        return (await self.observe()).frame

    async def observe(self) -> LookedPicture:
        """Return the picture and the look of one moment, in one call if the phone has base64, else in two."""
        return await with_retries(self._observe, sleep=self._time.sleep)

    async def _observe(self) -> LookedPicture:
        started = self._time.clock()
        parts, said, data = await self._snapshot(_LOOK)
        look = parse.parse_look(*parts)
        if not look.screen.awake:
            raise ScreenOff("The screen of the phone is off.", key="screen_off")
        if data is None:
            why = next((line.strip() for line in said.splitlines() if "rror" in line or "fail" in line), said.strip())
            raise ScreenshotFailed(f"The phone gave no picture: {why[:300]}.", key="no_screenshot", why=why[:300])
        if self._last is None or self._last[0] != data:
            self._last = (data, await asyncio.to_thread(_decoded, data, started))
        frame = self._last[1]
        self._size = frame.size
        return LookedPicture(Frame(frame.image, frame.digest, started), look)

    async def _snapshot(self, before: Sequence[tuple[str, ...]]) -> tuple[list[str], str, bytes | None]:
        """Take a picture after the commands of ``before``, all in one call.

        Returns the outputs of ``before``, the output about the picture, and its file (None if there is none).
        ``snapshot_display`` accepts only the ending .jpeg; if it refuses, uitest's slower PNG is tried.
        """
        jpeg, png = (f"{FOLDER}/phonedesk-{self._token}.{ending}" for ending in ("jpeg", "png"))
        self._left_file = True
        take = ("snapshot_display", "-f", jpeg)
        *parts, said, coded = await self._parts(*before, take, ("base64", jpeg, AND, "rm", "-f", jpeg))
        if "success" in said:
            return parts, said, await self._file(jpeg, coded)
        again, coded = await self._parts(("uitest", "screenCap", "-p", png), ("base64", png, AND, "rm", "-f", png))
        return parts, said + again, await self._file(png, coded) if "ScreenCap saved" in again else None

    async def _file(self, path: str, coded: str) -> bytes:
        """Return a file that the phone printed as base64. A phone without that program sends it in a separate call."""
        try:
            data = base64.b64decode("".join(coded.split()), validate=True)
        except ValueError:
            data = b""
        self._left_file = not data
        return data or await self._transport.receive(path)

    async def tree(self) -> Sequence[Node]:
        path = f"{FOLDER}/phonedesk-{self._token}.json"
        remove = ("rm", "-f", path)
        try:
            async with asyncio.timeout(TREE_SECONDS):
                parts = await self._parts(remove, ("uitest", "dumpLayout", "-p", path), ("cat", path), remove)
        except TimeoutError as error:
            self._left_file = True
            raise TreeUnavailable(
                f"The accessibility tree took over {TREE_SECONDS:g} s.", key="tree_late", seconds=f"{TREE_SECONDS:g}"
            ) from error
        except CommandFailed as error:
            raise TreeUnavailable(
                f"The accessibility tree could not be read: {error.message}", key="tree_unread", why=error
            ) from error
        said, text = parts[1].strip(), parts[2]
        if "saved to" not in said:
            why = said[:200] or "nothing was printed"
            raise TreeUnavailable(f"The accessibility tree could not be read: {why}.", key="tree_unread", why=why)
        return await asyncio.to_thread(parse.parse_tree, text, self._size)

    async def notifications(self) -> Sequence[Notification]:
        """Raise CommandFailed: HarmonyOS does not report notifications over hdc."""
        why = "HarmonyOS does not tell them over hdc"
        raise CommandFailed(f"The phone does not tell its notifications: {why}", key="no_notifications", why=why)

    # -- actions

    async def tap(self, point: Point) -> None:
        await self._act(ui_input("click", *_pair(point)))

    async def double_tap(self, point: Point) -> None:
        await self._act(ui_input("doubleClick", *_pair(point)))

    async def long_press(self, point: Point, seconds: float = 1.0) -> None:
        """Press for 1.5 s whatever ``seconds`` is: uitest has no other long press."""
        check_seconds(seconds)
        await self._act(ui_input("longClick", *_pair(point)))

    async def swipe(self, start: Point, end: Point, seconds: float = 0.4) -> None:
        """Swipe at the speed that takes ``seconds``, within the 200 to 40,000 pixels a second that uitest takes."""
        check_seconds(seconds)
        distance = math.hypot(end.x - start.x, end.y - start.y)
        if distance < STILL:
            await self._act(ui_input("longClick" if seconds > LONG_SECONDS else "click", *_pair(start)))
            return
        speed = min(MAX_SPEED, max(MIN_SPEED, round(distance / max(seconds, 0.001))))
        await self._act(ui_input("swipe", *_pair(start), *_pair(end), str(speed)), seconds=15 + distance / speed)

    async def _swipe_up(self) -> None:
        width, height = self._size or (await self.info()).size
        await self.swipe(Point(width // 2, height * 4 // 5), Point(width // 2, height // 5), 0.3)

    async def key(self, key: Key) -> None:
        await self._act(ui_input("keyEvent", KEYS[Key(key)]))

    def keyboard(self) -> AbstractAsyncContextManager[TextInput]:
        return self._keyboard.hold()

    async def launch(self, package: str) -> None:
        """Bring the app to the front. Raises CommandFailed if something else is in front 10 s after it was started."""
        ended: tuple[tuple[str, ...], ...] = ()
        if self._afresh is not None and package not in self._afresh:
            ended = (("aa", "force-stop", package),)
        said = await self._start(package, ended)
        if said is not None:  # an update may have moved the ability
            said = await self._start(package, ended, fresh=True)
        if said is not None:
            raise said
        if self._afresh is not None:
            self._afresh.add(package)
        await self._wait_in_front(package)

    async def _start(
        self, package: str, before: Sequence[tuple[str, ...]], *, fresh: bool = False
    ) -> CommandFailed | None:
        """Start the app's main ability.

        Return the phone's refusal as an error if there is no such ability (any more).
        """
        bundle = await self._bundle(package, fresh=fresh)
        if bundle is None:
            self._apps.forget()
            raise AppNotFound(f"{package} is not installed on the phone.", key="package_missing", package=package)
        if bundle.ability is None:
            raise AppNotFound(f"{package} has nothing that could be started.", key="package_dead", package=package)
        _, output = await self._transport.shell(*before, ("aa", "start", "-a", bundle.ability, "-b", package))
        return None if STARTED in output else _said(output)

    async def _wait_in_front(self, package: str) -> None:
        seen: Window | None = None

        async def in_front() -> bool | None:
            nonlocal seen
            seen = await self.window()
            return True if seen.package == package else None

        if await self._time.until(in_front, LAUNCH_SECONDS) is None:
            what = "?" if seen is None else seen.package or seen.kind.value
            said = f"{package} was started but did not come to the front; there is {what}."
            raise CommandFailed(said, key="not_in_front", package=package, what=what)

    def start_apps_afresh(self) -> None:
        self._afresh = set()

    async def open_url(self, url: str, package: str) -> None:
        """Have the system open the address. Raises CommandFailed if another app than ``package`` took it, or none."""
        check_url(url)
        start = ("aa", "start", "-A", "ohos.want.action.viewData", "-U", url)
        _, output = await self._transport.shell(start)
        if STARTED not in output:
            why = _said(output).values["why"]
            said = f"{package} does not open {url[:100]}: {why}"
            raise CommandFailed(said, key="url_refused", package=package, url=url[:100], why=why)
        await self._wait_in_front(package)

    async def recover(self) -> None:
        """Put back the screen time-out, and remove files of ours that a dead run left."""
        if self._power.held or self._keyboard.held:
            return
        files = (Raw(f"{FOLDER}/phonedesk-*.{ending}") for ending in ("jpeg", "png", "json"))
        await self._transport.shell(RESTORE, ("rm", "-f", HOLDER_FILE, *files), safe=True)

    async def wake(self) -> None:
        """Turn the screen on. Raises ScreenOff if it stays off, CommandFailed if the lock screen asks for a secret."""
        await self._power.wake()

    def kept_awake(self) -> AbstractAsyncContextManager[None]:
        return self._power.hold()

    def touch_watch(self, watch: TouchWatch | None = None) -> AbstractAsyncContextManager[TouchWatch]:
        """Return a watch that never sees a touch: HarmonyOS does not report touches over hdc."""
        return nullcontext(watch or TouchWatch())

    async def leave(self) -> None:
        """Do nothing: a HarmonyOS phone that asks for a secret is not unlocked here."""

    async def close(self) -> None:
        self._last = None
        if self._left_file:
            self._left_file = False
            files = (f"{FOLDER}/phonedesk-{self._token}.{ending}" for ending in ("jpeg", "png", "json"))
            try:
                with self._transport.tidying():
                    await self._transport.shell(("rm", "-f", *files))
            except DeviceError as error:
                log.warning("hdc.files_left", serial=self.serial, kind=error.kind, error=str(error))

    # -- calls

    async def _read(self, *commands: Sequence[str | Raw]) -> tuple[int, str]:
        """Run commands that may be run twice without harm."""
        return await self._transport.shell(*commands, safe=True)

    async def _parts(self, *commands: Sequence[str | Raw]) -> list[str]:
        """Return the output of each command, in one call.

        Raises CommandFailed if the marks between them are not complete.
        """
        mark = f"phonedesk-{self._token}-part"
        marked = [part for command in commands for part in (command, ("echo", mark))]
        _, output = await self._read(*marked)
        parts = output.split(mark)
        if len(parts) != len(commands) + 1:
            why = output.strip()[:300]
            raise CommandFailed(f"The phone said: {why}", key="phone_said", why=why)
        return [part.strip("\n") for part in parts[:-1]]

    async def _act(self, command: tuple[str, ...], *, seconds: float = 15.0) -> None:
        code, output = await self._transport.shell(command, seconds=seconds)
        if refusal(output) is not None or code != 0:
            raise _said(output or f"exit code {code}")


def _decoded(data: bytes, taken_at: float) -> Frame:
    picture = decoded(data, ["JPEG", "PNG"])
    if is_black(picture):
        raise ScreenshotFailed("The picture of the screen is black.", key="black_screenshot")
    return Frame(picture, digest(picture), taken_at)


def _said(output: str) -> CommandFailed:
    lines = [line.strip() for line in output.splitlines() if line.strip() and line.strip() != "No Error"]
    # `aa` begins with a headline; the line with the number says more.
    why = next((line for line in lines if "Code:" in line), lines[0] if lines else "nothing was printed")[:300]
    return CommandFailed(f"The phone said: {why}", key="phone_said", why=why)


def _pair(point: Point) -> tuple[str, str]:
    """Return the coordinates for uitest, which takes none below 1."""
    check_point(point)
    return str(max(1, int(point.x))), str(max(1, int(point.y)))
