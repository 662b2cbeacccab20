"""The identity of the phone behind a transport of the adb server.

A transport is a name of the adb server: a cable's serial, ``192.168.1.20:5555``, ``adb-…._adb-tls-connect._tcp``. One
phone can have several at once, and an address can lead to another phone tomorrow. The maker's serial (``ro.serialno``)
alone does not tell phones apart, because cheap ones share it. Together with Android's own id, which is drawn at random
when a phone is first started, it does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from agent_core.devices.adb.parse import first_line
from agent_core.devices.adb.transport import Transport
from agent_core.devices.shell import QUIET, command_line
from agent_core.errors import CommandFailed

READ_SECONDS = 5.0
_SERIAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._\-]{3,63}", re.ASCII)
_ANDROID_ID = re.compile(r"[0-9a-f]{8,16}", re.ASCII)
_BOOT_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
# Reported by phones without a serial. All emulators of one release report the same, too.
_NO_SERIAL = re.compile(
    r"unknown|none|null|default|android|(.)\1*|0?123456789(?:0?abcdef|0)?|emulator.*", re.IGNORECASE
)
_MARK = "phonedesk-read"
_LINE = command_line(
    ("getprop", "ro.serialno"),
    ("settings", "get", "secure", "android_id", QUIET),
    ("cat", "/proc/sys/kernel/random/boot_id", QUIET),
    ("getprop", "sys.boot_completed"),
    ("echo", _MARK),
)


@dataclass(frozen=True, slots=True)
class Hardware:
    """A phone that can be told from every other one.

    serial: the maker's serial. android_id: changes if the phone is reset.
    boot_id: changes at each start of the phone, "" if it cannot be read. Not a part of the identity.
    """

    serial: str
    android_id: str
    boot_id: str = ""

    @property
    def key(self) -> str:
        """The identity as one word."""
        return f"{self.serial} {self.android_id}"


async def read_hardware(phone: Transport) -> Hardware | None:
    """Return which phone this is; None if it has nothing that tells it from other phones.

    Reads only, and does not wake the phone. Raises DeviceError if the phone does not answer.
    """
    result = await phone.shell(_LINE, seconds=READ_SECONDS, safe=True)
    serial, *others = [line.strip() for line in result.out.splitlines()] or [""]
    said = [line for line in others[:-2] if line and not _BOOT_ID.fullmatch(line)]
    # While Android starts, it does not know its id yet.
    if others[-1:] != [_MARK] or (not said and others[-2] != "1"):
        raise CommandFailed("The phone did not tell who it is.", key="phone_said", why=first_line(result.text))
    android_id = next((line for line in others if _ANDROID_ID.fullmatch(line)), "")
    boot_id = next((line for line in others if _BOOT_ID.fullmatch(line)), "")
    if not _SERIAL.fullmatch(serial) or _NO_SERIAL.fullmatch(serial) or not android_id:
        return None
    return Hardware(serial, android_id, boot_id)
