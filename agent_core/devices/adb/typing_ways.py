"""The ways to type on an Android phone, and which of them work on this phone.

The results are stored on the phone, in a file that the shell user may write, so that every process and every computer
that uses the phone shares them.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from enum import StrEnum

FILE = "/data/local/tmp/phonedesk-typing.json"
PUT_BACK_SECONDS = 86_400  # how long a way that failed comes after the others
_ASCII = re.compile(r"[\x20-\x7e]*")


class TypingWay(StrEnum):
    """A way to type a text into the focused field, in the order for a phone without stored results.

    KEYBOARD is first because an owner who has installed ADB Keyboard has chosen it. ASCII is last: it types no other
    text, and a keyboard that composes words may change its input.
    """

    KEYBOARD = "adb_keyboard"  # broadcasts to ADB Keyboard
    PASTE = "paste"  # the program that sets the clipboard and pastes
    ASCII = "input_text"  # Android's own `input text`

    def can_type(self, text: str) -> bool:
        """Return whether this way types such a text. A new line as a key may send, so ASCII has none."""
        return self is not TypingWay.ASCII or _ASCII.fullmatch(text) is not None


@dataclass(slots=True)
class TypingMemory:
    """The typing results of one phone.

    worked: the way by which a text was last seen to arrive.
    failed: when a way last failed, in seconds since 1970 by the phone's clock.
    """

    worked: TypingWay | None = None
    failed: dict[TypingWay, int] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str) -> TypingMemory:
        """Read the output of ``written``; ignore anything that is not of this form."""
        try:
            data = json.loads(text)
            worked = TypingWay(data["worked"]) if data["worked"] else None
            return cls(worked, {TypingWay(way): int(time) for way, time in data["failed"].items()})
        except (ValueError, KeyError, TypeError, AttributeError):
            return cls()

    def written(self) -> str:
        """Return it as one line of JSON."""
        return json.dumps({"worked": self.worked or "", "failed": self.failed}, separators=(",", ":"))

    def note(self, way: TypingWay, *, worked: bool, now: int) -> None:
        """Note that a way worked or failed now."""
        if worked:
            self.worked = way
            self.failed.pop(way, None)
        else:
            self.failed[way] = now
            self.worked = None if self.worked is way else self.worked

    def order(self, *, installed: bool, now: int) -> list[TypingWay]:
        """Return the ways to try: the last that worked first, any that failed within a day last.

        installed: ADB Keyboard is on the phone. now: seconds since 1970 by the phone's clock.
        """
        ways = [way for way in TypingWay if installed or way is not TypingWay.KEYBOARD]
        return sorted(ways, key=lambda way: (self._put_back(way, now), way is not self.worked))

    def _put_back(self, way: TypingWay, now: int) -> bool:
        # A clock that was set back must not hold a way back for ever.
        return way in self.failed and abs(now - self.failed[way]) < PUT_BACK_SECONDS
