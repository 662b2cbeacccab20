"""The screens of phones for people who look again and again: what has not changed is neither read nor encoded anew."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from PIL import Image

from agent_core.devices.base import Device
from agent_core.perception.marks import to_jpeg

KEPT_SECONDS = 5.0  # how long a phone is kept ready after somebody has looked; a page asks five times a second


class PeopleScreen(Protocol):
    """One phone's screen for people. It remembers what it has read."""

    async def picture(self) -> Image.Image:
        """Return the current screen, with secrets covered. It is the same object while nothing changes."""


@dataclass
class _Live:
    """A phone that somebody looks at. jpegs: of ``picture``, by ``full``."""

    device: Device
    screen: PeopleScreen
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    picture: Image.Image | None = None
    taken_at: float = float("-inf")
    jpegs: dict[bool, bytes] = field(default_factory=dict)
    looking: int = 0
    ending: asyncio.TimerHandle | None = None


class LiveScreens:
    """Keeps a phone's screen ready while somebody looks at it, and lets go of it some seconds later.

    screen: returns what shows a device's screen to people.
    kept: seconds after the last look.
    """

    def __init__(
        self,
        screen: Callable[[Device], PeopleScreen],
        *,
        kept: float = KEPT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._screen, self._kept, self._clock = screen, kept, clock
        self._live: dict[str, _Live] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def jpeg(self, serial: str, device: Callable[[str], Awaitable[Device]], *, full: bool = False) -> bytes:
        """Return the screen of a phone as JPEG; ``full``: in full resolution. ``device`` opens the phone."""
        asked_at = self._clock()
        live = self._live.get(serial)
        if live is None:
            opened = await device(serial)
            live = self._live.setdefault(serial, _Live(opened, self._screen(opened)))
            if live.device is not opened:  # somebody else was faster
                await opened.close()
        live.looking += 1
        try:
            async with live.lock:
                return await self._jpeg(live, full, asked_at)
        except BaseException:
            self._live.pop(serial, None)  # the next look opens the phone anew
            raise
        finally:
            live.looking -= 1
            if live.ending is not None:
                live.ending.cancel()
            seconds = self._kept if self._live.get(serial) is live else 0.0
            live.ending = asyncio.get_running_loop().call_later(seconds, self._end, serial, live)

    async def _jpeg(self, live: _Live, full: bool, asked_at: float) -> bytes:
        # A picture is shared by those who asked before it was taken: nobody sees the screen of before their own act.
        if live.picture is None or live.taken_at < asked_at:
            began = self._clock()
            picture = await live.screen.picture()
            if picture is not live.picture:
                live.picture, live.jpegs = picture, {}
            live.taken_at = began
        if full not in live.jpegs:
            live.jpegs[full] = await asyncio.to_thread(encoded, live.picture, full=full)
        return live.jpegs[full]

    async def close(self) -> None:
        """Let go of every phone."""
        for serial, live in list(self._live.items()):
            if live.ending is not None:
                live.ending.cancel()
            live.looking = 0
            self._end(serial, live)
        await asyncio.gather(*self._closing)

    def _end(self, serial: str, live: _Live) -> None:
        if live.looking:
            return  # its end sets the time anew
        if self._live.get(serial) is live:
            del self._live[serial]
        task = asyncio.create_task(live.device.close(), name="live-screen-end")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def encoded(picture: Image.Image, *, full: bool) -> bytes:
    """Return a screen for people as JPEG; ``full``: in full resolution."""
    return to_jpeg(picture, longest=max(picture.size), quality=92) if full else to_jpeg(picture)
