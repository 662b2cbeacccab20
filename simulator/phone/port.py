"""The interface that the shell of the virtual phone needs of the phone behind it.

``phone.py`` is the phone (its world, apps, keyboard, screen); ``adbd.py`` and ``shell.py`` are the way in. Points are
in pixels, durations in seconds. Everything runs in one event loop; calls that take a while are coroutines.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from PIL import Image

from agent_core.devices.base import Node, Notification, ScreenState, Window
from simulator.phone.panel import TouchPanel


@dataclass(frozen=True, slots=True)
class InstalledApp:
    package: str
    label: str
    activity: str  # ".activity.SplashActivity"
    version: str = "1.0"
    launchable: bool = True


@dataclass(frozen=True, slots=True)
class PhysicalDisplay:
    """A display of the phone by the number that ``screencap -d`` takes."""

    number: str
    on: bool


class TreeFailure(Exception):
    """``uiautomator dump`` fails; the message is its output."""


class InputRefused(Exception):
    """Injected input is refused (INJECT_EVENTS), as some makers do until a setting is on."""


class ShellPhone(Protocol):
    serial: str
    physical_size: tuple[int, int]  # of the panel, upright, in pixels
    properties: MutableMapping[str, str]  # getprop
    settings: MutableMapping[tuple[str, str], str]  # (namespace, key) → value; put through set_setting
    apps: Mapping[str, InstalledApp]  # by package
    battery: MutableMapping[str, int]  # level in %, status as BatteryManager counts, temperature in tenths of °C
    clipboard: str  # "" if it is empty
    input_methods: Sequence[str]  # ids as `ime list -s -a` prints them

    @property
    def size(self) -> tuple[int, int]:
        """The size of the screen in its orientation and as ``wm size`` sets it, in pixels."""

    @property
    def rotation(self) -> int:
        """Quarter turns, 0–3."""

    def displays(self) -> Sequence[PhysicalDisplay]:
        """Return the displays, at least one; a picture without a number is of the first."""

    def capture_fault(self) -> Literal["", "fails", "half", "warns"]:
        """Return the fault of ``screencap``."""

    def clipboard_fault(self) -> Literal["", "denied", "ignored", "no_paste", "killed", "killed_late", "cut"]:
        """Return the fault of pasting."""

    async def pass_time(self, seconds: float) -> None:
        """Let a program on the phone wait."""

    async def key_combination(self, names: Sequence[str]) -> None:
        """Press keys at the same time (``input keycombination``)."""

    def focus_told(self) -> Literal["", "null", "unsaid"]:
        """Return what ``dumpsys window`` prints in place of the focused window; "" if it names it."""

    async def picture(self) -> Image.Image:
        """Return the screen now, RGB, after the active faults (slow, black …)."""

    async def tree(self) -> Sequence[Node]:
        """Return the accessibility tree in its present mode.

        Raises TreeFailure if a dump fails; slow if the mode says so.
        """

    def window(self) -> Window: ...

    def screen(self) -> ScreenState: ...

    def keyboard_shown(self) -> bool: ...

    def notifications(self) -> Sequence[Notification]: ...

    def set_setting(self, namespace: str, key: str, value: str | None) -> None:
        """Store a setting (None deletes it) and let the screen follow (input method, brightness, stay on …)."""

    def check_may_change(self, what: Literal["settings", "ime", "ime list", "apps"]) -> None:
        """Raise InputRefused if the maker keeps adb from it.

        what: change settings, choose or list input methods, or install and remove apps.
        """

    def install(self, package: str) -> None:
        """Install an app. ADB Keyboard brings its input method, which is not enabled; another has no page."""

    def uninstall(self, package: str) -> bool:
        """Uninstall an app. Return False if it is not installed."""

    def choose_input_method(self, name: str) -> bool:
        """Choose an input method.

        Return False if it is not installed. Raises InputRefused if the maker's setting is off.
        """

    async def tap(self, x: float, y: float) -> None: ...

    async def swipe(self, x1: float, y1: float, x2: float, y2: float, seconds: float) -> None:
        """Swipe. A swipe that does not move is a tap, or a long press if it lasts."""

    async def key(self, name: str) -> None:
        """Press a key: ``BACK``, ``HOME``, ``ENTER`` …, the name without KEYCODE_."""

    async def text(self, text: str) -> None:
        """Type as ``input text`` does: ASCII only, already unescaped."""

    async def launch(self, package: str) -> bool:
        """Bring the app to the front. Return False if it is not installed."""

    async def open_url(self, url: str, package: str | None = None) -> bool:
        """Do ``am start -a VIEW -d URL [-p PACKAGE]``. Return False if no app (or not this one) takes it."""

    async def force_stop(self, package: str) -> None: ...

    async def broadcast(self, action: str, extras: Mapping[str, str], package: str | None) -> None:
        """Deliver a broadcast (the ADB Keyboard listens). Nothing is answered, whether anybody listened or not."""

    def touch_panel(self) -> TouchPanel | None:
        """Return the touch panel that ``getevent`` reads; None if it may not."""

    async def open_shade(self, opened: bool) -> None:
        """Do ``cmd statusbar expand-notifications`` / ``collapse``."""
