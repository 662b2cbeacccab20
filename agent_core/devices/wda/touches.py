"""A finger on an iPhone, as W3C pointer actions (WebDriver 17.4.2; ``FBW3CActionsSynthesizer.m`` of WebDriverAgent).

One way for all touches: ``/wda/dragfromtoforduration`` holds for its duration before it drags, and ``/wda/tap`` has had
three addresses in as many versions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from agent_core.devices.checks import check_point, check_seconds
from agent_core.devices.wda.client import Json, WdaClient
from agent_core.geometry import Point

_TAP, _BETWEEN = 60, 80  # milliseconds
_EDGE = 2  # points from the left edge: the swipe back begins there
_DOWN: Json = {"type": "pointerDown", "button": 0}
_UP: Json = {"type": "pointerUp", "button": 0}

Act = Callable[[str, Json], Awaitable[object]]


class WdaTouches:
    """Touches at places in pixels. ``act``: how they are sent, if not in the session of WDA that is there."""

    def __init__(self, client: WdaClient, scale: Callable[[], Awaitable[float]]) -> None:
        self._client, self._scale = client, scale

    async def tap(self, point: Point, act: Act | None = None) -> None:
        await self._send(act or self._client.act, _move(point, await self._scale()), *_press(_TAP))

    async def double_tap(self, point: Point) -> None:
        there = _move(point, await self._scale())
        await self._send(self._client.act, there, *_press(_TAP), _pause(_BETWEEN), *_press(_TAP))

    async def long_press(self, point: Point, seconds: float) -> None:
        there = _move(point, await self._scale())
        await self._send(self._waiting(seconds), there, *_press(_milliseconds(seconds)))

    async def swipe(self, start: Point, end: Point, seconds: float) -> None:
        if start == end:
            await self.long_press(start, seconds)
        else:
            await self._drag(start, end, seconds, self._waiting(seconds))

    async def from_left_edge(self, size: tuple[int, int], act: Act) -> None:
        """Swipe from the left edge, iOS's way back, on a screen of ``size`` pixels."""
        y = size[1] // 2
        await self._drag(Point(round(_EDGE * await self._scale()), y), Point(size[0] * 4 // 5, y), 0.3, act)

    async def from_lower_edge(self, size: tuple[int, int], act: Act) -> None:
        """Swipe up from the lower edge, iOS's way to the app switcher on phones without a home button."""
        x = size[0] // 2
        await self._drag(Point(x, size[1] - 1), Point(x, size[1] // 2), 0.5, act, rest=0.8)

    async def _drag(self, start: Point, end: Point, seconds: float, act: Act, *, rest: float = 0.0) -> None:
        scale = await self._scale()
        moving = _move(end, scale, _milliseconds(seconds))
        await self._send(act, _move(start, scale), _DOWN, moving, _pause(round(rest * 1000)), _UP)

    async def _send(self, act: Act, *items: Json) -> None:
        finger = {"type": "pointer", "id": "finger", "parameters": {"pointerType": "touch"}, "actions": list(items)}
        await act("/actions", {"actions": [finger]})

    def _waiting(self, seconds: float) -> Act:
        """Return a way to act that waits for a touch of this length."""

        async def act(path: str, body: Json) -> object:
            return await self._client.act(path, body, seconds=20 + seconds)

        return act


def _move(point: Point, scale: float, milliseconds: int = 0) -> Json:
    check_point(point)
    return {"type": "pointerMove", "duration": milliseconds, "x": point.x / scale, "y": point.y / scale}


def _pause(milliseconds: int) -> Json:
    return {"type": "pause", "duration": milliseconds}


def _press(milliseconds: int) -> tuple[Json, Json, Json]:
    return (_DOWN, _pause(milliseconds), _UP)


def _milliseconds(seconds: float) -> int:
    check_seconds(seconds)
    return max(1, round(seconds * 1000))
