"""The virtual phone as its users see it: the shell's port (``ShellPhone``), and the controls and reports."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Literal

from PIL import Image

from agent_core.devices.base import Node, ScreenState, Window, WindowKind
from simulator.phone import display, ime
from simulator.phone.apps.browser import Browser
from simulator.phone.apps.chat_app import ChatApp
from simulator.phone.apps.payment import Payment
from simulator.phone.apps.qq import QQ
from simulator.phone.assembly import ADB_KEYBOARD, ENABLED_SETTING, IME_SETTING
from simulator.phone.core import PhoneCore, local_now
from simulator.phone.panel import TouchPanel
from simulator.phone.port import InputRefused, InstalledApp, PhysicalDisplay, TreeFailure
from simulator.phone.report import Report, message_report
from simulator.phone.scenario import CHAT_LIST, MessagePart, Scenario, TreeMode
from simulator.phone.widgets import BUTTON, hit
from simulator.phone.world import Kind, Message, Side

SLOW_TREE_SECONDS = 1.5
TOUCH_SLOP = 21  # units, 8 dp: within it a finger is still
LONG_PRESS_SECONDS = 0.4
SETTINGS_DENIED = "Permission denial: writing to settings requires:android.permission.WRITE_SECURE_SETTINGS"
DENIED = (
    "Injecting input events requires the caller (or the source of the instrumentation, "
    "if any) to have the INJECT_EVENTS permission."
)
DENIED_BEFORE_11 = "Injecting to another application requires INJECT_EVENTS permission"
FIRST_DISPLAY, SECOND_DISPLAY = "4619827259835644672", "4619827551948147201"


class VirtualPhone(PhoneCore):
    """A virtual phone; implements ``ShellPhone``. Time comes from ``clock``; due events happen at the next call.

    It is used from one event loop. Places of taps and swipes are pixels.
    """

    def __init__(
        self,
        scenario: Scenario | None = None,
        *,
        clock: Callable[[], datetime] = local_now,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """scenario: None is the shipped ``default.toml``."""
        super().__init__(scenario, clock, sleep)
        self.occluded = False  # a call or an alarm lies over the lock screen
        self._lying: tuple[Image.Image, Image.Image] | None = None  # the newest picture, upright and lying

    # ---- views of a client (ShellPhone) -------------------------------------------------------------------------

    async def picture(self) -> Image.Image:
        """Return the screen now, RGB. It is the same object while nothing changes: do not draw on it."""
        picture = await self.shown()
        self._record.pictures += 1
        self._looked()
        return picture

    def _looked(self) -> None:
        """Record that a client took a picture, and start the events that waited for that."""
        app = self._front
        if self.faults.black or self._covered() or not isinstance(app, ChatApp):
            return
        if app.page == "chat" and app.chat is not None:
            self._script.happened("looked", app.key(app.chat), self._clock())
        elif app.page == "list":
            self._script.happened("looked", CHAT_LIST, self._clock())

    async def tree(self) -> Sequence[Node]:
        """Return the accessibility tree in its present mode.

        Raises TreeFailure if the dump fails, also because the screen is off or moves.
        """
        self._advance()
        self._record.trees += 1
        mode = self.tree_mode
        if self.faults.asleep:
            raise TreeFailure("ERROR: null root node returned by UiTestAutomationBridge.")
        if mode is TreeMode.FAILING or self._display.transition:
            self._display.step()
            raise TreeFailure("ERROR: could not get idle state.")
        if mode is TreeMode.SLOW:
            await self._sleep(SLOW_TREE_SECONDS)
            self._advance()
        key = self._key()
        if mode is TreeMode.HIDDEN or self._hides():
            return display.hidden(self._display.scene(key))
        geometry = self.geometry
        if mode is TreeMode.EMPTY:
            return [display.root(self._display.scene(key), geometry.size)]
        scene = self._display.older(key) if mode is TreeMode.STALE else self._display.scene(key)
        found = display.nodes(scene, geometry.upright, texts=mode is not TreeMode.NO_TEXTS)
        return [replace(node, box=geometry.box(node.box)) for node in found] if geometry.lies else found

    def _hides(self) -> bool:
        """Tell whether the app in front hides its content, because no screen reader is on."""
        app = self._front
        reader = self.settings.get(("secure", "enabled_accessibility_services"), "")
        return isinstance(app, ChatApp) and app.look.hidden_tree and not (self._shade or self.faults.locked or reader)

    def displays(self) -> Sequence[PhysicalDisplay]:
        match self.faults.two_displays:
            case "":
                return [PhysicalDisplay(FIRST_DISPLAY, on=not self.faults.asleep)]
            case which:
                on = [not self.faults.asleep and which == name for name in ("first", "second")]
                return [PhysicalDisplay(FIRST_DISPLAY, on=on[0]), PhysicalDisplay(SECOND_DISPLAY, on=on[1])]

    def capture_fault(self) -> Literal["", "fails", "half", "warns"]:
        return self.faults.capture

    def clipboard_fault(self) -> Literal["", "denied", "ignored", "no_paste", "killed", "killed_late", "cut"]:
        return self.faults.clipboard

    async def pass_time(self, seconds: float) -> None:
        await self._sleep(seconds)

    def focus_told(self) -> Literal["", "null", "unsaid"]:
        return self.faults.no_focus

    def window(self) -> Window:
        self._advance()
        if self.faults.locked and not self.occluded:
            return Window(None, None, WindowKind.LOCK)
        if self.faults.asleep:
            return Window(None, None, WindowKind.NONE)
        if self._shade:
            return Window(None, None, WindowKind.SHADE)
        app = self._front
        if isinstance(app, ChatApp) and self._updating():
            return Window(app.package, app.look.activities.update)
        return Window(app.package, app.current_activity())

    def screen(self) -> ScreenState:
        self._advance()
        return ScreenState(awake=not self.faults.asleep, locked=self.faults.locked)

    # ---- actions of a client (ShellPhone) -----------------------------------------------------------------------

    def check_may_change(self, what: Literal["settings", "ime", "ime list", "apps"]) -> None:
        """Raise InputRefused if the maker keeps adb from it.

        what: change settings, choose or list input methods, or install and remove apps.
        """
        if what == "settings" and self.faults.settings_denied:
            raise InputRefused(SETTINGS_DENIED)
        unlisted = what == "ime list" and self.faults.ime_refused == "list"
        if unlisted or (what == "ime" and (self.faults.ime_refused or self.faults.settings_denied)):
            raise InputRefused("uid 2000 does not have android.permission.WRITE_SECURE_SETTINGS.")
        if what == "apps" and self.faults.install_denied:
            raise InputRefused("INSTALL_FAILED_USER_RESTRICTED: Install canceled by user")

    def install(self, package: str) -> None:
        """Install an app. ADB Keyboard brings its input method, which is not enabled; another has no page."""
        self.log("installed", package)
        other = InstalledApp(package, package, ".Main", launchable=False)
        self.apps = {**self.apps, package: ADB_KEYBOARD if package == ime.ADB_PACKAGE else other}
        if package == ime.ADB_PACKAGE and ime.ADB not in self.input_methods:
            self.input_methods = [*self.input_methods, ime.ADB]

    def uninstall(self, package: str) -> bool:
        """Uninstall an app. Return False if it is not installed."""
        if package not in self.apps:
            return False
        self.apps = {name: app for name, app in self.apps.items() if name != package}
        self.log("uninstalled", package)
        gone = [name for name in self.input_methods if name.startswith(f"{package}/")]
        self.input_methods = [name for name in self.input_methods if name not in gone]
        enabled = self.settings.get(ENABLED_SETTING, "").split(":")
        self.set_setting(*ENABLED_SETTING, ":".join(name for name in enabled if name not in gone))
        if self.settings.get(IME_SETTING) in gone:
            self.set_setting(*IME_SETTING, ime.SOGOU)
        return True

    def choose_input_method(self, name: str) -> bool:
        """Choose an input method.

        Return False if it is not installed. Raises InputRefused if the maker's setting is off.
        """
        self.check_may_change("ime")
        if name not in self.input_methods:
            return False
        self.log("input_method", name)
        self.set_setting(*IME_SETTING, name)
        return True

    def _check_input(self) -> None:
        self._advance()
        if self.faults.input_denied:
            raise InputRefused(DENIED if self.scenario.phone.sdk >= 30 else DENIED_BEFORE_11)
        self._touched = self._clock()

    async def tap(self, x: float, y: float) -> None:
        self._check_input()
        ignored = self.faults.asleep or self.faults.ignored_taps
        place = self.geometry.units(x, y)
        package = self._front.package
        message = None if ignored else self._message_at(*place)
        element = None if ignored else self.press_at(*place)
        if element is None and not ignored:  # a message takes no tap here; the tap is recorded all the same
            element = next((e for e in reversed(self.elements()) if e.text and e.covers(*place)), None)
        named = (element.text or element.description or element.id) if element else ""
        self._record.taps.append({"x": x, "y": y, "on": named, "package": package})
        if message is not None:
            self.log("message_tapped", message.kind.value)

    def _message_at(self, x: float, y: float) -> Message | None:
        """Return the message whose bubble is the topmost thing at a place in units, None if another thing is."""
        for element in reversed(self.elements()):
            if element.covers(x, y):
                if isinstance(element.about, Message):
                    return element.about
                if element.tap or element.blocks:
                    return None
        return None

    async def swipe(self, x1: float, y1: float, x2: float, y2: float, seconds: float) -> None:
        """Swipe, with Android's rules.

        A swipe that does not move, or that stays on one element and does not scroll, is a tap, and a long press if it
        is held longer. A long press is recorded and does nothing, except on a button, which knows no long press.
        """
        self._check_input()
        scale = self.geometry.scale
        moved = math.hypot(x2 - x1, y2 - y1) / scale >= TOUCH_SLOP
        held = not moved and seconds >= LONG_PRESS_SECONDS
        self.log("long_press" if held else "swipe", f"{x1:.0f},{y1:.0f} {x2:.0f},{y2:.0f} {seconds:.2f}")
        if self.faults.asleep or self.faults.ignored_taps:
            return
        if not moved or self._stays(x1, y1, x2, y2):
            await self._press(x1, y1, seconds)
            return
        distance = round((y2 - y1) / scale)
        if self.faults.locked:
            self.faults.locked = distance > -300 or self.lock.ask()
        elif self._shade:
            self._shade = distance > -100
        elif y1 < self.size[1] * 0.03 and distance > 200:
            self._shade = True
        elif not self.faults.popup and not self._updating():
            self._front.swipe(round((x2 - x1) / scale), distance)
        self._changed()

    def _stays(self, x1: float, y1: float, x2: float, y2: float) -> bool:
        """Tell whether a swipe ends on the element that it began on, and no page scrolls by it."""
        units = self.geometry.units
        element = None if self.faults.locked else hit(self.elements(), *units(x1, y1))
        along = abs(x2 - x1) > abs(y2 - y1) or (element is not None and element.kind == BUTTON)
        return element is not None and along and element.covers(*units(x2, y2))

    async def _press(self, x: float, y: float, seconds: float) -> None:
        element = hit(self.elements(), *self.geometry.units(x, y))
        if seconds < LONG_PRESS_SECONDS or (element is not None and element.kind == BUTTON):
            await self.tap(x, y)

    async def key(self, name: str) -> None:
        self._check_input()
        self.log("key", name)
        if name in ("POWER", "WAKEUP", "SLEEP"):
            if name == "SLEEP" or (name == "POWER" and not self.faults.asleep):
                self._fall_asleep()
            else:
                self.faults.asleep = False
        elif self.faults.asleep:
            return
        elif self.faults.locked:
            self._key_on_lock_screen(name)
        else:
            self.press(name)
        self._changed()

    async def key_combination(self, names: Sequence[str]) -> None:
        """Select the content of the field for Ctrl+A; do nothing for other combinations."""
        self._check_input()
        self.log("keys", "+".join(names))
        usable = not self.faults.asleep and not self.faults.locked and not self._covered()
        if list(names) == ["CTRL_LEFT", "A"] and self._focus is not None and usable:
            self._focus.selected = True

    async def swipe_back(self) -> None:
        """Swipe from the left edge as on iOS: one page back in the app in front, whatever its keyboard; never out of
        it.
        """
        self._check_input()
        self.log("swipe_back")
        if not self._covered() and not self.faults.ignored_taps:
            self.focus_on(None)
            self._front.back()
            self._changed()

    def _key_on_lock_screen(self, name: str) -> None:
        match name:
            case "MENU":  # dismisses a lock screen that asks for no secret
                self.faults.locked = self.lock.ask()
            case "ENTER" | "NUMPAD_ENTER":
                wrong = self.lock.wrong
                self.faults.locked = not self.lock.confirm(self._clock())
                if self.lock.wrong > wrong:
                    self.log("wrong_pin")
            case _ if name.isdecimal():
                self.lock.add(name, self._clock())
            case _:
                pass

    async def text(self, text: str) -> None:
        """Type as ``input text`` does: by key events, so all but ASCII is lost, and no input method takes part."""
        self._check_input()
        if self.faults.locked and not self.faults.asleep:
            self.lock.add(text, self._clock())
            self._changed()
        elif not self._covered():
            self.insert("".join(char for char in text if char.isascii()))

    async def paste(self, text: str) -> None:
        """Put any text into the focused field, as Ctrl+V of an injected keyboard does."""
        self._check_input()
        if not self._covered() and not self.faults.stuck_keyboard:
            self.insert(text)

    async def launch(self, package: str) -> bool:
        return self.launch_app(package)

    async def open_url(self, url: str, package: str | None = None) -> bool:
        self._advance()
        self.log("open_url", url[:500])
        qq = self._chat_apps.get("qq")
        if url.startswith("alipays:") and Payment.package in self._apps and package in (None, Payment.package):
            return self.launch_app(Payment.package)
        browser = self._apps.get(Browser.package)
        if (
            isinstance(browser, Browser)
            and url.startswith(("http://", "https://"))
            and package
            in (
                None,
                Browser.package,
            )
        ):
            self.launch_app(Browser.package)
            browser.open(url)
            self._changed()
            return True
        if isinstance(qq, QQ) and url.startswith(("mqqwpa:", "mqqapi:")) and package in (None, QQ.package):
            self.launch_app(QQ.package)
            qq.open_url(url)
            self._changed()
            return True
        return False

    async def force_stop(self, package: str) -> None:
        app = self._apps.get(package)
        if app is None:
            return
        self.log("force_stop", package)
        if app is self._front:
            self.go_home()
        app.reset()
        self._changed()

    async def broadcast(self, action: str, extras: Mapping[str, str], package: str | None) -> None:
        self._advance()
        self.log("broadcast", action)
        named = package == ime.ADB_PACKAGE
        heard = named or (package is None and not self.scenario.keyboard.needs_package)
        current = self.settings.get(IME_SETTING) == ime.ADB
        if heard and current and not self.faults.stuck_keyboard and not self._covered():
            ime.hear(self, action, extras)
            self._changed()

    async def open_shade(self, opened: bool) -> None:
        self._shade = opened and not self.faults.locked
        self._changed()

    def touch_panel(self) -> TouchPanel | None:
        return None if self.faults.getevent_denied else self.panel

    # ---- for the control port and the tests ---------------------------------------------------------------------

    async def shown(self) -> Image.Image:
        """Return the screen now, as ``picture`` returns it to a client, but without counting as a client's look."""
        self._advance()
        if self.faults.asleep or self.faults.black:
            return Image.new("RGB", self.size)
        upright, geometry = self._display.picture(self._key()), self.geometry
        if not geometry.lies:
            return upright
        if self._lying is None or self._lying[0] is not upright:  # the same object while nothing changes
            self._lying = (upright, geometry.picture(upright))
        return self._lying[1]

    def model_asked(self) -> None:
        """Record that a model is asked now. Call it before each call, if a scenario counts them (``after_model``)."""
        self._script.happened("model", "", self._clock())
        self._advance()

    def receive(self, contact: str, text: str, kind: str = "text") -> None:
        """Deliver a message of a customer (``11``; ``wechat:11`` for the other app).

        Raises LookupError or ValueError if it is impossible.
        """
        part = MessagePart(text=text, kind=Kind(kind))
        self._advance()
        self._deliver(contact, Message(Side.THEM, part.text, part.kind, self._clock()))

    def set_tree(self, mode: str) -> None:
        """Set the tree's mode: full, no_texts, empty, stale, failing or slow. Raises ValueError for any other."""
        try:
            self.tree_mode = TreeMode(mode)
        except ValueError:
            raise ValueError(f"no tree mode {mode!r}; there are {', '.join(TreeMode)}") from None

    def recall(self, contact: str, text: str = "") -> None:
        """Recall the other side's newest message (with this text, if one is given)."""
        _, chat = self._find(contact)
        if chat.recall(Side.THEM, text) is None:
            raise LookupError(f"{contact} has no such message")
        self._changed()

    def colleague(self, contact: str, text: str) -> None:
        """Deliver an answer of our account from another device."""
        self._advance()
        self._deliver(contact, Message(Side.ME, text, Kind.TEXT, self._clock()))

    def report(self) -> Report:
        """Return what really happened: ``report()["sent"]["11"]`` are the texts we sent, in order. Plain JSON data."""
        self._advance()
        window = self.window()
        record = self._record
        chats = {app.key(chat): chat for app in self._chat_apps.values() for chat in app.world.chats.values()}
        drafts = {
            app.prefix + name: field.text
            for app in self._chat_apps.values()
            for name, field in app.drafts.items()
            if field.text
        }
        return {
            "sent": {contact: list(texts) for contact, texts in record.sent.items()},
            "opened": list(record.opened),
            "chats_opened": list(record.chats_opened),
            "taps": list(record.taps),
            "typed": list(record.typed),
            "actions": list(record.actions),
            "drafts": drafts,
            "chats": {name: [message_report(message) for message in chat.messages] for name, chat in chats.items()},
            "unread": {name: chat.unread for name, chat in chats.items() if chat.unread},
            "pay_taps": list(record.pay_taps),
            "ai_asked": list(record.ai_asked),
            "window": {"package": window.package, "activity": window.activity, "kind": window.kind.value},
            "input_method": self.settings.get(IME_SETTING, ""),
            "keyboard_shown": self.keyboard_shown(),
            "awake": not self.faults.asleep,
            "locked": self.faults.locked,
            "tree_mode": self.tree_mode.value,
            "faults": self.faults.model_dump(),
            "pictures": record.pictures,
            "trees": record.trees,
        }
