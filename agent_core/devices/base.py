"""What the agent needs of a phone. One protocol; Android over adb is its first form.

All coordinates are pixels of the screen as it is turned now; all durations are seconds. Every method raises errors of
``agent_core.errors.DeviceError`` only, may be cancelled, and has a timeout of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from PIL import Image

from agent_core.geometry import Box, Point


class Key(StrEnum):
    BACK = "BACK"
    HOME = "HOME"
    ENTER = "ENTER"
    APP_SWITCH = "APP_SWITCH"
    DELETE = "DEL"


class System(StrEnum):
    """What a phone runs."""

    ANDROID = "android"
    HARMONYOS = "harmonyos"
    IOS = "ios"


_PREFIXES = {"hdc:": System.HARMONYOS, "wda:": System.IOS}


def system_of(serial: str) -> System:
    """Return the system of the phone with this serial. A serial without ``hdc:`` or ``wda:`` in front is adb's."""
    return next((system for prefix, system in _PREFIXES.items() if serial.startswith(prefix)), System.ANDROID)


class WindowKind(StrEnum):
    APP = "app"
    SHADE = "shade"  # the notification shade is down
    LOCK = "lock"  # the lock screen
    NONE = "none"  # no window has the focus


@dataclass(frozen=True, slots=True)
class Window:
    """What is in front. ``package`` is whole (``com.tencent.mobileqq``), None where no app is."""

    package: str | None
    activity: str | None = None
    kind: WindowKind = WindowKind.APP


@dataclass(frozen=True, slots=True)
class Frame:
    """One picture of the screen. ``digest`` is of its pixels: equal digests are equal screens."""

    image: Image.Image = field(repr=False, compare=False)  # RGB
    digest: str
    taken_at: float  # time.monotonic() of the moment the capture was asked for

    @property
    def size(self) -> tuple[int, int]:
        return (self.image.width, self.image.height)


@dataclass(frozen=True, slots=True)
class Node:
    """One node of the accessibility tree, in document order."""

    box: Box
    text: str = ""
    description: str = ""
    resource_id: str = ""
    class_name: str = ""
    package: str = ""
    clickable: bool = False
    focused: bool = False
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class Notification:
    """``updated_ms``: when the app showed it last, in milliseconds since 1970 by the phone's clock; 0 is not told."""

    package: str
    title: str
    text: str
    key: str = ""
    updated_ms: int = 0


@dataclass(frozen=True, slots=True)
class ScreenState:
    awake: bool
    locked: bool


@dataclass(frozen=True, slots=True)
class Look:
    """What is in front and whether the screen is on, from one round trip."""

    window: Window
    screen: ScreenState


@dataclass(frozen=True, slots=True)
class LookedPicture:
    """A picture, and what was in front directly before it was taken."""

    frame: Frame
    look: Look


LOW_PERCENT, CHARGED_PERCENT = 15, 20
HOT_CELSIUS, COOL_CELSIUS = 45.0, 42.0


@dataclass(frozen=True, slots=True)
class Battery:
    """A phone's battery. Each is None if the phone does not say it.

    percent: the charge, 0-100. charging: whether the phone draws power for it; True, too, if it is full and plugged in.
    celsius: its temperature.
    """

    percent: int | None = None
    charging: bool | None = None
    celsius: float | None = None

    def is_low(self, *, was: bool = False) -> bool:
        """Tell whether the phone may soon switch off: below 15 % and not charging.

        was: whether it was so before; then it lasts until it charges or has more than 20 %, or while nothing is known.
        """
        if self.charging or self.percent is None:
            return was and not self.charging
        return self.percent < LOW_PERCENT or (was and self.percent <= CHARGED_PERCENT)

    def is_hot(self, *, was: bool = False) -> bool:
        """Tell whether the battery is above 45 °C. ``was``: it was so before, and lasts until it is below 42 °C."""
        if self.celsius is None:
            return was
        return self.celsius > HOT_CELSIUS or (was and self.celsius >= COOL_CELSIUS)


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    serial: str
    model: str
    size: tuple[int, int]
    sdk: int
    status: str = "device"  # device, offline, unauthorized …
    connection: str = "usb"  # usb or tcp
    system: System = System.ANDROID
    transports: tuple[str, ...] = ()  # see ``DeviceEntry``
    battery: Battery = field(default_factory=Battery)  # if it was asked for, too


@dataclass(frozen=True, slots=True)
class DeviceEntry:
    """One attached phone as it is listed, without having been asked anything itself.

    serial: how the product names it everywhere. One that is no Android has its tool in front: ``hdc:…``, ``wda:…``.
    transports: the names by which its tool reaches it, best first; () if that is the serial alone.
    number: the adb server's of this connection; another one each time that the phone is connected again.
    state: ``device`` if it can be used, else ``offline``, ``unauthorized`` …
    model: as its tool writes it; adb writes underscores.
    """

    serial: str
    state: str
    model: str = ""
    connection: str = "usb"  # usb or tcp
    system: System = System.ANDROID
    transports: tuple[str, ...] = ()
    number: str = field(default="", compare=False)

    @property
    def reached_by(self) -> tuple[str, ...]:
        """The names by which its tool reaches it, best first; at least one."""
        return self.transports or (self.serial,)


