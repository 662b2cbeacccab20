"""Made-up Android apps: a ZIP with as much of a manifest as an installer needs to know the package."""

from __future__ import annotations

import zipfile
from pathlib import Path

KEYBOARD = "com.android.adbkeyboard"


def keyboard_apk(file: Path, package: str = KEYBOARD, encoding: str = "utf-16-le") -> Path:
    """Write an app of this package. Strings of binary XML are UTF-16 or UTF-8."""
    header = b"\x03\x00\x08\x00"  # RES_XML_TYPE and the size of its header
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("AndroidManifest.xml", header + b"\x17\x00" + package.encode(encoding) + b"\x00\x00")
        archive.writestr("classes.dex", b"dex\n035\x00")
    return file
