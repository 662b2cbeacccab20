"""The adb program: which of those on this machine is used, and its version."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import adbutils

from agent_core.errors import AdbNotFound

PAIRS_FROM = 30  # the first adb that pairs over Wi-Fi, and that can talk TLS to a phone paired that way
VERSION_SECONDS = 10.0
# "Android Debug Bridge version 1.0.41" is the protocol's version; the program's own is in the next line.
_VERSION = re.compile(r"^Version ((\d+)\S*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class AdbVersion:
    """A version of the adb program. major: 0 and text: "" if it tells none."""

    major: int = 0
    text: str = ""

    @property
    def pairs(self) -> bool:
        return self.major >= PAIRS_FROM


def find_adb(adb_path: str | None = None) -> str:
    """Return the adb program: the named one, else what adbutils finds, else the one that adbutils carries.

    adbutils finds ``ADBUTILS_ADB_PATH``, then the search path, then its own. If the one on the search path is too old
    to pair over Wi-Fi (Debian has 29), its own is taken. A server of one and a client of the other get on: both speak
    protocol version 41, and only another protocol makes a client end the server and start its own.

    Raises AdbNotFound if there is no adb program, or none at ``adb_path``.
    """
    if adb_path:
        if found := shutil.which(adb_path):
            return found
        raise AdbNotFound(f"There is no adb program at {adb_path}.", key="adb_not_there", path=adb_path)
    try:
        found = shutil.which(str(adbutils.adb_path()))
    except (adbutils.AdbError, RuntimeError, OSError) as error:
        raise AdbNotFound("There is no adb program on this machine.", key="adb_missing") from error
    if not found:
        raise AdbNotFound("There is no adb program on this machine.", key="adb_missing")
    if os.environ.get("ADBUTILS_ADB_PATH") or version_of(found).pairs:
        return found
    return carried_adb() or found


def carried_adb() -> str:
    """Return the adb that the installed adbutils carries, if it can pair over Wi-Fi; "" if there is none."""
    found = shutil.which(str(Path(adbutils.__file__).parent / "binaries" / "adb")) or ""
    return found if found and version_of(found).pairs else ""


@lru_cache(maxsize=16)
def version_of(program: str) -> AdbVersion:
    """Return the version that an adb program reports."""
    try:
        told = subprocess.run(  # noqa: S603  # a list, and the program that is started as a server anyway
            [program, "version"], capture_output=True, timeout=VERSION_SECONDS, check=False, text=True, errors="replace"
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return AdbVersion()
    found = _VERSION.search(told)
    return AdbVersion(int(found[2]), found[1]) if found else AdbVersion()
