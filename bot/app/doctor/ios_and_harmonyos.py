"""The checks of hdc and WebDriverAgent, and of a HarmonyOS phone or an iPhone if that is the one that runs would take.
They only read.
"""

from __future__ import annotations

import time

from agent_core.apps.profile import profiles
from agent_core.devices.base import Device, DeviceEntry, System, system_of
from agent_core.devices.hdc.server import HdcServer
from agent_core.devices.wda.server import WdaServer
from agent_core.texts import Listed
from bot.app.doctor.exam import Exam, soon
from bot.app.doctor.report import DoctorVerdict, failed, ok, skipped, warning


def other_than_android(exam: Exam) -> DoctorVerdict | None:
    """Return the verdict of the checks of adb if the chosen phone is not an Android phone; None if it may be one."""
    if system_of(exam.wanted) is System.ANDROID:
        return None
    return skipped("no_android", serial=exam.wanted)


async def hdc(exam: Exam) -> DoctorVerdict:
    """Check hdc and the chosen HarmonyOS phone. Raises HdcNotFound if the settings' program does not exist."""
    path, wanted = exam.settings.device.hdc_path, exam.wanted
    chosen = system_of(wanted) is System.HARMONYOS
    if not path:
        return failed("unset", serial=wanted) if chosen else skipped("unused")
    server = HdcServer(path)
    version = await server.version()
    entries = await server.devices()
    values = {"program": server.path, "version": version}
    if not chosen:
        named = Listed(f"{entry.serial} ({entry.state})" for entry in entries)
        return ok("listed", phones=named, **values) if entries else ok("none", **values)
    entry = next((entry for entry in entries if entry.serial == wanted), None)
    if entry is None or entry.state != "device":
        return _unusable(wanted, entry, entries)
    device = server.device(wanted, sleep=soon)
    exam.stack.push_async_callback(device.close)
    info, look = await device.info(), await device.look()
    apps = await _apps(exam, device)
    values |= {"serial": wanted, "model": info.model, "size": f"{info.size[0]}×{info.size[1]}", "apps": apps}
    if not apps:
        return failed("no_apps", **values)
    return warning("locked", **values) if look.screen.locked or not look.screen.awake else ok("ready", **values)


def _unusable(wanted: str, entry: DeviceEntry | None, entries: list[DeviceEntry]) -> DoctorVerdict:
    if entry is None:
        others = Listed(other.serial for other in entries)
        return failed("absent", serial=wanted, others=others) if entries else failed("absent_all", serial=wanted)
    return failed("unauthorized" if entry.state == "unauthorized" else "offline", serial=wanted)


async def wda(exam: Exam) -> DoctorVerdict:
    """Check the iPhones of the settings. Raises DeviceError if the chosen one cannot be asked, or shows no picture."""
    addresses, wanted = exam.settings.device.wda, exam.wanted
    if system_of(wanted) is not System.IOS and not addresses:
        return skipped("unused")
    server = WdaServer(lambda: addresses, known_apps=lambda: [name for one in profiles() for name in one.packages])
    exam.stack.push_async_callback(server.close)
    if system_of(wanted) is not System.IOS:
        entries = await server.devices()
        away = Listed(entry.serial for entry in entries if entry.state != "device")
        named = Listed(entry.serial for entry in entries)
        return warning("away", phones=named, away=away) if away else ok("listed", phones=named)
    device = server.device(wanted, sleep=soon)
    exam.stack.push_async_callback(device.close)
    info, look = await device.info(), await device.look()
    values = {"serial": wanted, "model": info.model, "ios": info.sdk, "size": f"{info.size[0]}×{info.size[1]}"}
    if look.screen.locked:
        return warning("locked", **values)
    await device.battery()  # this needs a session, as every act does
    started = time.monotonic()
    await device.screenshot()
    values["ms"] = round((time.monotonic() - started) * 1000)
    apps = await _apps(exam, device)
    return ok("ready", apps=apps, **values) if apps else failed("no_apps", **values)


async def _apps(exam: Exam, device: Device) -> Listed:
    """Return the names of the known chat apps that are installed on a phone."""
    installed = set(await device.packages())
    return Listed(one.name_in(exam.lang) for one in profiles() if installed & set(one.packages))
