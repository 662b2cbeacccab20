"""What is refused at the door before anybody is known, told so seldom that a flood of it fills no disk."""

from __future__ import annotations

import ipaddress

QUIET_SECONDS = 15 * 60


class RateLimitedLog:
    """Counts in this process: a restart begins anew."""

    def __init__(self) -> None:
        self._since = 0
        self._told_at: float | None = None

    def count(self, now: float) -> int:
        """One more at ``now`` (seconds of any clock): how many there were since it was last told, 0 for not to tell."""
        self._since += 1
        if self._told_at is not None and now - self._told_at < QUIET_SECONDS:
            return 0
        self._told_at = now
        told, self._since = self._since, 0
        return told


def public(address: str | None) -> str:
    """The address where it says who it was; "" for one of a house's own net, or of the reverse proxy before us."""
    try:
        return address if address and ipaddress.ip_address(address).is_global else ""
    except ValueError:
        return ""
