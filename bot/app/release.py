"""The program's release, and the command that calls it."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

NAME = "phonedesk"


def release() -> str:
    """Return the release, as it is stored and sent to others; "" if the distribution is not installed."""
    from importlib import metadata  # 20 to 40 ms, and most commands do not ask

    try:
        return metadata.version("phonedesk")
    except metadata.PackageNotFoundError:
        return ""


def program() -> str:
    """Return what to type to call this program from here: its name, or its path if a shell would not find it."""
    called = Path(sys.argv[0])
    found = shutil.which(NAME)
    if called.name != NAME or (found is not None and Path(found).resolve() == called.resolve()):
        return NAME
    near = os.path.relpath(called)
    return shlex.quote(str(called) if near.startswith(os.pardir) else near)
