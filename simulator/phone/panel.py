"""The touch panel of the virtual phone: fingers on it, as the kernel reports them. Injected touches are not here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass, field

EV_SYN, EV_KEY, EV_ABS = 0, 1, 3
BTN_TOUCH = 0x14A
X, Y, TRACKING_ID = 0x35, 0x36, 0x39
UP = 0xFFFFFFFF
MAX_WAITING = 4096  # events of a listener that does not read; older ones are lost, as in the kernel's own buffer


@dataclass(frozen=True, slots=True)
class InputEvent:
    """One event as ``<linux/input.h>`` has it. ``value`` is unsigned."""

    type: int
    code: int
    value: int


@dataclass(slots=True)
class TouchPanel:
    """``size`` in pixels; it reports places as pixels."""

    size: tuple[int, int]
    _listeners: set[asyncio.Queue[InputEvent]] = field(default_factory=set)
    _touches: int = 0

    @property
    def listeners(self) -> int:
        return len(self._listeners)

    def touch(self, x: float, y: float) -> None:
        """Move a finger down at a place in pixels and up again."""
        self._touches += 1
        self._emit(
            [
                InputEvent(EV_ABS, TRACKING_ID, self._touches),
                InputEvent(EV_KEY, BTN_TOUCH, 1),
                InputEvent(EV_ABS, X, round(x)),
                InputEvent(EV_ABS, Y, round(y)),
                InputEvent(EV_SYN, 0, 0),
                InputEvent(EV_ABS, TRACKING_ID, UP),
                InputEvent(EV_KEY, BTN_TOUCH, 0),
                InputEvent(EV_SYN, 0, 0),
            ]
        )

    async def events(self) -> AsyncGenerator[list[InputEvent], None]:
        """Yield the events from now on, as they come; it never ends by itself."""
        queue: asyncio.Queue[InputEvent] = asyncio.Queue(MAX_WAITING)
        self._listeners.add(queue)
        try:
            while True:
                found = [await queue.get()]
                while not queue.empty():
                    found.append(queue.get_nowait())
                yield found
        finally:
            self._listeners.discard(queue)

    def _emit(self, events: Iterable[InputEvent]) -> None:
        for event in events:
            for queue in self._listeners:
                if queue.full():
                    queue.get_nowait()
                queue.put_nowait(event)
