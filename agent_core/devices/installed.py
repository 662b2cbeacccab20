"""The list of a phone's installed apps, read once an hour."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

PACKAGES_SECONDS = 3600.0
FRESH_SECONDS = 10.0


class InstalledApps:
    """The packages of one phone, kept for an hour from run to run, because each run has its own ``Device``.

    components: the activity that starts an app, by its package, as an Android phone named it.
    """

    def __init__(self) -> None:
        self._packages: tuple[str, ...] = ()
        self._read_at = float("-inf")
        self.components: dict[str, str] = {}

    async def packages(
        self, now: float, read: Callable[[], Awaitable[Sequence[str]]], *, fresh: bool = False
    ) -> Sequence[str]:
        """Return the packages.

        now: seconds of a clock that never goes back.
        read: reads the list from the phone.
        fresh: read them again, unless that was done within the last ``FRESH_SECONDS``.
        """
        if now - self._read_at >= (FRESH_SECONDS if fresh else PACKAGES_SECONDS):
            self._packages, self._read_at = tuple(await read()), now
        return self._packages

    def forget(self) -> None:
        """Drop the list, because an app in it turned out to be missing."""
        self._read_at = float("-inf")
