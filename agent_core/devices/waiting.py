"""Waiting for a state of the phone, and for a screen that rests; and finishing work that must be finished."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Protocol, TypeVar

from agent_core.devices.base import Frame, Look, LookedPicture
from agent_core.errors import ScreenshotFailed
from agent_core.retry import Sleep

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Time:
    """The source of time. ``clock`` returns seconds that never go back."""

    clock: Callable[[], float]
    sleep: Sleep

    async def until(self, check: Callable[[], Awaitable[T | None]], seconds: float) -> T | None:
        """Ask ``check`` until it gives something, ever more slowly (20 ms to 0.25 s); None after ``seconds``."""
        deadline = self.clock() + seconds
        pause = 0.02
        while True:
            found = await check()
            left = deadline - self.clock()
            if found is not None or left <= 0:
                return found
            await self.sleep(min(pause, left))
            pause = min(pause * 1.5, 0.25)


async def finish(work: Coroutine[object, object, T]) -> T:
    """Await ``work`` to its end even if the caller is cancelled meanwhile; the cancellation is raised afterwards.

    For cleaning up a phone. ``work`` must limit itself in time.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        task.cancelled() or task.exception()  # it was looked at: no complaint about a lost exception
        raise cancelled
    return task.result()


class Camera(Protocol):
    """The part of a ``Device`` that is needed."""

    async def screenshot(self) -> Frame: ...

    async def observe(self) -> LookedPicture: ...

    async def look(self) -> Look: ...


@dataclass(frozen=True, slots=True)
class Still:
    """The newest picture of a wait, and whether the screen had come to rest.

    look: the window and screen state while the newest picture was taken.
    pictures: the number of pictures taken.
    seconds: the duration of the whole wait.
    capturing: the seconds that the newest picture took; the rest of ``seconds`` was spent waiting for rest.
    """

    frame: Frame
    look: Look
    still: bool
    pictures: int
    seconds: float
    capturing: float = 0.0


async def wait_until_still(
    device: Camera,
    *,
    floor: float = 0.05,
    ceiling: float = 3.0,
    quiet: int = 2,
    before: str | None = None,
    patience: float = 0.3,
    clock: Callable[[], float] = time.monotonic,
    sleep: Sleep = asyncio.sleep,
) -> Still:
    """Take pictures until the screen rests, or ``ceiling`` seconds are over.

    The screen rests when ``quiet`` pictures in a row are equal and lie at least ``floor`` seconds apart. The window in
    front is asked together with the second and each later picture, so that it costs no call. The pauses depend on how
    long a picture takes: a phone that needs longer than ``floor`` for one is asked again at once.

    before: the digest of the screen before an action whose effect is awaited. For the first ``patience`` seconds that
    screen does not count as rest.

    Raises ScreenshotFailed if not a single picture could be taken.
    """
    started = clock()
    frame: Frame | None = None
    look: Look | None = None
    since, equal, pictures = started, 0, 0
    capturing = 0.0
    while True:
        asked = clock()
        try:
            newest, look = await _taken(device, with_look=frame is not None)
        except ScreenshotFailed:
            # Black for a moment, as between two pages; at the end it is the caller's to know.
            if clock() - started >= ceiling and frame is None:
                raise
            equal = 0
        else:
            pictures += 1
            capturing = clock() - asked
            if frame is None or equal == 0 or newest.digest != frame.digest:
                since, equal = asked, 0
            frame, equal = newest, equal + 1
            waits_for_effect = newest.digest == before and asked - started < patience
            if look is not None and equal >= quiet and asked - since >= floor - 0.001 and not waits_for_effect:
                return Still(frame, look, True, pictures, clock() - started, capturing)
        now = clock()
        if now - started >= ceiling and frame is not None:
            look = await device.look()  # the newest pictures may have failed since the last one
            return Still(frame, look, False, pictures, clock() - started, capturing)
        await sleep(max(0.0, floor - (now - asked)))


async def _taken(device: Camera, *, with_look: bool) -> tuple[Frame, Look | None]:
    if not with_look:
        return await device.screenshot(), None
    looked = await device.observe()
    return looked.frame, looked.look
