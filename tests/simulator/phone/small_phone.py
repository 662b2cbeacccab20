"""The smallest real phone that the shell can act on: one text field, a few apps, everything remembered."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from PIL import Image

from agent_core.devices.base import Node, Notification, ScreenState, Window, WindowKind
from agent_core.geometry import Box
from simulator.phone.panel import TouchPanel
from simulator.phone.port import InputRefused, InstalledApp, PhysicalDisplay, TreeFailure

QQ, HOME = "com.tencent.mobileqq", "com.android.launcher3"
SOGOU, ADB_KEYBOARD = "com.sohu.inputmethod.sogou/.SogouIME", "com.android.adbkeyboard/.AdbIME"


def _apps() -> dict[str, InstalledApp]:
    apps = [
        InstalledApp(QQ, "QQ", ".activity.SplashActivity", "9.1.25"),
        InstalledApp(HOME, "Launcher", ".uioverrides.QuickstepLauncher", launchable=False),
        InstalledApp("com.android.settings", "设置", ".Settings", "13"),
    ]
    return {app.package: app for app in apps}


@dataclass(eq=False)
class SmallPhone:
    serial: str = "SMALL1"
    size: tuple[int, int] = (120, 240)
    physical_size: tuple[int, int] = (120, 240)
    rotation: int = 0
    properties: MutableMapping[str, str] = field(
        default_factory=lambda: {
            "ro.product.name": "small",
            "ro.product.model": "Small_Phone",
            "ro.product.device": "small",
            "ro.build.version.sdk": "33",
        }
    )
    settings: MutableMapping[tuple[str, str], str] = field(
        default_factory=lambda: {("secure", "default_input_method"): SOGOU, ("system", "screen_brightness"): "128"}
    )
    apps: Mapping[str, InstalledApp] = field(default_factory=_apps)
    clipboard: str = ""
    input_methods: Sequence[str] = (SOGOU, ADB_KEYBOARD)
    battery: MutableMapping[str, int] = field(default_factory=lambda: {"level": 87, "status": 2, "temperature": 285})
    front: Window = field(default_factory=lambda: Window(HOME, ".uioverrides.QuickstepLauncher"))
    state: ScreenState = field(default_factory=lambda: ScreenState(awake=True, locked=False))
    notes: list[Notification] = field(default_factory=list)
    nodes: list[Node] = field(
        default_factory=lambda: [
            Node(Box(0, 0, 120, 20), '客服 & "11" <b>\n\x01', class_name="android.widget.TextView", package=QQ),
            Node(Box(0, 200, 100, 240), resource_id=f"{QQ}:id/input", class_name="android.widget.EditText", package=QQ),
        ]
    )
    tree_failure: str = ""
    refusing: bool = False
    picture_seconds: float = 0.0
    field_text: str = ""
    events: list[tuple[object, ...]] = field(default_factory=list)
    color: tuple[int, int, int] = (10, 20, 30)
    panel: TouchPanel = field(default_factory=lambda: TouchPanel((120, 240)))

    def _allow_input(self) -> None:
        if self.refusing:
            raise InputRefused

    def displays(self) -> Sequence[PhysicalDisplay]:
        return [PhysicalDisplay("4619827259835644672", on=self.state.awake)]

    def capture_fault(self) -> Literal["", "fails", "half", "warns"]:
        return ""

    def clipboard_fault(self) -> Literal["", "denied", "ignored", "no_paste", "killed", "killed_late", "cut"]:
        return ""

    async def pass_time(self, seconds: float) -> None:
        self.events.append(("pass_time", seconds))

    async def key_combination(self, names: Sequence[str]) -> None:
        self._allow_input()
        self.events.append(("keys", *names))

    def focus_told(self) -> Literal["", "null", "unsaid"]:
        return ""

    async def picture(self) -> Image.Image:
        await asyncio.sleep(self.picture_seconds)
        return Image.new("RGB", self.size, self.color)

    async def tree(self) -> Sequence[Node]:
        if self.tree_failure:
            raise TreeFailure(self.tree_failure)
        return self.nodes

    def window(self) -> Window:
        return self.front

    def screen(self) -> ScreenState:
        return self.state

    def keyboard_shown(self) -> bool:
        return self.front.package == QQ

    def notifications(self) -> Sequence[Notification]:
        return self.notes

    def set_setting(self, namespace: str, key: str, value: str | None) -> None:
        if value is None:
            self.settings.pop((namespace, key), None)
        else:
            self.settings[namespace, key] = value

    def check_may_change(self, what: Literal["settings", "ime", "ime list", "apps"]) -> None:
        if what == "apps":
            raise InputRefused("INSTALL_FAILED_USER_RESTRICTED: Install canceled by user")

    def install(self, package: str) -> None:
        raise AssertionError(f"{package}: refused before")

    def uninstall(self, package: str) -> bool:
        return False

    def choose_input_method(self, name: str) -> bool:
        self._allow_input()
        if name not in self.input_methods:
            return False
        self.settings["secure", "default_input_method"] = name
        return True

    async def tap(self, x: float, y: float) -> None:
        self._allow_input()
        self.events.append(("tap", x, y))

    async def swipe(self, x1: float, y1: float, x2: float, y2: float, seconds: float) -> None:
        self._allow_input()
        self.events.append(("swipe", x1, y1, x2, y2, seconds))

    async def key(self, name: str) -> None:
        self._allow_input()
        self.events.append(("key", name))

    async def text(self, text: str) -> None:
        self._allow_input()
        self.field_text += text

    async def launch(self, package: str) -> bool:
        app = self.apps.get(package)
        if app is not None:
            self.front = Window(package, app.activity)
        return app is not None

    async def open_url(self, url: str, package: str | None = None) -> bool:
        self.events.append(("url", url))
        return url.startswith("https://")

    async def force_stop(self, package: str) -> None:
        self.events.append(("force_stop", package))
        if self.front.package == package:
            self.front = Window(HOME, ".uioverrides.QuickstepLauncher")

    async def broadcast(self, action: str, extras: Mapping[str, str], package: str | None) -> None:
        self.events.append(("broadcast", action, dict(extras), package))
        if self.settings.get(("secure", "default_input_method")) != ADB_KEYBOARD:
            return
        if action == "ADB_INPUT_B64":
            self.field_text += base64.b64decode(extras["msg"]).decode()
        elif action == "ADB_INPUT_TEXT":
            self.field_text += extras["msg"]
        elif action == "ADB_CLEAR_TEXT":
            self.field_text = ""

    def touch_panel(self) -> TouchPanel | None:
        return None if self.refusing else self.panel

    async def open_shade(self, opened: bool) -> None:
        self.front = Window(self.front.package, self.front.activity, WindowKind.SHADE if opened else WindowKind.APP)
