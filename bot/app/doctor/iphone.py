"""The check of WebDriverAgent, and of an iPhone if that is the one that runs would take. It only reads."""

from __future__ import annotations

import time

from agent_core.apps.profile import profiles
from agent_core.devices.base import System, system_of
from agent_core.devices.wda.server import WdaServer
from agent_core.texts import Listed
from bot.app.doctor.exam import Exam, soon
from bot.app.doctor.report import DoctorVerdict, failed, ok, skipped, warning


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
    installed = await device.packages()
    apps = Listed(one.name_in(exam.lang) for one in profiles() if set(one.packages) & set(installed))
    return ok("ready", apps=apps, **values) if apps else failed("no_apps", **values)
