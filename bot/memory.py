"""Memory of pictures goes back to the system as soon as they are gone.

A screen is 8 MB. The C library of most Linux systems keeps what was freed for later, for each thread by itself, and
after the first such pieces it keeps even those: measured with ten phones, a server stayed at 525 MB after work, and at
200 MB with pieces of that size handed back. ``phonedesk bench scale`` measures it.
"""

from __future__ import annotations

import ctypes
import sys

_M_MMAP_THRESHOLD = -3
PIECE = 256 * 1024  # bytes; pieces from this size on are taken from the system, and given back to it


def give_back_pictures() -> bool:
    """For this process, from now on. False where the C library does not know it; then nothing has changed."""
    if sys.platform != "linux":
        return False
    try:
        return bool(ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, PIECE))
    except (OSError, AttributeError):
        return False
