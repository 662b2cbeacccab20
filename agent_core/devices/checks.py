"""Checks of what a phone is asked for, the same for every system: places, durations, names, addresses."""

from __future__ import annotations

import re
from collections.abc import Iterable

from agent_core.errors import AppNotFound, CommandFailed
from agent_core.geometry import Point

MAX_COORDINATE = 20_000  # pixels; no screen is larger
LONGEST_TOUCH = 30  # seconds
PACKAGE = re.compile(r"[A-Za-z]\w*(?:\.\w+)+", re.ASCII)
_PROPERTY = re.compile(r"[\w.\-]+", re.ASCII)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]{1,30}://\S{1,2000}")


def check_point(point: Point) -> None:
    """Raise CommandFailed if no screen has such a place."""
    if not (0 <= point.x < MAX_COORDINATE and 0 <= point.y < MAX_COORDINATE):
        raise CommandFailed(f"({point.x}, {point.y}) is not on the screen.", key="off_screen", x=point.x, y=point.y)


def check_seconds(seconds: float) -> None:
    """Raise CommandFailed if no touch lasts so long."""
    if not 0 <= seconds <= LONGEST_TOUCH:
        raise CommandFailed(
            f"A touch of {seconds} s is not possible; it lasts 0 to {LONGEST_TOUCH} s.",
            key="touch_seconds",
            seconds=seconds,
        )


def check_package(package: str) -> None:
    """Raise AppNotFound if this cannot be the name of a package."""
    if len(package) > 255 or not PACKAGE.fullmatch(package):
        raise AppNotFound(f"{package[:100]!r} is no name of a package.", key="no_package_name", name=package[:100])


def check_properties(names: Iterable[str]) -> None:
    """Raise CommandFailed if one of ``names`` cannot be the name of a system property."""
    for name in names:
        if not _PROPERTY.fullmatch(name):
            raise CommandFailed(f"{name!r} is no name of a system property.", key="no_property", name=name)


def check_url(url: str) -> None:
    """Raise CommandFailed if this is no address that an app could open."""
    if not _URL.fullmatch(url):
        raise CommandFailed(f"{url[:100]!r} is no address that an app could open.", key="no_app_url", url=url[:100])
