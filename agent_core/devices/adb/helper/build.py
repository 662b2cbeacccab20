"""Assemble ``paste.jar`` from ``Paste.smali``; the same source always gives the same bytes.

Needs Java and Debian's ``libsmali-java``. Run it after each change of the source:
``python -m agent_core.devices.adb.helper.build``
"""

from __future__ import annotations

import io
import subprocess
import tempfile
import zipfile
from pathlib import Path

SOURCE = Path(__file__).with_name("Paste.smali")
PROGRAM = Path(__file__).with_name("paste.jar")
SMALI = Path("/usr/share/java/smali.jar")
API_LEVEL = "24"  # Android 7, the first that pastes with KEYCODE_PASTE
_DATE = (1980, 1, 1, 0, 0, 0)  # the first that a zip can hold


def assemble() -> bytes:
    """Return the bytes of the jar, a zip with one dex in it, as ``app_process`` takes it."""
    with tempfile.TemporaryDirectory() as folder:
        dex = Path(folder) / "classes.dex"
        arguments = ["assemble", "--api", API_LEVEL, "--output", str(dex), str(SOURCE)]
        subprocess.run(  # noqa: S603  # a list of our own words
            ["java", "-cp", str(SMALI), "org.jf.smali.Main", *arguments],  # noqa: S607
            check=True,
            timeout=120,
        )
        code = dex.read_bytes()
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        entry = zipfile.ZipInfo("classes.dex", _DATE)
        entry.create_system, entry.external_attr = 3, 0o644 << 16
        archive.writestr(entry, code)
    return content.getvalue()


if __name__ == "__main__":
    PROGRAM.write_bytes(assemble())
