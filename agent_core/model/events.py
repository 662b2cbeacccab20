"""The chunks of a streamed chat completion, from the bytes of its server-sent events.

Source of the format: the section "Interpreting an event stream" of the HTML standard, https://html.spec.whatwg.org/.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any

import httpx2
import openai

from agent_core.model.api_types import Answer

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
        self.strange = ""  # what was passed over last: some gateways send pings of their own

    def arrived(self) -> Iterator[Answer]:
        """Those that have arrived and were not asked for yet, up to the first that is none. Waits for nothing."""
        with suppress(ValueError, RecursionError, openai.APIError):
            while self._waiting and (chunk := self._chunk(self._waiting.popleft())) is not None:
                yield chunk

    async def next(self) -> Answer | None:
        """The next chunk, None at the end; what says nothing of a reply is passed over.

        Raises openai.APIError for an error event, ValueError where it is no JSON object or no chunk, and the errors of
        the HTTP library.
        """
        while True:
            while not self._waiting:
                piece = await anext(self._body, None)
                if piece is None:
                    return None
                self._waiting.extend(self._events.feed(piece))
            data = self._waiting.popleft()
            chunk = self._chunk(data)
            if chunk is None or {"choices", "usage"} & chunk.model_fields_set:
                return chunk
            self.strange = data

    def _chunk(self, data: str) -> Answer | None:
        if data.startswith(_DONE):
            return None
        values: Any = json.loads(data)
        if not isinstance(values, dict):
            raise ValueError("A chunk is no JSON object.")
        if error := values.get("error"):
            words = error.get("message") if isinstance(error, dict) else str(error)
            raise openai.APIError(str(words or "no reason given"), request=self._request, body=error)
        return Answer.model_validate(values)
