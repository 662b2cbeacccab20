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
class Battery:
    """A phone's battery. Each is None if the phone does not say it.

    percent: the charge, 0-100. charging: whether the phone draws power for it; True, too, if it is full and plugged in.
    """

    percent: int | None = None
    charging: bool | None = None


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    serial: str
    model: str
    size: tuple[int, int]
    sdk: int
    status: str = "device"  # device, offline, unauthorized …
    connection: str = "usb"  # usb or tcp


class TextInput(Protocol):
    """The keyboard, while it is ours.

    Every call of it is decided upon by the phone: LeaseLost, and nothing is done, where somebody else has the keyboard
    by now, however long this process stood still meanwhile.
    """

    async def clear(self) -> None:
        """Empty the focused field."""

    async def type(self, text: str) -> None:
        """Add ``text`` (any Unicode, ``\\n`` is a new line) to the focused field.

        No error does not mean that it was typed: read the field back.
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

    async def info(self) -> DeviceInfo: ...

    async def screenshot(self) -> Frame:
        """A fresh picture. A black or broken one raises ScreenshotFailed, never an old one."""

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

    async def packages(self, *, fresh: bool = False) -> Sequence[str]:
        """The installed packages; kept for an hour. ``fresh``: one that should be there is not in them."""

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

    async def close(self) -> None: ...
