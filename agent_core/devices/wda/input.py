"""Touching and typing on an iPhone.

A finger is W3C pointer actions (WebDriver 17.4.2; ``FBW3CActionsSynthesizer.m`` of WebDriverAgent), one way for all
touches: ``/wda/dragfromtoforduration`` holds for its duration before it drags, and ``/wda/tap`` has had three addresses
in as many versions.

WebDriverAgent types a text as a keyboard would, into the field that has the focus. ``/wda/keys`` takes any Unicode
(``FBTypeText`` in ``XCUIElement+FBTyping.m`` of appium/WebDriverAgent 16.7). There is no keyboard to change and none to
put back. A new line is the return key, and in many chats that key sends. So a new line is typed as one only if the
keyboard on the screen says that its return key makes one, else as a blank.

The session of WebDriverAgent is the guard: a new owner of the phone makes a new session, and the phone then refuses
keys that are typed in another.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

from agent_core.devices.base import Key
from agent_core.devices.checks import check_point, check_seconds
from agent_core.devices.wda import source
from agent_core.devices.wda.client import SESSION_LOST, Json, WdaClient, WdaRefusal, session_lost
from agent_core.errors import DeviceError, LeaseLost, TextInputFailed
from agent_core.geometry import Point

_TAP, _BETWEEN = 60, 80  # milliseconds
_EDGE = 2  # points from the left edge: the swipe back begins there
_DOWN: Json = {"type": "pointerDown", "button": 0}
_UP: Json = {"type": "pointerUp", "button": 0}

Act = Callable[[str, Json], Awaitable[object]]
CHUNK = 100  # characters in one call; WDA types 60 in a second
_CHUNK_SECONDS = 30.0
_ELEMENT = ("element-6066-11e4-a52e-4f735466cecf", "ELEMENT")
KEYS = {Key.ENTER: "\n", Key.DELETE: "\b"}


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


class WdaKeyboard:
    """The keyboard in one session of WDA; implements ``TextInput``."""

    def __init__(
        self,
        client: WdaClient,
        session: str,
        tap: Callable[[Point, Act], Awaitable[None]],
        key: Callable[[Key, Act], Awaitable[None]],
    ) -> None:
        self._client, self._session = client, session
        self._tap, self._key = tap, key

    async def clear(self) -> None:
        found = await self._act("/element/active", None)
        element = next((found[name] for name in _ELEMENT if name in found), None) if isinstance(found, dict) else None
        if not isinstance(element, str):
            raise TextInputFailed("The phone did not say which field has the focus.", key="wda_no_field")
        await self._act(f"/element/{element}/clear", {})

    async def type(self, text: str) -> None:
        text = re.sub(r"\r\n?", "\n", text)
        if "\n" in text and not source.return_makes_lines(await self._client.read(source.PATH)):
            text = re.sub(r"\s*\n\s*", " ", text)
        for start in range(0, len(text), CHUNK):
            await self._act("/wda/keys", {"value": list(text[start : start + CHUNK])})

    async def confirm(self, *, arrived: bool) -> None:
        """Do nothing: WebDriverAgent has one way to type, so there is nothing to learn."""

    async def tap(self, point: Point) -> None:
        await self._tap(point, self._act)

    async def key(self, key: Key) -> None:
        await self._key(key, self._act)

    async def send_action(self) -> None:
        await self._act("/wda/keys", {"value": ["\n"]})

    async def _act(self, path: str, body: Json | None) -> object:
        """Act in our session. Raises LeaseLost if another one has taken its place."""
        try:
            return await self._client.in_session(self._session, path, body, seconds=_CHUNK_SECONDS)
        except WdaRefusal as error:
            raise _failure(error) from error


def _failure(error: WdaRefusal) -> DeviceError:
    if error.code == SESSION_LOST and error.session:
        return LeaseLost("Somebody else has taken the phone in WebDriverAgent.", key="wda_taken")
    if error.code == SESSION_LOST:
        return session_lost()
    if error.code == "no such element":
        return TextInputFailed("No text field has the focus.", advice="Tap the text field first.", key="wda_no_field")
    if error.code == "invalid element state":
        return TextInputFailed(
            f"The text was not typed: {error.words}.", advice="", key="wda_not_typed", why=error.words
        )
    return error
