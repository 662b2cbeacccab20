"""Which apps a phone has, read once an hour."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

PACKAGES_SECONDS = 3600.0
FRESH_SECONDS = 10.0


class InstalledApps:
    """The packages of one phone, kept for an hour, from run to run: each has an ``Device`` of its own.

    components: what starts an app, by its package, as an Android phone has told.
    """

    def __init__(self) -> None:
        self._packages: tuple[str, ...] = ()
        self._read_at = float("-inf")
        self.components: dict[str, str] = {}

    async def packages(
        self, now: float, read: Callable[[], Awaitable[Sequence[str]]], *, fresh: bool = False
    ) -> Sequence[str]:
        """``now``: of a clock that only goes on, in seconds. ``fresh``: read them again, unless that was just done."""
        if now - self._read_at >= (FRESH_SECONDS if fresh else PACKAGES_SECONDS):
            self._packages, self._read_at = tuple(await read()), now
        return self._packages

    def forget(self) -> None:
        """An app that is in the list is not there."""
        self._read_at = float("-inf")