class TextInput(Protocol):
    """The keyboard, while it is ours.

    Every call of it is decided upon by the phone: LeaseLost, and nothing is done, where somebody else has the keyboard
    by now, however long this process stood still meanwhile.
    """

    async def clear(self) -> None:
        """Empty the focused field."""

    async def type(self, text: str) -> None:
        """Add ``text`` (any Unicode, ``\\n`` is a new line) to the focused field.

        No error does not mean that it was typed: read the field back, and tell ``confirm``.
        """

    async def confirm(self, *, arrived: bool) -> None:
        """Learn from what the screen shows after ``type``: whether the whole text is in the field.

        If it is not, the next text is typed in another way, if the phone has one. Empty the field first.
        """

    async def tap(self, point: Point) -> None:
        """As the device's own, while the keyboard is ours: for Send."""

    async def key(self, key: Key) -> None:
        """As the device's own, while the keyboard is ours."""

    async def send_action(self) -> None:
        """Do in the focused field what a keyboard's own key for sending does there (Android's editor action)."""


class TouchWatch(Protocol):
    """Fingers on the glass. What adb injects is not among them."""

    @property
    def touched(self) -> bool:
        """Whether a person touched the screen since the watch began, or since ``forget``."""

    def forget(self) -> None:
        """What was touched so far is known about."""


class Device(Protocol):
    @property
    def serial(self) -> str: ...

    @property
    def system(self) -> System: ...

    @property
    def round_trips(self) -> int:
        """How many calls have been made to the phone so far."""

    async def info(self) -> DeviceInfo: ...

    async def screenshot(self) -> Frame:
        """A fresh picture. A black or broken one raises ScreenshotFailed, never an old one."""

    async def observe(self) -> LookedPicture:
        """Return a picture and the look of one moment, in as few calls as the phone allows.

        ScreenOff if the screen is off, whatever the picture shows.
        """

    async def look(self) -> Look:
        """Window and screen state in one round trip."""

    async def window(self) -> Window: ...

    async def screen(self) -> ScreenState: ...

    async def tap(self, point: Point) -> None: ...

    async def double_tap(self, point: Point) -> None: ...

    async def long_press(self, point: Point, seconds: float = 1.0) -> None: ...

    async def swipe(self, start: Point, end: Point, seconds: float = 0.4) -> None: ...

    async def key(self, key: Key) -> None: ...

    async def launch(self, package: str) -> None:
        """Bring the app to the front. AppNotFound where it is not installed."""

    async def packages(self, *, fresh: bool = False, also: Sequence[str] = ()) -> Sequence[str]:
        """Return the installed packages; kept for an hour.

        fresh: one that should be there is not in them.
        also: packages that are asked for, too, on a phone that tells no list of its apps.
        """

    def start_apps_afresh(self) -> None:
        """Have each app that is launched from now on begin anew, the first time: what it showed before is gone."""

    def keyboard(self) -> AbstractAsyncContextManager[TextInput]:
        """Take the keyboard; the one that was there is back in every outcome, cancelling included."""

    async def tree(self) -> Sequence[Node]:
        """The accessibility tree. TreeUnavailable where it cannot be had in time."""

    async def notifications(self) -> Sequence[Notification]: ...

    async def recover(self) -> None:
        """Put back what a dead run left switched (keyboard, staying awake). Called when a phone is taken."""

    async def wake(self) -> None:
        """Screen on, and the lock screen away where no secret is needed."""

    def kept_awake(self) -> AbstractAsyncContextManager[None]:
        """The screen stays on inside; the phone's own setting is back afterwards."""

    def touch_watch(self) -> AbstractAsyncContextManager[TouchWatch]:
        """Follow a person's touches inside. Where the phone does not tell of them, none is ever seen."""

    async def open_url(self, url: str, package: str) -> None:
        """Have the app ``package`` open an address of its own (``mqqwpa://…``). CommandFailed where it does not."""

    async def properties(self, *names: str) -> Mapping[str, str]:
        """Android system properties by name (``ro.build.version.release``); HarmonyOS and iOS answer what they can."""

    async def app_version(self, package: str) -> str | None: ...

    async def battery(self) -> Battery: ...

    async def leave(self) -> None:
        """End a use of the phone, before its lease is given back: lock it if it was unlocked for a run.

        Raises nothing if the phone cannot be reached: the next run then does it.
        """

    async def close(self) -> None:
        """Let go of connections and files of ours. Nothing is done that a person, or another run, would notice."""


class DeviceServer(Protocol):
    """Where the phones of one system are attached: an adb server, hdc, WebDriverAgent."""

    async def devices(self) -> list[DeviceEntry]:
        """Return all that are attached, whatever their state, within 5 s. None of them is asked more than whether it
        is there."""

    def device(self, serial: str) -> Device:
        """Return the phone of this serial, which is one of ``devices``. It is not asked anything yet."""

    async def close(self) -> None: ...
