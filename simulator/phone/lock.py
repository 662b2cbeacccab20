"""The PIN of the virtual phone's lock screen."""

from __future__ import annotations

from datetime import datetime, timedelta

TRIES = 5  # wrong PINs, as on Android, until none is taken for a while
LOCK_OUT = timedelta(seconds=30)


class PinLock:
    """The PIN field and the count of wrong PINs.

    pin: "" is a lock screen that asks for none. asking: the PIN field is shown.
    """

    def __init__(self, pin: str) -> None:
        self.pin = pin
        self.asking = False
        self.typed = ""
        self.wrong = 0
        self._shut_until: datetime | None = None

    def ask(self) -> bool:
        """Show the PIN field, and return True; False if no PIN is needed."""
        self.asking = bool(self.pin)
        return self.asking

    def leave(self) -> None:
        """Hide the field, as when the screen goes off."""
        self.asking, self.typed = False, ""

    def add(self, digits: str, now: datetime) -> None:
        if self.asking and not self.shut(now):
            self.typed += "".join(digit for digit in digits if digit.isdecimal())

    def confirm(self, now: datetime) -> bool:
        """Check the typed PIN, and return whether the phone opens. Fewer than four digits do not count as a try."""
        typed, self.typed = self.typed, ""
        if not self.asking or self.shut(now) or len(typed) < 4:
            return False
        if typed == self.pin:
            self.wrong, self._shut_until = 0, None
            self.leave()
            return True
        self.wrong += 1
        if self.wrong >= TRIES:
            self._shut_until = now + LOCK_OUT
        return False

    def shut(self, now: datetime) -> bool:
        """Tell whether no PIN is accepted at the moment, because too many were wrong."""
        return self._shut_until is not None and now < self._shut_until
