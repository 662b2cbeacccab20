"""The chunks of a streamed chat completion, from the bytes of its server-sent events.

Source of the format: the section "Interpreting an event stream" of the HTML standard, https://html.spec.whatwg.org/.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import openai
from openai.types.chat import ChatCompletionChunk

_LINE = re.compile(rb"\r\n|\n|\r(?!$)")  # a CR at the very end may be half of a CRLF
_DONE = "[DONE]"


class EventReader:
    """Takes the bytes as they come and gives the data of each whole event."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[str] = []

    def feed(self, piece: bytes) -> list[str]:
        *lines, self._rest = _LINE.split(self._rest + piece)
        return [data for line in lines if (data := self._take(line)) is not None]

    def _take(self, line: bytes) -> str | None:
        """The data of the event that ``line``, an empty one, ends."""
        if not line:
            data, self._data = self._data, []
            return "\n".join(data) if data else None
        name, _, value = line.decode("utf-8", "replace").partition(":")
        if name == "data":
            self._data.append(value.removeprefix(" "))
        return None


class Chunks:
    """The chunks of one response, one by one. Close ``body`` when no more are wanted."""

    def __init__(self, body: AsyncIterator[bytes], request: httpx2.Request) -> None:
        self._body = body
        self._request = request
        self._events = EventReader()
        self._waiting: deque[str] = deque()

    async def next(self) -> ChatCompletionChunk | None:
        """The next chunk, None at the end. Raises openai.APIError for an error event, ValueError where it is no JSON
        object, and the errors of the HTTP library."""
        while not self._waiting:
            piece = await anext(self._body, None)
            if piece is None:
                return None
            self._waiting.extend(self._events.feed(piece))
        data = self._waiting.popleft()
        if data.startswith(_DONE):
            return None
        values: Any = json.loads(data)
        if not isinstance(values, dict):
            raise ValueError("A chunk is no JSON object.")
        if error := values.get("error"):
            words = error.get("message") if isinstance(error, dict) else str(error)
            raise openai.APIError(str(words or "no reason given"), request=self._request, body=error)
        return ChatCompletionChunk.construct(**values)
