"""Typing on an iPhone: WebDriverAgent types a text as a keyboard would, into the field that has the focus.

``/wda/keys`` takes any Unicode (``FBTypeText`` in ``XCUIElement+FBTyping.m`` of appium/WebDriverAgent 16.7). There is
no keyboard to change and none to put back. A new line is the return key, and in many chats that key sends. So a new
line is typed as one only if the keyboard on the screen says that its return key makes one, else as a blank.

The session of WebDriverAgent is the guard: a new owner of the phone makes a new session, and the phone then refuses
keys that are typed in another.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

from agent_core.devices.base import Key
from agent_core.devices.wda import source
from agent_core.devices.wda.client import SESSION_LOST, Json, WdaClient, WdaRefusal, session_lost
from agent_core.devices.wda.touches import Act
from agent_core.errors import DeviceError, LeaseLost, TextInputFailed
from agent_core.geometry import Point

CHUNK = 100  # characters in one call; WDA types 60 in a second
_CHUNK_SECONDS = 30.0
_ELEMENT = ("element-6066-11e4-a52e-4f735466cecf", "ELEMENT")
KEYS = {Key.ENTER: "\n", Key.DELETE: "\b"}


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
