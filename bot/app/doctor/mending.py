"""What ``phonedesk doctor --fix`` does about what the checks found: nothing that a person could miss afterwards."""

from __future__ import annotations

import asyncio
from pathlib import Path

from agent_core.devices.adb.keyboard import METHOD
from agent_core.devices.adb.transport import command_line
from bot.app.doctor.exam import Exam, found
from bot.app.doctor.machine import open_secrets
from bot.app.doctor.report import DoctorVerdict

KEYBOARD_FILE = Path("ADBKeyboard.apk")  # in the folder that we were started from
INSTALL_SECONDS = 60.0
PRIVATE = 0o600


async def settings(_: Exam, verdict: DoctorVerdict) -> bool:
    """Let no other user read the files with secrets."""
    if verdict.case != "readable":
        return False
    for file in open_secrets():
        file.chmod(PRIVATE)
    return True


async def phone(exam: Exam, verdict: DoctorVerdict) -> bool:
    """Connect anew to a phone on the network whose connection has died."""
    if verdict.case != "offline_network":
        return False
    await found(exam.adb).connect(str(verdict.values["serial"]))  # it drops what has died by itself
    return True


async def screen(exam: Exam, verdict: DoctorVerdict) -> bool:
    """Turn the screen on. A lock with a secret is left to its owner, a phone at work to its run."""
    device = found(exam.device)
    if verdict.case != "asleep" or device.serial in exam.held:
        return False
    await device.wake()
    return True


async def keyboard(exam: Exam, verdict: DoctorVerdict) -> bool:
    """Install the keyboard from ``KEYBOARD_FILE``, if it is there, and allow its use. It is not chosen."""
    if verdict.case != "missing" or not await asyncio.to_thread(KEYBOARD_FILE.is_file):
        return False
    async with asyncio.timeout(INSTALL_SECONDS):
        await found(exam.adb).install(found(exam.device).serial, KEYBOARD_FILE)
        await exam.shell(command_line(("ime", "enable", METHOD)))
    return True
