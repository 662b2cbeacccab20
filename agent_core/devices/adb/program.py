"""The adb program: which of those on this machine is used, and its version."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

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
    """Return the adb program: the named one, else ``ADBUTILS_ADB_PATH``, the search path's, or that of adbutils.

    If the one on the search path is too old to pair over Wi-Fi (Debian has 29), the one that adbutils carries is taken.
    A server of one and a client of the other get on: both speak protocol version 41, and only another protocol makes a
    client end the server and start its own.

    Raises AdbNotFound if there is no adb program, or none at ``adb_path``.
    """
    if adb_path:
        if found := shutil.which(adb_path):
            return found
        raise AdbNotFound(f"There is no adb program at {adb_path}.", key="adb_not_there", path=adb_path)
    named = os.environ.get("ADBUTILS_ADB_PATH")
    found = shutil.which(named or "adb") or ""
    if not named and not (found and version_of(found).pairs):
        found = carried_adb() or found
    if found:
        return found
    raise AdbNotFound("There is no adb program on this machine.", key="adb_missing")


def carried_adb() -> str:
    """Return the adb that the installed adbutils carries, if it can pair over Wi-Fi; "" if there is none."""
    package = find_spec("adbutils")  # it is not imported: it brings 5 MB of other libraries along
    folders = package.submodule_search_locations if package is not None else None
    found = shutil.which("adb", path=str(Path(folders[0]) / "binaries")) if folders else None
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
