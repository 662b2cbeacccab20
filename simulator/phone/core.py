"""The inner workings of the virtual phone: its apps, the focus, the world's events, the layers of its screen.

``phone.py`` is its face to the outside. The apps see this as ``apps.base.Host``, the keyboards as ``ime.Typist``.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Protocol

from pydantic import ValidationError

from agent_core.devices.base import Notification
from agent_core.texts.layout import handwriting
from simulator.phone import chrome, display, ime, person
from simulator.phone.apps.base import BUTTON_BAR, GESTURE_BAR, App
from simulator.phone.apps.chat_app import ChatApp
from simulator.phone.apps.launcher import Launcher
from simulator.phone.apps.looks import LOOKS
from simulator.phone.apps.plain import PlainApp
from simulator.phone.assembly import (
    FORCED_SIZE,
    IME_SETTING,
    VERSIONS,
    build_apps,
    first_settings,
    installed_apps,
    properties,
)
from simulator.phone.geometry import Geometry
from simulator.phone.lock import PinLock
from simulator.phone.notices import notification
from simulator.phone.panel import TouchPanel
from simulator.phone.port import InstalledApp
from simulator.phone.report import By, Recorder
from simulator.phone.scenario import EventPart, Faults, Scenario
from simulator.phone.scenario_file import default_scenario
from simulator.phone.script import Script
from simulator.phone.widgets import WIDTH, Element, TextField, background, hit
from simulator.phone.world import Chat, Message, Side

UPDATED = "99.9.9"  # the version of an app that was updated
UPDATED_LOOKS = {"qq": "qq-skin", "wechat": "wechat-enter"}  # and how it looks then


def local_now() -> datetime:
    return datetime.now(UTC).astimezone()


class Link(Protocol):
    """The way in (adbd), as the faults of the connection need it."""

    def drop(self) -> None: ...

    def follow(self, faults: Faults, /) -> None:
        """Let computers in as the faults ``dropped``, ``offline`` and ``unauthorized`` have it."""


class PhoneCore:
    """The phone's state and all that changes it from within."""

    def __init__(
        self, scenario: Scenario | None, clock: Callable[[], datetime], sleep: Callable[[float], Awaitable[None]]
    ) -> None:
        scenario = scenario or default_scenario()
        self.scenario = scenario
        self.serial = scenario.phone.serial
        self.physical_size: tuple[int, int] = scenario.phone.size
        self.properties: MutableMapping[str, str] = properties(scenario.phone)
        self.settings: MutableMapping[tuple[str, str], str] = first_settings(scenario)
        self.battery: MutableMapping[str, int] = {"level": scenario.phone.battery, "status": 2, "temperature": 285}
        adb_keyboard = [ime.ADB] if scenario.keyboard.adb_installed else []
        self.clipboard = ""
        self.input_methods: Sequence[str] = [ime.SOGOU, *adb_keyboard]
        self.link: Link | None = None  # set by the one who serves the phone
        self.panel = TouchPanel(self.physical_size)
        self.enter_sends = scenario.enter_sends
        self.font_scale = scenario.phone.font_scale
        self.faults = scenario.faults.model_copy()
        self.tree_mode = scenario.tree
        self.lock = PinLock(scenario.phone.pin)
        self._clock = clock
        self._sleep = sleep
        self._record = Recorder()
        self._by: By = "client"
        self._version = 0
        self._focus: TextField | None = None
        self._keyboard_hidden = False
        self._shade = False
        self._notes: dict[str, Notification] = {}
        self._init_apps()
        self._script = Script(scenario.events, clock())
        self._touched = clock()  # when somebody last used the phone
        self._display = display.Display(self.geometry.upright, self._compose)

    def _init_apps(self) -> None:
        built = build_apps(self, self.scenario, self._clock())
        self._chat_apps = {name: app for name, app in built.items() if isinstance(app, ChatApp)}
        others = {part.package: PlainApp(self, part.package, part.label) for part in self.scenario.phone.others}
        in_list = [others[part.package] for part in self.scenario.phone.others if part.listed_only]
        on_pages = [app for app in others.values() if app not in in_list]
        home: App = Launcher(self, list(built.values()), on_pages, in_list)
        self._home = self._front = home
        self._apps: dict[str, App] = {app.package: app for app in (self._home, *built.values(), *others.values())}
        versions = VERSIONS | {name: app.look.version for name, app in self._chat_apps.items()}
        versions.update(self.scenario.phone.app_versions.items())
        self.apps: Mapping[str, InstalledApp] = installed_apps(
            self._apps.values(),
            {app.package: versions[name] for name, app in built.items() if name in versions},
            adb_keyboard=self.scenario.keyboard.adb_installed,
        )
        self._shipped = {name: (app.look, versions[name]) for name, app in self._chat_apps.items()}
        if self.faults.app_update:
            self._update_apps()
        for app in self._chat_apps.values():
            for chat in reversed(app.world.by_time()):
                if chat.unread and chat.newest:
                    self._notify(app, chat, chat.newest)

    def _update_apps(self) -> None:
        """Give the chat apps the version and look of the fault ``app_update``. Android ends an app that it changes."""
        versions = {}
        for name, app in self._chat_apps.items():
            app.look, versions[app.package] = self._shipped[name]
            if self.faults.app_update == "installed":
                app.look, versions[app.package] = LOOKS[UPDATED_LOOKS[name]], UPDATED
            app.reset()
        self.apps = {
            package: replace(app, version=versions.get(package, app.version)) for package, app in self.apps.items()
        }
        if isinstance(self._front, ChatApp):
            self.go_home()

    # ---- the apps' and keyboards' requests to the phone ----------------------------------------------------------

    def keyboard_shown(self) -> bool:
        return self._focus is not None and not self._keyboard_hidden and not self._covered()

    @property
    def geometry(self) -> Geometry:
        """The geometry of the screen now, as ``wm size`` and the fault ``rotation`` set it."""
        forced = re.fullmatch(r"(\d{3,4}),(\d{3,4})", self.settings.get(FORCED_SIZE, ""))
        return Geometry((int(forced[1]), int(forced[2])) if forced else self.physical_size, self.faults.rotation)

    @property
    def size(self) -> tuple[int, int]:
        return self.geometry.size

    @property
    def rotation(self) -> int:
        return self.faults.rotation

    @property
    def height(self) -> int:
        width, height = self.geometry.upright
        return round(height * WIDTH / width)

    @property
    def bottom(self) -> int:
        if self.keyboard_shown():
            return self.height - ime.height_of(self.settings.get(IME_SETTING, ime.SOGOU))
        return self.floor

    @property
    def floor(self) -> int:
        return self.height - (BUTTON_BAR if self.scenario.phone.navigation == "buttons" else GESTURE_BAR)

    @property
    def focus(self) -> TextField | None:
        return self._focus

    def now(self) -> datetime:
        return self._clock()

    def focus_on(self, field: TextField | None) -> None:
        self._focus = field
        self._keyboard_hidden = False

    def log(self, what: str, detail: str = "") -> None:
        moment = self._clock().isoformat()
        self._record.actions.append({"what": what, "detail": detail, "by": self._by, "time": moment})

    def set_setting(self, namespace: str, key: str, value: str | None) -> None:
        if value is None:
            self.settings.pop((namespace, key), None)
        else:
            self.settings[namespace, key] = value
        self._changed()

    @contextmanager
    def _done_by(self, who: By) -> Iterator[None]:
        """Record everything that happens inside the block as done by ``who``."""
        before, self._by = self._by, who
        try:
            yield
        finally:
            self._by = before

    def launch_app(self, package: str) -> bool:
        """Bring an app to the front, on the page on which it was left."""
        self._advance()
        app = self._apps.get(package)
        if app is None:
            return False
        self._record.opened.append(package)
        self.log("launch", package)
        if self.faults.app_update == "installing" and isinstance(app, ChatApp):
            return True  # the system takes the order; a package that is being replaced gets no process
        self._shade = False
        if app is not self._front:
            self.focus_on(None)
            self._front = app
        if isinstance(app, ChatApp):
            self._notes.pop(f"{app.package}|{app.label}", None)  # who opens the app sees for themselves
        if isinstance(app, ChatApp) and app.page == "chat" and app.chat is not None:
            app.chat.unread = 0
            self._notes.pop(f"{app.package}|{app.chat.name}", None)
        self._changed()
        return True

    def go_home(self) -> None:
        self.focus_on(None)
        self._shade = False
        self._home.reset()
        self._front = self._home

    def chat_opened(self, key: str) -> None:
        self._record.chats_opened.append(key)
        self.log("chat_opened", key)
        app, chat = self._find(key)
        self._notes.pop(f"{app.package}|{chat.name}", None)
        self._script.happened("opened", key, self._clock())

    def text_leaves(self, key: str) -> None:
        self._script.happened("leaves", key, self._clock())
        self._advance()

    def text_left(self, key: str, message: Message) -> None:
        self._record.sent.setdefault(key, []).append(message.text)
        self.log("sent", key)
        self._script.happened("sent", key, self._clock())

    def ai_asked(self, text: str) -> None:
        self._record.ai_asked.append(text)

    def pay_tapped(self, what: str) -> None:
        self._record.pay_taps.append(what)

    def insert(self, text: str) -> None:
        if self._focus is None or not text:
            return
        self._focus.add(text)
        name = self._field_name(self._focus)
        self._record.typed.append({"field": name, "text": text})
        self._script.happened("typed", name, self._clock())
        self._changed()

    def erase(self, count: int | None) -> None:
        if self._focus is not None:
            self._focus.text = "" if count is None or self._focus.selected else self._focus.text[:-count]
            self._focus.selected = False

    def press(self, name: str) -> None:
        """Press a key on an unlocked screen that is on."""
        match name:
            case "BACK":
                self._back()
            case "HOME" | "APP_SWITCH":
                self.faults.popup = self.faults.update = ""
                self.go_home()
            case "ENTER" | "NUMPAD_ENTER":
                self._enter()
            case "DEL":
                self.erase(1)
            case "PASTE":
                self._paste()
            case "SPACE":
                self.insert(" ")
            case _:
                pass

    def notifications(self) -> Sequence[Notification]:
        """Return the notifications, the newest first."""
        self._advance()
        return list(reversed(self._notes.values()))

    def set_fault(self, name: str, value: object = True) -> None:
        """Set one of the fields of ``Faults``; False, 0 or "" ends it. ValueError for an unknown name or value."""
        if name not in Faults.model_fields:
            raise ValueError(f"no fault {name!r}; there are {', '.join(Faults.model_fields)}")
        try:
            setattr(self.faults, name, value)
        except ValidationError as error:
            raise ValueError(f"{name}: {error.errors()[0]['msg']}") from error
        if name in ("dropped", "offline", "unauthorized") and self.link is not None:
            self.link.follow(self.faults)
            self.link.drop()
        if name == "app_update":
            self._update_apps()
        self._changed()

    # ---- for a person who holds the phone (person.Held) ---------------------------------------------------------

    def scene(self) -> display.Scene:
        """Return the content of the screen now, in its layers."""
        return self._display.scene(self._key())

    def elements(self) -> list[Element]:
        return self.scene().all()

    def press_at(self, x: float, y: float) -> Element | None:
        """Tap with a finger at a place in units, real or injected. Return the element that was hit."""
        element = hit(self.elements(), x, y)
        if element and element.tap:
            element.tap()
            self._changed()
        return element

    def uncover(self) -> None:
        self.faults.asleep = self.faults.locked = self._shade = False
        self.lock.leave()
        self.faults.popup = self.faults.update = ""

    def show_chat(self, key: str) -> None:
        app, chat = self._find(key)
        app.open_chat(chat)  # first, or the chat that was left open there would count as read
        self.launch_app(app.package)

    def scroll_chat(self, distance: int) -> None:
        """Scroll the page in front by so many units, as a finger that moves down."""
        self._front.scroll(distance)
        self._changed()

    def chat_field(self) -> TextField | None:
        app = self._front
        return app.draft(app.chat) if isinstance(app, ChatApp) and app.page == "chat" and app.chat else None

    # ---- inside -------------------------------------------------------------------------------------------------

    def _back(self) -> None:
        if self.faults.popup or self.faults.update:
            self.faults.popup = self.faults.update = ""
        elif self._shade:
            self._shade = False
        elif self.keyboard_shown():
            self._keyboard_hidden = True
        elif not self._front.back():
            self.go_home()

    def _enter(self) -> None:
        field = self._focus
        if field is None:
            return
        handler = ime.editor_action(field)
        if handler:
            handler()
        elif field.multiline:
            self.insert("\n")

    def _paste(self) -> None:
        """Paste into the field that has the focus, as the key for pasting does."""
        fault = self.faults.clipboard
        if self.clipboard and fault != "no_paste" and not (self._covered() or self.faults.stuck_keyboard):
            self.insert(self.clipboard[:20] if fault == "cut" else self.clipboard)

    def _covered(self) -> bool:
        """Tell whether anything over the app takes its keyboard away."""
        return bool(self.faults.asleep or self.faults.locked or self._shade or self.faults.popup or self._updating())

    def _updating(self) -> bool:
        """Tell whether a chat app shows its update dialog."""
        return bool(self.faults.update) and isinstance(self._front, ChatApp)

    def _key(self) -> tuple[object, ...]:
        """Return everything that the screen depends on."""
        self._display.size = self.geometry.upright
        return (self._version, f"{self._clock():%d%H%M}", self._display.size)

    def _changed(self) -> None:
        self._version += 1
        if self.faults.slow:
            self._display.begin_transition(self.faults.slow)

    def _advance(self) -> None:
        """Run the events that are due."""
        now = self._clock()
        if self.faults.sleeps and not self.faults.asleep and now - self._touched >= self._screen_time():
            self._fall_asleep()
        for app in self._chat_apps.values():
            if app.settle():
                self._changed()
        while due := self._script.due(now):
            for moment, event in due:
                self._happen(moment, event)

    def _screen_time(self) -> timedelta:
        """Return how long the screen stays on while nobody uses the phone. It is on the cable."""
        if self.settings.get(("global", "stay_on_while_plugged_in"), "0") != "0":
            return timedelta.max
        return timedelta(milliseconds=int(self.settings.get(("system", "screen_off_timeout"), "60000")))

    def _fall_asleep(self) -> None:
        self.faults.asleep = True
        self.faults.locked |= bool(self.lock.pin)
        self.lock.leave()
        self._changed()

    def _happen(self, moment: datetime, event: EventPart) -> None:
        match event.do:
            case "fault":
                self.set_fault(event.fault, event.value)
            case "tree":
                self.tree_mode = event.mode
            case "recall":
                self._find(event.contact)[1].recall(Side.THEM, event.text)
                self._changed()
            case "person_tap" | "person_open" | "person_type":
                with self._done_by("person"):
                    person.act(self, event)
                self._changed()
            case "status":
                self._find(event.contact)[1].status = event.text
                self._changed()
            case "notification":
                self._note(self._chat_apps[event.app], event.title, event.title, event.text)
                self._changed()
            case "notification_open":
                with self._done_by("app"):
                    self.log("notification_open", event.contact)
                    self.show_chat(event.contact)
            case "receive" | "colleague":
                side = Side.THEM if event.do == "receive" else Side.ME
                message = Message(side, event.text, event.kind, moment, quoted=event.quoted, sender=event.sender)
                self._deliver(event.contact, message)

    def _find(self, key: str) -> tuple[ChatApp, Chat]:
        name, _, rest = key.partition(":")
        app, contact = (name, rest) if name in self._chat_apps and rest else ("qq", key)
        chat = self._chat_apps[app].world.chats.get(contact) if app in self._chat_apps else None
        if chat is None:
            known = [found.key(chat) for found in self._chat_apps.values() for chat in found.world.chats.values()]
            raise LookupError(f"no contact {key!r}; there are {', '.join(known) or 'none'}")
        return self._chat_apps[app], chat

    def _deliver(self, contact: str, message: Message) -> None:
        app, chat = self._find(contact)
        seen = self._front is app and app.reading(chat) and not self._covered()
        app.receive(chat, message, seen=seen)
        if message.side is Side.THEM and not seen:
            self._notify(app, chat, message)
        self._changed()

    def _notify(self, app: ChatApp, chat: Chat, message: Message) -> None:
        if self.faults.hidden_previews:
            unread = sum(chat.unread for chat in app.world.chats.values())
            self._note(app, app.label, app.label, f"你收到了{unread}条新消息")
        elif not chat.muted:
            self._note(app, chat.name, *notification(app.look, chat, message))

    def _note(self, app: ChatApp, subject: str, title: str, text: str) -> None:
        """Post a notification, or replace the one about the same ``subject``: a contact's name."""
        key = f"{app.package}|{subject}"
        self._notes.pop(key, None)  # so that the newest is the last
        self._notes[key] = Notification(app.package, title, text, key, round(self._clock().timestamp() * 1000))

    def _open_note(self, note: Notification) -> None:
        app = self._apps[note.package]
        self._shade = False
        self._notes.pop(note.key, None)
        subject = note.key.removeprefix(f"{note.package}|")
        if isinstance(app, ChatApp) and subject in app.world.chats:
            # First, or the chat that was left open there would count as read.
            app.open_chat(app.world.chats[subject])
        self.launch_app(note.package)

    def _field_name(self, field: TextField) -> str:
        for app in self._chat_apps.values():
            for name, draft in app.drafts.items():
                if draft is field:
                    return app.prefix + name
            if field is app.search:
                return "search"
            if field is app.ai:
                return "ai"
        return "other"

    def _compose(self) -> display.Scene:
        with handwriting(self.scenario.phone.handwriting):
            return replace(self._layers(), hand=self.scenario.phone.handwriting)

    def _layers(self) -> display.Scene:
        now = self._clock()
        battery, operator = self.battery["level"], self.scenario.phone.operator
        if self.faults.locked:
            overlay = chrome.lock_screen(self.height, now)
            if self.lock.asking:
                overlay = chrome.pin_screen(self.height, len(self.lock.typed), shut=self.lock.shut(now))
            overlay.append(chrome.status_bar(now, battery, "#1d2b3f", 0, operator))
            return display.Scene([], [], overlay, chrome.SYSTEM_UI)
        app = self._front
        system = [chrome.status_bar(now, battery, app.top_color(), len(self._notes), operator)]
        if self.scenario.phone.floating:
            system.append(chrome.floating_window(self.height, lambda: self.log("floating_window")))
        system += self._lower_edge(app)
        overlay = []
        package = app.package
        if self.faults.popup:
            overlay = chrome.dialog(self.height, self.faults.popup, self._close_popup, self._accept_popup)
        elif self._updating():
            form = self.faults.update
            overlay = chrome.update_dialog(self.height, form, self._close_update, self._accept_update)
        elif self._shade:
            overlay = chrome.shade(
                self.height, list(reversed(self._notes.values())), self._open_note, self._close_shade
            )
            package = chrome.SYSTEM_UI
        elements = app.elements()
        if app.secret():
            # the content below it is there all the same
            elements.append(background((0, 0, WIDTH, self.height), "#000000"))
        return display.Scene(elements, system, overlay, package)

    def _lower_edge(self, app: App) -> list[Element]:
        """Return the keyboard, and below it the system's bar at the screen's end."""
        found: list[Element] = []
        color = app.bottom_color()
        if self.keyboard_shown():
            adb = self.settings.get(IME_SETTING) == ime.ADB
            color = ime.ADB_COLOR if adb else ime.SOGOU_COLOR
            found += (
                ime.adb_keyboard(self.height)
                if adb
                else ime.sogou_keyboard(self.height, self, self.faults.stuck_keyboard)
            )
        if self.scenario.phone.navigation == "buttons" and not self.keyboard_shown():
            return [*found, *chrome.buttons(self.height, color, self.press)]
        return [*found, chrome.gesture_bar(self.height, chrome.ink_on(color))]

    def _close_popup(self) -> None:
        self.faults.popup = ""

    def _accept_popup(self) -> None:
        self.log("dialog_accepted", self.faults.popup)
        self.faults.popup = ""

    def _close_update(self) -> None:
        self.faults.update = ""

    def _accept_update(self) -> None:
        self.log("dialog_accepted", chrome.UPDATE_TITLE)
        self.faults.update = ""

    def _close_shade(self) -> None:
        self._shade = False
