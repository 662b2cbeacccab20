"""Types of an endpoint's answers, and how they are read from its bytes.

The chunks of a streamed completion are read from the bytes of its server-sent events. Source of their format: the
section "Interpreting an event stream" of the HTML standard, https://html.spec.whatwg.org/.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any

from pydantic import BaseModel, ConfigDict

from agent_core.model.endpoint import EndpointError
from agent_core.model.failures import Failures


class _Part(BaseModel):
    """A missing field is None; unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore")


class Piece(_Part):
    """A part of a content that is a list: text, or thinking, which may be a list itself (Mistral)."""

    text: str | None = None
    thinking: str | list[Piece] | None = None


class Function(_Part):
    name: str | None = None
    arguments: str | None = None


class ApiToolCall(_Part):
    index: int | None = None
    function: Function | None = None


class ApiMessage(_Part):
    """A message, or a part of one."""

    content: str | list[str | Piece] | None = None
    refusal: str | None = None
    tool_calls: list[ApiToolCall] | None = None
    reasoning_content: Any = None
    reasoning: Any = None

    @property
    def text(self) -> str:
        """The content without any parts that are thinking."""
        if isinstance(self.content, list):
            return "".join(part if isinstance(part, str) else part.text or "" for part in self.content)
        return self.content or ""

    @property
    def thought(self) -> str:
        """Thinking that an endpoint sends beside the answer, under one of two names, or in parts of the content."""
        text = self.reasoning_content or self.reasoning
        if isinstance(text, str) and text:
            return text
        parts = self.content if isinstance(self.content, list) else ()
        return "".join(_thinking(part) for part in parts if isinstance(part, Piece))


def _thinking(piece: Piece) -> str:
    if isinstance(piece.thinking, list):
        return "".join(part.text or "" for part in piece.thinking)
    return piece.thinking or ""


class ApiChoice(_Part):
    """One choice of a completion: ``delta`` in a stream (some endpoints omit it in the last one), else ``message``."""

    delta: ApiMessage | None = None
    message: ApiMessage | None = None
    finish_reason: str | None = None


class ApiCompletion(_Part):
    """A whole completion, or a chunk of one. ``usage`` is as the endpoint counts it."""

    choices: list[ApiChoice] | None = None
    usage: Any = None


class _Model(_Part):
    id: str


class Models(_Part):
    """The endpoint's list of models."""

    data: list[_Model] | None = None


def read_answer(body: bytes, failures: Failures) -> ApiCompletion:
    """Read a whole completion.

    Raises ModelFormat if ``body`` is none, EndpointError if it is an error in spite of its status, ValueError or
    RecursionError if its form is unknown.
    """
    if not body.lstrip().startswith(b"{"):
        raise failures.not_json(body.decode(errors="replace"))
    values = json.loads(body)  # unlike pydantic, accepts half a surrogate pair
    answer = ApiCompletion.model_validate(values)
    if not answer.choices and values.get("error"):
        raise EndpointError(values)
    return answer


_LINE = re.compile(rb"\r\n|\n|\r(?!$)")  # a CR at the very end may be half of a CRLF
_DONE = "[DONE]"


class EventReader:
    """A reader of server-sent events: it takes the bytes as they come and returns the data of each complete event."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[str] = []

    def feed(self, piece: bytes) -> list[str]:
        *lines, self._rest = _LINE.split(self._rest + piece)
        return [data for line in lines if (data := self._take(line)) is not None]

    def _take(self, line: bytes) -> str | None:
        """Take one line; return the data of an event if this line, an empty one, ends it."""
        if not line:
            data, self._data = self._data, []
            return "\n".join(data) if data else None
        name, _, value = line.decode("utf-8", "replace").partition(":")
        if name == "data":
            self._data.append(value.removeprefix(" "))
        return None


class Chunks:
    """The chunks of one response, read one by one. Close ``body`` when no more are wanted."""

    def __init__(self, body: AsyncIterator[bytes]) -> None:
        self._body = body
        self._events = EventReader()
        self._waiting: deque[str] = deque()
        self.strange = ""  # the last data that was skipped: some gateways send their own pings

    def arrived(self) -> Iterator[ApiCompletion]:
        """Yield chunks that have arrived but were not read yet, up to the first that is none. Waits for nothing."""
        with suppress(ValueError, RecursionError, EndpointError):
            while self._waiting and (chunk := self._chunk(self._waiting.popleft())) is not None:
                yield chunk

    async def next(self) -> ApiCompletion | None:
        """Return the next chunk, None at the end; data that is not part of a reply is skipped.

        Raises EndpointError for an error event, ValueError if data is not a JSON object or not a chunk, and the
        errors of the HTTP library.
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

    def _chunk(self, data: str) -> ApiCompletion | None:
        if data.startswith(_DONE):
            return None
        values: Any = json.loads(data)
        if not isinstance(values, dict):
            raise ValueError("A chunk is no JSON object.")
        if values.get("error"):
            raise EndpointError(values)
        return ApiCompletion.model_validate(values)
