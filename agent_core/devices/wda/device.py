"""An iPhone over WebDriverAgent.

iOS has no Back: it is a swipe from the left edge, which apps may ignore. The app switcher is a swipe up from the lower
edge that rests. WDA tells whether the phone is locked, not whether its screen is lit; a locked one counts as off. It
tells neither touches nor notifications, and it cannot keep the screen on.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

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
from agent_core.devices.checks import check_properties, check_url
from agent_core.devices.installed import InstalledApps
from agent_core.devices.waiting import Time
from agent_core.devices.wda.client import WdaClient, WdaRefusal, number, text
from agent_core.devices.wda.display import Display
from agent_core.devices.wda.input import KEYS, Act, WdaKeyboard, WdaTouches
from agent_core.errors import (
    AppNotFound,
    CommandFailed,
    DeviceError,
    ScreenOff,
    ScreenshotFailed,
)
from agent_core.geometry import Point
from agent_core.retry import Sleep, with_retries

LAUNCH_SECONDS = 15.0
PREFIX = "wda:"
_ASKED_AT_ONCE = 8
_BUNDLE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,254}")
_NOT_INSTALLED = re.compile(r"NotFound|not installed|returned nil for|OSStatus error -10814", re.IGNORECASE)
_UNTRUSTED = re.compile(r"not been explicitly trusted|invalid code signature|untrusted", re.IGNORECASE)
_LOCKED = re.compile(r"\bLocked\b|could not be,? unlocked|until the screen gets unlocked", re.IGNORECASE)

KnownApps = Callable[[], Sequence[str]]


class WdaDevice:
    """An iPhone over WebDriverAgent; implements ``Device``.

    Reads are retried by the retry table. Actions are never repeated.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Sleep = asyncio.sleep,
        apps: InstalledApps | None = None,
        known_apps: KnownApps = tuple,
    ) -> None:
        """known_apps: returns the bundle ids to look for on the phone, see ``packages``."""
        self._serial = f"{PREFIX}{f'[{host}]' if ':' in host else host}:{port}"
        self._time = Time(clock, sleep)
        self._client = WdaClient(host, port, sleep=sleep)
        self._apps = apps or InstalledApps()
        self._known_apps = known_apps
        self._missing: set[str] = set()
        # None: apps go on where they were; else the bundle ids that were restarted already
        self._old: set[str] | None = None
        self._ios = ""
        self._display = Display(self._client, self._time.clock)
        self._touches = WdaTouches(self._client, self._display.scale)

    @property
    def serial(self) -> str:
        return self._serial

    @property
    def system(self) -> System:
        return System.IOS

    @property
    def round_trips(self) -> int:
        return self._client.round_trips

    # -- identity and state

    async def info(self) -> DeviceInfo:
        status, told = await self._client.read("/status"), await self._client.read("/wda/device/info")
        major = _version(status).partition(".")[0]
        return DeviceInfo(
            serial=self._serial,
            model=text(told, "name") or text(told, "model"),
            size=await self._display.size(),
            sdk=int(major) if major.isdecimal() else 0,
            connection="tcp",
            system=System.IOS,
        )

    async def properties(self, *names: str) -> Mapping[str, str]:
        """Return the version of iOS, the model and the maker; "" for every other name."""
        check_properties(names)
        if not names:
            return {}
        status, told = await self._client.read("/status"), await self._client.read("/wda/device/info")
        known = {
            "ro.build.version.release": _version(status),
            "ro.product.model": text(told, "model"),
            "ro.product.brand": "Apple",
            "ro.product.manufacturer": "Apple",
        }
        return {name: known.get(name, "") for name in names}

    async def battery(self) -> Battery:
        """Read ``level`` (0 to 1; -1 is unknown) and ``state``: 0 unknown, 1 unplugged, 2 charging, 3 full."""
        told = await self._client.read_in_session("/wda/batteryInfo")
        level, state = number(told, "level"), number(told, "state")
        return Battery(
            percent=round(level * 100) if level is not None and 0 <= level <= 1 else None,
            charging=state in (2, 3) if state in (1, 2, 3) else None,
        )

    async def packages(self, *, fresh: bool = False, also: Sequence[str] = ()) -> Sequence[str]:
        """Return those of the known apps, and of ``also``, of which iOS knows a state.

        WDA has no list of apps. ``/wda/apps/state`` gives XCUIApplicationState: 0 is unknown, which Appium's
        documentation takes for "not installed". An app that iOS refuses to launch as not found is taken out.
        """
        listed = await self._apps.packages(self._time.clock(), self._listed, fresh=fresh)
        return [*listed, *await self._installed(one for one in also if one not in listed)]

    async def _listed(self) -> Sequence[str]:
        return await self._installed(self._known_apps())

    async def _installed(self, packages: Iterable[str]) -> Sequence[str]:
        some = asyncio.Semaphore(_ASKED_AT_ONCE)

        async def known(package: str) -> bool:
            async with some:
                state = await self._client.read_in_session("/wda/apps/state", {"bundleId": package})
                return isinstance(state, int) and state > 0

        asked = [package for package in dict.fromkeys(packages) if package not in self._missing]
        found = await asyncio.gather(*(known(package) for package in asked))
        return [package for package, is_known in zip(asked, found, strict=True) if is_known]

    async def app_version(self, package: str) -> str | None:
        """Return "iOS 17.5.1", the same for every app: WDA reports no app's version, and knowledge of apps is stored by
        it.
        """
        if not self._ios:
            self._ios = _version(await self._client.read("/status"))
        return f"iOS {self._ios}" if self._ios else None

    # -- the screen

    async def look(self) -> Look:
        """Ask for the lock, then for the app in front: WDA has no call for both, and does one thing after the other."""
        screen = await self.screen()
        if screen.locked:
            return Look(Window(None, None, WindowKind.LOCK), screen)
        package = text(await self._client.read("/wda/activeAppInfo"), "bundleId")
        return Look(Window(package) if package else Window(None, None, WindowKind.NONE), screen)

    async def window(self) -> Window:
        return (await self.look()).window

    async def screen(self) -> ScreenState:
        locked = bool(await self._client.read("/wda/locked"))
        return ScreenState(awake=not locked, locked=locked)

    async def observe(self) -> LookedPicture:
        look = await self.look()
        if not look.screen.awake:
            raise ScreenOff("The phone is locked.", key="screen_off")
        return LookedPicture(await self.screenshot(), look)

    async def screenshot(self) -> Frame:
        return await with_retries(self._shot, sleep=self._time.sleep)

    async def _shot(self) -> Frame:
        frame, black = await self._display.picture()
        if black and not (await self.screen()).awake:
            raise ScreenOff("The screen of the phone is off.", key="screen_off")
        if black:
            raise ScreenshotFailed("The picture of the screen is black.", key="black_screenshot")
        await self._display.check_fits(frame.size)
        return frame

    async def tree(self) -> Sequence[Node]:
        return await self._display.tree()

    async def notifications(self) -> Sequence[Notification]:
        why = "WebDriverAgent has no call for it"
        raise CommandFailed(f"The phone does not tell its notifications: {why}", key="no_notifications", why=why)

    # -- actions

    async def tap(self, point: Point) -> None:
        await self._touches.tap(point)

    async def double_tap(self, point: Point) -> None:
        await self._touches.double_tap(point)

    async def long_press(self, point: Point, seconds: float = 1.0) -> None:
        await self._touches.long_press(point, seconds)

    async def swipe(self, start: Point, end: Point, seconds: float = 0.4) -> None:
        await self._touches.swipe(start, end, seconds)

    async def key(self, key: Key) -> None:
        await self._key(key, self._client.act)

    async def _key(self, key: Key, act: Act) -> None:
        match Key(key):
            case Key.HOME:
                await self._client.act_anywhere("/wda/homescreen")
            case Key.BACK:
                await self._touches.from_left_edge(await self._display.size(), act)
            case Key.APP_SWITCH:
                await self._touches.from_lower_edge(await self._display.size(), act)
            case typed:
                await act("/wda/keys", {"value": [KEYS[typed]]})

    @asynccontextmanager
    async def keyboard(self) -> AsyncGenerator[TextInput, None]:
        yield WdaKeyboard(self._client, await self._client.session(), self._touches.tap, self._key)

    async def launch(self, package: str) -> None:
        """Bring the app to the front.

        Raises CommandFailed if something else is in front 15 s after it was started, or if iOS does not trust it.
        """
        if not _BUNDLE_ID.fullmatch(package):
            raise AppNotFound(
                f"{package[:100]!r} is no bundle id of an app.", key="no_package_name", name=package[:100]
            )
        if self._old is not None and package not in self._old:
            self._old.add(package)
            await self._client.act("/wda/apps/terminate", {"bundleId": package})
        try:
            body = {"bundleId": package, "shouldWaitForQuiescence": False}
            await self._client.act("/wda/apps/launch", body, seconds=60)
        except WdaRefusal as error:
            raise self._not_launched(package, error) from error
        await self._wait_in_front(package)

    def _not_launched(self, package: str, error: WdaRefusal) -> DeviceError:
        if _UNTRUSTED.search(error.words):
            return CommandFailed(
                f"iOS does not trust the developer of {package}.",
                advice="On the iPhone: Settings, General, VPN & Device Management, then trust the developer.",
                key="wda_untrusted",
                package=package,
            )
        if _LOCKED.search(error.words):
            return _locked_phone()
        if _NOT_INSTALLED.search(error.words):
            self._missing.add(package)
            self._apps.forget()
            return AppNotFound(f"{package} is not installed on the phone.", key="package_missing", package=package)
        return error

    async def _wait_in_front(self, package: str) -> None:
        seen: Window | None = None

        async def in_front() -> bool | None:
            nonlocal seen
            seen = await self.window()
            return True if seen.package == package else None

        if await self._time.until(in_front, LAUNCH_SECONDS) is None:
            what = seen.package if seen is not None and seen.package else "?"
            said = f"{package} was started but did not come to the front; there is {what}."
            raise CommandFailed(said, key="not_in_front", package=package, what=what)

    def start_apps_afresh(self) -> None:
        self._old = set()

    async def open_url(self, url: str, package: str) -> None:
        check_url(url)
        try:
            await self._client.act("/url", {"url": url, "bundleId": package}, seconds=30)
        except WdaRefusal as error:
            raise CommandFailed(
                f"{package} does not open {url[:100]}: {error.words}",
                key="url_refused",
                package=package,
                url=url[:100],
                why=error.words,
            ) from error

    async def wake(self) -> None:
        """Unlock the phone: WDA presses the home button and waits up to 5 s.

        Raises CommandFailed if the lock screen asks for a secret.
        """
        if (await self.screen()).awake:
            return
        try:
            await self._client.act_anywhere("/wda/unlock")
        except WdaRefusal as error:
            raise (_locked_phone() if _LOCKED.search(error.words) else error) from error
        if not (await self.screen()).awake:
            raise _locked_phone()

    async def recover(self) -> None:
        """Take the phone: in a new session, so that WDA refuses what an earlier owner still types."""
        await self._client.take_session()

    def kept_awake(self) -> AbstractAsyncContextManager[None]:
        """Do nothing: how long the screen stays on is the owner's setting (Auto-Lock)."""
        return nullcontext()

    def touch_watch(self, watch: TouchWatch | None = None) -> AbstractAsyncContextManager[TouchWatch]:
        """Return a watch that never sees a touch."""
        return nullcontext(watch or TouchWatch())

    async def leave(self) -> None:
        """Do nothing: an iPhone that asks for a secret is not unlocked here."""

    async def close(self) -> None:
        self._display.forget()
        await self._client.close()


def _locked_phone() -> CommandFailed:
    return CommandFailed(
        "The lock screen of the phone asks for a PIN, a pattern or a finger.",
        advice="Unlock it by hand, or take the screen lock off this phone.",
        key="locked_phone",
    )


def _version(status: object) -> str:
    system = status.get("os") if isinstance(status, Mapping) else None
    return text(system, "version")
