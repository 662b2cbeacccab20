"""Putting a phone together from its scenario: properties, settings, apps, chats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from simulator.phone import ime
from simulator.phone.apps.base import App, Host
from simulator.phone.apps.browser import Browser
from simulator.phone.apps.chat_app import ChatApp
from simulator.phone.apps.looks import LOOKS, Look
from simulator.phone.apps.payment import Payment
from simulator.phone.apps.qq import QQ
from simulator.phone.apps.settings import Settings
from simulator.phone.apps.wechat import WeChat
from simulator.phone.port import InstalledApp
from simulator.phone.scenario import ContactPart, PhonePart, Scenario
from simulator.phone.world import Chat, ContactKind, Message, Side, World

IME_SETTING = ("secure", "default_input_method")
ENABLED_SETTING = ("secure", "enabled_input_methods")
# Android's keys for the values that `wm size` and `wm density` set: "720,1600" and "320".
FORCED_SIZE = ("global", "display_size_forced")
FORCED_DENSITY = ("secure", "display_density_forced")
ADB_KEYBOARD = InstalledApp(ime.ADB_PACKAGE, "ADB Keyboard", ".AdbIME", "2.4", launchable=False)

# Unless a scenario says otherwise.
VERSIONS: dict[str, str] = {"payment": "10.6.90"}
# For the setting ``run.checked_versions``: replies arrive on this phone's pages, whatever their look.
CHECKED = tuple(sorted({f"{look.app} {look.version}" for look in LOOKS.values()}))


def build_apps(host: Host, scenario: Scenario, start: datetime) -> dict[str, App]:
    """Return the installed apps, by the scenario's names for them, with their chats as of ``start``."""
    account = scenario.phone.account
    worlds = {"qq": World(account=account), "wechat": World(account=account, notices=tuple(scenario.wechat_rows))}
    for contact in scenario.contacts:
        worlds[contact.app].chats[contact.name] = _chat(contact, start)
    every: dict[str, App] = {
        "qq": QQ(host, worlds["qq"], _look(scenario, "qq")),
        "wechat": WeChat(host, worlds["wechat"], _look(scenario, "wechat")),
        "payment": Payment(host),
        "settings": Settings(host),
        "browser": Browser(host),
    }
    built: dict[str, App] = {name: app for name, app in every.items() if name in scenario.phone.apps}
    for contact in scenario.contacts:
        app = built.get(contact.app)
        if contact.draft and isinstance(app, ChatApp):
            app.draft(app.world.chats[contact.name]).text = contact.draft
    return built


def _look(scenario: Scenario, app: str) -> Look:
    look = LOOKS[scenario.looks[app]]
    return replace(look, wallpaper=True) if scenario.phone.wallpaper else look


def installed_apps(apps: Iterable[App], versions: Mapping[str, str], *, adb_keyboard: bool) -> dict[str, InstalledApp]:
    """Return the package manager's list, by package.

    ``versions`` are by package; the system's apps have its version.
    """
    found = [InstalledApp(app.package, app.label, app.activity, versions.get(app.package, "13")) for app in apps]
    if adb_keyboard:
        found.append(ADB_KEYBOARD)
    found.append(InstalledApp(ime.SOGOU.split("/")[0], "搜狗输入法", ".SogouIME", "11.20", launchable=False))
    return {app.package: app for app in found}


def first_settings(scenario: Scenario) -> dict[tuple[str, str], str]:
    keyboard, phone = scenario.keyboard, scenario.phone
    forced = {}
    if phone.override_size is not None:
        forced[FORCED_SIZE] = "{},{}".format(*phone.override_size)
    if phone.override_density is not None:
        forced[FORCED_DENSITY] = str(phone.override_density)
    methods = [ime.SOGOU, *([ime.ADB] if keyboard.adb_installed else [])]
    return {
        IME_SETTING: ime.ADB if keyboard.current == "adb" and keyboard.adb_installed else ime.SOGOU,
        ENABLED_SETTING: ":".join(methods),
        ("system", "screen_off_timeout"): "60000",
        ("system", "screen_brightness"): "128",
        ("system", "screen_brightness_mode"): "0",
        ("system", "accelerometer_rotation"): "1",
        ("system", "haptic_feedback_enabled"): "1",
        ("global", "wifi_on"): "1",
        ("global", "bluetooth_on"): "0",
        ("global", "mobile_data"): "1",
        ("global", "airplane_mode_on"): "0",
        ("global", "zen_mode"): "0",
        ("global", "stay_on_while_plugged_in"): "0",
        ("global", "adb_enabled"): "1",
        **forced,
    }


def properties(phone: PhonePart) -> dict[str, str]:
    return {
        "ro.product.name": phone.model,
        "ro.product.model": phone.model,
        "ro.product.device": phone.model,
        "ro.product.brand": phone.brand,
        "ro.product.manufacturer": phone.brand,
        "ro.serialno": phone.serial,
        "ro.build.version.release": phone.android,
        "ro.build.version.sdk": str(phone.sdk),
        "ro.sf.lcd_density": "440",
        "ro.product.cpu.abi": "arm64-v8a",
        "ro.product.locale": "zh-CN",
        "persist.sys.locale": "zh-CN",
        "sys.boot_completed": "1",
    }


def _chat(contact: ContactPart, start: datetime) -> Chat:
    messages = [
        Message(
            part.side,
            part.text,
            part.kind,
            start - timedelta(seconds=part.ago),
            part.state,
            part.quoted,
            part.sender,
            from_here=part.side is Side.ME,
            quoted_sender=part.quoted_sender,
            transcript=part.transcript,
            detail=part.detail,
            footer=part.footer,
            paper=part.paper,
            size=part.size,
        )
        for part in contact.history
    ]
    unread = sum(part.unread and part.side is Side.THEM for part in contact.history)
    members = contact.members or (3 if contact.kind is ContactKind.GROUP else 0)
    return Chat(
        contact.name,
        contact.kind,
        contact.number,
        members,
        messages,
        max(unread, contact.unread),
        tuple(contact.signs),
        contact.status,
        contact.strip,
        contact.muted,
        contact.special,
        contact.chip,
    )
