"""The repairs of ``phonedesk doctor --fix``: nothing that cannot be undone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agent_core.devices.adb.setup import PhoneSetup
from agent_core.devices.base import Device
from bot.app.doctor.exam import Exam, found
from bot.app.doctor.machine import open_secrets
from bot.app.doctor.report import DoctorVerdict
from bot.app.phones import KEYBOARD_FILE

PRIVATE = 0o600


async def settings(_: Exam, verdict: DoctorVerdict) -> bool:
    """Let no other user read the files with secrets."""
    if verdict.case != "readable":
        return False
    for file in open_secrets():
        file.chmod(PRIVATE)
    return True


async def phone(exam: Exam, verdict: DoctorVerdict) -> bool:
    """Reconnect a phone on the network whose connection has died."""
    if verdict.case != "offline_network":
        return False
    await found(exam.adb).connect(str(verdict.values["serial"]))  # it drops a dead connection by itself
    return True


async def screen(exam: Exam, verdict: DoctorVerdict) -> bool:
    """Turn the screen on. A lock with a secret is left to its owner."""
    if verdict.case != "asleep":
        return False
    async with _ours(exam) as device:
        await device.wake()
    return True


async def keyboard(exam: Exam, verdict: DoctorVerdict) -> bool:
    """Install the keyboard from ``KEYBOARD_FILE``, if it is there, and set up the phone as ``setup`` does."""
    return verdict.case == "missing" and KEYBOARD_FILE.is_file() and await _set_up(exam)


async def setup(exam: Exam, verdict: DoctorVerdict) -> bool:
    """Set up the phone, as ``phonedesk devices setup`` does, which can undo it, too."""
    return verdict.case == "offered" and await _set_up(exam)


async def _set_up(exam: Exam) -> bool:
    apk = KEYBOARD_FILE if await asyncio.to_thread(KEYBOARD_FILE.is_file) else None
    async with _ours(exam):
        await PhoneSetup(found(exam.transport)).apply(apk)
    return True


@asynccontextmanager
async def _ours(exam: Exam) -> AsyncIterator[Device]:
    """Lease the phone, and put back the changes of a dead run, which must not be taken for the owner's.

    Raises LeaseLost if another owner has the phone.
    """
    async with exam.acting() as device:
        await device.recover()
        yield device
