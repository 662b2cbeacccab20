"""How long a reply that is still arriving is waited for."""

from __future__ import annotations

import asyncio

SECONDS_PER_CHARACTER = 0.05  # what comes slower than 20 characters a second uses up the time it was given


class Pace:
    """The deadline of one reply, from the moment of its request.

    ``timeout`` seconds without a character end it. What counts are the reply's own characters, so pings and empty parts
    keep nothing alive; and each is worth ``SECONDS_PER_CHARACTER``, so one character now and then does not, either.
    """

    def __init__(self, timeout: float) -> None:
        self._now = asyncio.get_running_loop().time
        self._timeout = timeout
        self._begun = self._heard = self._now()
        self._size = 0

    @property
    def deadline(self) -> float:
        """A time of the event loop's clock."""
        earned = self._begun + self._size * SECONDS_PER_CHARACTER
        return min(self._heard, earned) + self._timeout

    def heard(self, size: int) -> None:
        """Take note that ``size`` characters have come by now."""
        if size > self._size:
            self._size = size
            self._heard = self._now()
